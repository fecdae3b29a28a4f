//! `cargo run --example demo`: a manager and two GPU workers on this machine, the jobs of this folder applied, and what became of each.
//!
//! The control planes are real (API servers, controllers, schedulers); only the nodes are simulated. The operator is the program that users run, with the roles of
//! `deploy/`. Exit status 0 means that every job ended as expected. `--keep` leaves it all running and says how to look around.

mod demo_support;

use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use demo_support::expect::{Expected, Fate, verdicts};
use demo_support::table::Table;
use demo_support::world::World;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What becomes of the jobs under `examples/`.
const EXPECTED: &[Expected] = &[
    Expected {
        name: "one-gpu",
        fate: Fate::Succeeds { on: None },
    },
    Expected {
        name: "gang",
        fate: Fate::Succeeds { on: Some("eu") },
    },
    Expected {
        name: "model",
        fate: Fate::Succeeds { on: Some("eu") },
    },
    Expected {
        name: "failing",
        fate: Fate::Fails {
            reason: "BackoffLimitExceeded",
        },
    },
    Expected {
        name: "fits-nowhere",
        fate: Fate::Waits { saying: "16 needed" },
    },
    Expected {
        name: "deleted",
        fate: Fate::Goes,
    },
];

/// How long the jobs have.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::main]
async fn main() -> ExitCode {
    let keep = std::env::args().any(|a| a == "--keep");
    match demo(keep).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn demo(keep: bool) -> Result<bool> {
    let started = std::time::Instant::now();
    let world = World::start().await?;
    println!(
        "ready after {:.0} s: manager, workers eu and us, operator\n",
        started.elapsed().as_secs_f64()
    );
    world.apply_examples(EXPECTED).await?;

    let mut table = Table::new(std::io::stdout().is_terminal());
    let applied = std::time::Instant::now();
    let mut deleted = false;
    let all_well = loop {
        let jobs = world.jobs().await?;
        table.show(&jobs, &world.workers().await?);
        if !deleted && jobs.iter().any(|j| j.name == "deleted" && j.phase == "Running") {
            world.delete_job("deleted").await?;
            deleted = true;
        }
        let left = world.left_on_workers("deleted").await?;
        let verdicts = verdicts(EXPECTED, &jobs, deleted && left == 0);
        if verdicts.iter().all(|v| v.is_final) || applied.elapsed() > PATIENCE {
            table.end();
            println!("\nWhat became of each:");
            for v in &verdicts {
                println!(
                    "  {} {:<14}{}",
                    if v.as_expected { "ok  " } else { "FAIL" },
                    v.name,
                    v.text
                );
            }
            break verdicts.iter().all(|v| v.as_expected);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    if !all_well {
        println!("\nThe operator's last words:\n{}", world.operator_log());
    }
    if keep {
        world.explain();
        tokio::signal::ctrl_c().await?;
    }
    Ok(all_well)
}
