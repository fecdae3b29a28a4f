//! Starts a bed and keeps it until Ctrl-C, for a person with `kubectl`: the first name on the command line becomes a
//! manager, the others workers with a GPU node each. Prints one line per control plane: its name and its kubeconfig file.

use std::process::ExitCode;

use bed::{Bed, BedOptions, gpu_node};

#[tokio::main]
async fn main() -> ExitCode {
    let mut names = std::env::args().skip(1);
    let Some(manager) = names.next() else {
        eprintln!("usage: bed-up <manager> [<worker>...]");
        return ExitCode::FAILURE;
    };
    match run(manager, names.collect()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(manager: String, workers: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    let options = workers
        .iter()
        .fold(BedOptions::new().manager(&manager), |options, worker| {
            options.worker(worker)
        });
    let bed = Bed::start(options).await?;
    for worker in &workers {
        gpu_node("gpu-1")
            .create(&bed.control_plane(worker)?.client().await?)
            .await?;
    }
    for name in [&manager].into_iter().chain(&workers) {
        println!(
            "{name} {}",
            bed.control_plane(name)?.folder().join("admin.kubeconfig").display()
        );
    }
    tokio::signal::ctrl_c().await?;
    Ok(())
}
