//! `cargo bench --bench dispatch`: how fast jobs get through the operator, against a bare loop that sends the same requests.
//!
//! See `benches/README.md`. The last lines are one `name value` each.

mod counts;
mod floor;
mod observer;
mod run;
mod world;

use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::mpsc;

use counts::Counts;
use floor::Floor;
use observer::Sighting;
use run::{Load, Measured, Pace, Pods, run};
use world::World;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;
type Sightings = mpsc::UnboundedReceiver<Result<Sighting>>;

/// Clients that apply jobs, for the operator and for the bare loop.
const CLIENTS: usize = 16;
/// Requests of the bare loop under way at once, one number a round: the best counts.
const WIDTHS: [usize; 3] = [16, 32, 64];
/// How long jobs are applied at half the peak rate.
const OPEN_LOOP: Duration = Duration::from_secs(20);
/// Jobs before each measurement, so that connections are open and caches filled.
const WARM_UP: usize = 32;

struct Options {
    jobs: usize,
    widths: Vec<usize>,
    open_loop: Duration,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            jobs: 1000,
            widths: WIDTHS.to_vec(),
            open_loop: OPEN_LOOP,
        };
        while let Some(arg) = args.next() {
            match &*arg {
                // Cargo's own.
                "--bench" => {}
                "--quick" => {
                    options.jobs = 200;
                    options.widths = vec![32];
                    options.open_loop = Duration::from_secs(5);
                }
                "--jobs" => {
                    let count = args.next().ok_or("--jobs needs a number")?;
                    options.jobs = count.parse().map_err(|_| format!("--jobs {count}: no number"))?;
                }
                _ => return Err(format!("{arg}: known are --jobs N and --quick").into()),
            }
        }
        if options.jobs == 0 {
            return Err("--jobs 0: at least 1".into());
        }
        Ok(options)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match bench().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Best rates so far, of the operator or of the bare loop.
#[derive(Default)]
struct Best {
    dispatch: f64,
    life: f64,
}

impl Best {
    fn note(&mut self, who: &str, life: &Measured, held: &Measured) {
        println!(
            "{who}: {:6.1} jobs/s applied to released; whole life {:6.1} jobs/s to the result, {:6.1} to released",
            held.dispatched_per_second(),
            life.ended_per_second(),
            life.dispatched_per_second(),
        );
        self.dispatch = self.dispatch.max(held.dispatched_per_second());
        self.life = self.life.max(life.ended_per_second());
    }
}

async fn bench() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    // Room limits nobody: 30 of 100 GPUs stay free.
    let nodes = (options.jobs * 13 / 80 + 1).next_multiple_of(2).max(8);
    println!(
        "{} jobs of one GPU, {nodes} nodes of 8 GPUs on 2 workers; load average {}",
        options.jobs,
        std::fs::read_to_string("/proc/loadavg")?.trim()
    );
    let world = World::start(nodes).await?;
    let mut seen = observer::observe(&world);
    let (mut ours, mut floor) = (Best::default(), Best::default());
    let (mut per_job, mut rss) = (Counts::default(), 0.0_f64);
    for (round, width) in options.widths.iter().enumerate() {
        world.start_operator().await?;
        warm_up(&world, &mut seen, &format!("o{round}w-"), None).await?;
        let before = Counts::take(&world).await?;
        let prefix = format!("o{round}z-");
        let life = burst(&world, &mut seen, &prefix, options.jobs, Pods::OfZeroSeconds, None).await?;
        world.workers_empty().await?;
        per_job = Counts::take(&world).await?.since(&before, options.jobs);
        let prefix = format!("o{round}h-");
        let held = burst(&world, &mut seen, &prefix, options.jobs, Pods::Held, None).await?;
        rss = rss.max(world.operator_rss_mib()?);
        world.stop_operator().await?;
        world.clear().await?;
        ours.note("operator     ", &life, &held);

        let running = per_job.manager_writes() - 4.0;
        let mut bare = Floor::start(&world, *width, running.clamp(0.0, 1.0));
        let bare = &mut bare;
        warm_up(&world, &mut seen, &format!("f{round}w-"), Some(bare)).await?;
        let prefix = format!("f{round}z-");
        let pods = Pods::OfZeroSeconds;
        let life = burst(&world, &mut seen, &prefix, options.jobs, pods, Some(bare)).await?;
        world.workers_empty().await?;
        let prefix = format!("f{round}h-");
        let held = burst(&world, &mut seen, &prefix, options.jobs, Pods::Held, Some(bare)).await?;
        world.clear().await?;
        floor.note(&format!("bare loop, {width:2}"), &life, &held);
    }

    world.start_operator().await?;
    warm_up(&world, &mut seen, "lw-", None).await?;
    let rate = ours.dispatch / 2.0;
    let open = Load {
        prefix: "l-".into(),
        jobs: (1..nodes * 8)
            .take_while(|n| *n as f64 <= rate * options.open_loop.as_secs_f64())
            .count(),
        pods: Pods::Held,
        pace: Pace::Rate(rate),
    };
    let open = run(&world, &mut seen, &open, None).await?;
    world.stop_operator().await?;

    println!(
        "at {rate:.1} jobs/s from applied to released: P50 {:.3} s, P99 {:.3} s",
        open.percentile(50).as_secs_f64(),
        open.percentile(99).as_secs_f64()
    );
    println!("requests for one job's life:");
    per_job.print();
    println!("load average {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    println!();
    println!("ratio_dispatch {:.3}", ours.dispatch / floor.dispatch);
    println!("ratio_life {:.3}", ours.life / floor.life);
    println!("jobs_per_second {:.1}", ours.dispatch);
    println!("floor_jobs_per_second {:.1}", floor.dispatch);
    println!("manager_writes_per_job {:.3}", per_job.manager_writes());
    println!("worker_writes_per_job {:.3}", per_job.worker_writes());
    println!("reads_per_job {:.3}", per_job.reads());
    println!("dispatch_p99_seconds {:.3}", open.percentile(99).as_secs_f64());
    println!("rss_mib {rss:.1}");
    Ok(())
}

async fn warm_up(world: &World, seen: &mut Sightings, prefix: &str, floor: Option<&mut Floor>) -> Result<()> {
    burst(world, seen, prefix, WARM_UP, Pods::OfZeroSeconds, floor).await?;
    world.workers_empty().await
}

/// Jobs applied as fast as the clients can, the same for both.
async fn burst(
    world: &World,
    seen: &mut Sightings,
    prefix: &str,
    jobs: usize,
    pods: Pods,
    floor: Option<&mut Floor>,
) -> Result<Measured> {
    let load = Load {
        prefix: prefix.to_owned(),
        jobs,
        pods,
        pace: Pace::Clients(CLIENTS),
    };
    run(world, seen, &load, floor).await
}
