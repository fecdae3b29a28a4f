//! The `multikueue` program.

use std::process::ExitCode;

use clap::Parser;
use multikueue::app::error::chain;
use multikueue::app::{Args, Command, Error, RunArgs, crds, run, shutdown, telemetry};

/// Ends with 0, with 1 after a failure, and with 2 when the flags are wrong, as programs made with clap do.
fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Crd => crds::print(std::io::stdout().lock()),
        Command::Run(args) => serve(*args),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("error: {}", chain(&error));
    if matches!(error, Error::Args(_)) {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

fn serve(args: RunArgs) -> Result<(), Error> {
    telemetry::init(&args.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Process)?;
    runtime.block_on(async { run(args, shutdown::signals()?).await })
}
