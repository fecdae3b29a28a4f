use clap::CommandFactory;

use super::*;

fn parse(flags: &[&str]) -> Result<RunArgs, String> {
    let args = Args::try_parse_from(["multikueue", "run"].iter().chain(flags)).map_err(|error| error.to_string())?;
    let Command::Run(run) = args.command else {
        panic!("not run")
    };
    run.validate().map_err(|error| error.to_string())?;
    Ok(*run)
}

#[test]
fn the_definition_of_the_flags_is_sound() {
    Args::command().debug_assert();
}

#[test]
fn every_flag_of_run_has_the_environment_twin_of_its_name() {
    let command = Args::command();
    let run = command.find_subcommand("run").unwrap();
    let mut seen = 0;
    for arg in run.get_arguments() {
        let long = arg.get_long().unwrap();
        if long == "help" {
            continue;
        }
        let twin = format!("MULTIKUEUE_{}", long.to_uppercase().replace('-', "_"));
        assert_eq!(
            arg.get_env().map(|name| name.to_str().unwrap()),
            Some(twin.as_str()),
            "--{long}"
        );
        assert!(arg.get_help().is_some(), "--{long} is not explained");
        seen += 1;
    }
    assert_eq!(seen, 17);
}

#[test]
fn the_defaults_are_valid_and_elect_a_leader() {
    let args = parse(&[]).unwrap();
    assert!(args.leader_elect);
    assert_eq!(args.release, "multikueue");
    assert_eq!(args.metrics_bind_address, BindAddress::Any(8080));
    assert_eq!(
        (args.lease_duration, args.lease_renew),
        (Duration::from_secs(15), Duration::from_secs(3))
    );
    assert_eq!(args.orphan_grace, Duration::from_hours(24));
    assert_eq!(
        args.log,
        LogArgs {
            log_format: LogFormat::Text,
            log_level: "info".into()
        }
    );
}

#[test]
fn leader_election_is_switched_as_go_programs_do() {
    assert!(parse(&["--leader-elect"]).unwrap().leader_elect);
    assert!(parse(&["--leader-elect=true"]).unwrap().leader_elect);
    assert!(!parse(&["--leader-elect=false"]).unwrap().leader_elect);
    assert!(parse(&["--leader-elect=perhaps"]).is_err());
}

#[test]
fn wrong_values_are_refused_with_what_would_be_right() {
    for (flag, part) in [
        ("--lease-duration=15", "right are 15s"),
        ("--lease-duration=-15s", "negative"),
        (
            "--lease-duration=1500ms",
            "--lease-duration is 1.5s; right are whole seconds",
        ),
        ("--lease-duration=0s", "right are whole seconds from 1s"),
        (
            "--lease-renew=8s",
            "--lease-renew is 8s; right is more than 0s and at most half of --lease-duration, 7.5s",
        ),
        ("--lease-renew=0s", "more than 0s"),
        (
            "--worker-lease-renew=31s",
            "at most half of --worker-lease-duration, 30s",
        ),
        ("--request-timeout=1ms", "--request-timeout is 1ms; right is from 100ms"),
        ("--sweep-interval=0s", "--sweep-interval"),
        ("--release=My_Release", "no DNS label"),
        ("--release=-a", "no DNS label"),
        ("--namespace=", "no DNS label"),
        ("--origin=a b", "no origin"),
        ("--origin=", "no origin"),
        ("--metrics-bind-address=8080", "right are :8080"),
        ("--metrics-bind-address=:99999", "right are :8080"),
        ("--log-level=info,=loud", "right are info"),
        ("--log-format=xml", "possible values: text, json"),
        ("--unknown=1", "unexpected argument"),
    ] {
        let message = parse(&[flag]).unwrap_err();
        assert!(message.contains(part), "{flag}: {message}");
    }
}

#[test]
fn addresses_survive_being_printed_and_read() {
    for text in ["0", ":8080", "127.0.0.1:9090", "[::1]:80"] {
        let address: BindAddress = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
    }
    assert!("0".parse::<BindAddress>().unwrap().candidates().is_empty());
    let any: Vec<String> = ":80"
        .parse::<BindAddress>()
        .unwrap()
        .candidates()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(any, ["[::]:80", "0.0.0.0:80"]);
}
