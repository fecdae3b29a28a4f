//! One measured run: jobs are applied, and the observer says when each was released and had its result.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::floor::Floor;
use crate::observer::{Sighting, What};
use crate::world::World;
use crate::{Error, Result};

/// A run that has not ended by then has failed.
const PATIENCE: Duration = Duration::from_mins(10);

/// What the pods do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    /// They are bound and never start, so that a job's release is its last request.
    Held,
    /// They end as soon as they start.
    OfZeroSeconds,
}

/// How jobs are applied.
#[derive(Clone, Copy)]
pub enum Pace {
    /// As fast as so many clients can.
    Clients(usize),
    /// So many a second, whatever becomes of them.
    Rate(f64),
}

/// What is applied, and how.
pub struct Load {
    /// Start of the jobs' names.
    pub prefix: String,
    /// How many.
    pub jobs: usize,
    /// What their pods do.
    pub pods: Pods,
    /// How they are applied.
    pub pace: Pace,
}

/// What was seen, as times since the first apply.
#[derive(Debug, Default)]
pub struct Measured {
    /// From each job's apply to its release, in ascending order.
    pub latencies: Vec<Duration>,
    /// When the last was released.
    pub released: Duration,
    /// When the last had its result; zero if none was awaited.
    pub ended: Duration,
    jobs: usize,
}

impl Measured {
    /// Jobs a second, from the first apply to the last release.
    pub fn dispatched_per_second(&self) -> f64 {
        self.jobs as f64 / self.released.as_secs_f64()
    }

    /// Jobs a second, from the first apply to the last result.
    pub fn ended_per_second(&self) -> f64 {
        self.jobs as f64 / self.ended.as_secs_f64()
    }

    /// The latency that this share of the jobs does not exceed.
    pub fn percentile(&self, percent: usize) -> Duration {
        let index = (self.latencies.len() * percent).div_ceil(100).saturating_sub(1);
        self.latencies.get(index).copied().unwrap_or_default()
    }
}

/// Applies the load and waits until all of it is released and, if its pods end, has its result. With `floor` the bare loop does the work,
/// else the operator must be running.
pub async fn run(
    world: &World,
    sightings: &mut mpsc::UnboundedReceiver<Result<Sighting>>,
    load: &Load,
    mut floor: Option<&mut Floor>,
) -> Result<Measured> {
    let (applied_in, mut applied) = mpsc::unbounded_channel();
    let first = Instant::now();
    let applying = tokio::spawn(apply_all(
        world.admin.clone(),
        bodies(load)?,
        load.pace,
        first,
        applied_in,
    ));
    let end = tokio::time::Instant::now() + PATIENCE;
    let mut measured = Measured {
        jobs: load.jobs,
        ..Measured::default()
    };
    let mut starts: HashMap<String, Instant> = HashMap::new();
    let mut releases: HashMap<String, Instant> = HashMap::new();
    let (mut open, mut results) = (true, 0);
    let wanted = if load.pods == Pods::Held { 0 } else { load.jobs };
    while open || starts.len() < load.jobs || releases.len() < load.jobs || results < wanted {
        tokio::select! {
            job = applied.recv(), if open => match job {
                Some(Applied { name, start, answer }) => {
                    starts.insert(name, start);
                    if let Some(floor) = &floor {
                        floor.dispatch(answer)?;
                    }
                }
                None => open = false,
            },
            seen = sightings.recv() => {
                let Sighting { at, what } = seen.ok_or("nobody observes any more")??;
                match what {
                    What::Released(name) if name.starts_with(&load.prefix) => {
                        measured.released = measured.released.max(at - first);
                        releases.insert(name, at);
                    }
                    What::Ended(mirror) if mirror.key.name.starts_with(&load.prefix) => if let Some(floor) = &floor {
                        floor.ended(mirror)?;
                    },
                    What::Result(name, succeeded) if name.starts_with(&load.prefix) => {
                        if !succeeded {
                            return Err(format!("{name} failed").into());
                        }
                        measured.ended = measured.ended.max(at - first);
                        results += 1;
                    }
                    _ => {}
                }
            }
            failure = failure(&mut floor) => return Err(failure),
            () = tokio::time::sleep_until(end) => {
                return Err(format!(
                    "{}: of {} jobs {} are applied, {} released, {results} have results; the operator says:\n{}",
                    load.prefix, load.jobs, starts.len(), releases.len(), world.operator_log(),
                ).into());
            }
        }
    }
    applying.await??;
    for (name, start) in starts {
        let end = releases.get(&name).ok_or("applied and never released")?;
        measured.latencies.push(end.saturating_duration_since(start));
    }
    measured.latencies.sort_unstable();
    Ok(measured)
}

async fn failure(floor: &mut Option<&mut Floor>) -> Error {
    match floor {
        Some(floor) => floor.failure().await,
        None => std::future::pending().await,
    }
}

struct Applied {
    name: String,
    /// When it was or, at a rate, should have been applied.
    start: Instant,
    /// The job as the API server answered.
    answer: String,
}

async fn apply_all(
    client: Client,
    bodies: Vec<(String, Vec<u8>)>,
    pace: Pace,
    first: Instant,
    done: mpsc::UnboundedSender<Applied>,
) -> Result<()> {
    let at_once = match pace {
        Pace::Clients(clients) => clients,
        Pace::Rate(_) => bodies.len(),
    };
    let mut posts = futures::stream::iter(bodies.into_iter().enumerate())
        .map(|(index, (name, body))| {
            let client = &client;
            async move {
                let start = match pace {
                    Pace::Clients(_) => Instant::now(),
                    Pace::Rate(rate) => {
                        let start = first + Duration::from_secs_f64(index as f64 / rate);
                        tokio::time::sleep_until(start.into()).await;
                        start
                    }
                };
                let request = http::Request::post("/apis/multikueue.rs/v1alpha1/namespaces/default/multikueuejobs")
                    .header("content-type", "application/json")
                    .body(body)?;
                let answer = client.request_text(request).await?;
                Ok::<_, Error>(Applied { name, start, answer })
            }
        })
        .buffer_unordered(at_once.max(1));
    while let Some(applied) = posts.next().await {
        done.send(applied?)?;
    }
    Ok(())
}

/// Names and documents of one-GPU jobs whose mirrors go as soon as they may.
fn bodies(load: &Load) -> Result<Vec<(String, Vec<u8>)>> {
    (0..load.jobs)
        .map(|number| {
            let name = format!("{}{number:05}", load.prefix);
            let job = bed::job(&name).gpus(1).request("cpu", "1").request("memory", "1Gi");
            let job = match load.pods {
                Pods::Held => job.never_start(),
                Pods::OfZeroSeconds => job.run_seconds(0),
            };
            let mut template = serde_json::to_value(job.build())?;
            template["metadata"] = json!({});
            let job: Value = json!({
                "apiVersion": "multikueue.rs/v1alpha1", "kind": "MultiKueueJob",
                "metadata": {"name": name},
                "spec": {"template": template, "policy": {"retainMirrorSeconds": 0}},
            });
            Ok((name, serde_json::to_vec(&job)?))
        })
        .collect()
}
