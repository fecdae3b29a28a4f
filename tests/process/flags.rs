//! The command line.

use crate::program::program;

#[test]
fn a_flag_may_come_from_its_environment_twin_and_a_wrong_one_ends_with_2_and_its_name() {
    let output = program(&["run"]).env("MULTIKUEUE_LEASE_RENEW", "8s").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("error: --lease-renew is 8s; right is more than 0s and at most half"),
        "{stderr}"
    );

    let output = program(&["run", "--metrics-bind-address=nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_failure_ends_with_1_and_all_its_causes_on_one_line() {
    let output = program(&["run", "--kubeconfig=/nonexistent/kubeconfig"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let last = stderr.lines().last().unwrap();
    assert!(
        last.starts_with("error: kubeconfig /nonexistent/kubeconfig of the manager cluster cannot be used: "),
        "{stderr}"
    );
    assert!(last.contains("No such file"), "{stderr}");
}
