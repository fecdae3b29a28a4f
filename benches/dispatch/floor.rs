//! The bare loop: the operator's requests without an operator. It decides nothing, checks nothing, and survives nothing.
//!
//! Requests, bodies, deadlines, rights and the reading of answers are the operator's own code; so is the client. What it lacks is a
//! scheduler, a protocol and watches: an answer of one request begets the next, and only the end of a Job is waited for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::Client;
use multikueue::api::MirrorIdentity;
use multikueue::api::names::FINALIZER;
use multikueue::app::identity::Origin;
use multikueue::clusters::answers::Reply;
use multikueue::clusters::exchange::exchange;
use multikueue::clusters::{Clock, requests, views};
use multikueue::dispatcher::{Answer, RefusalKind, Request};
use multikueue::lifecycle::Nonces;
use multikueue::lifecycle::intent::Intent;
use multikueue::lifecycle::nonce::Wrote;
use multikueue::lifecycle::view::{JobView, MirrorView, Plan};
use multikueue::workload::{MirrorInput, TemplateKind};
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Result;
use crate::world::World;

const KIND: TemplateKind = TemplateKind::Job;
/// Longest time of a request, the operator's default.
const TIMEOUT: Duration = Duration::from_secs(10);
/// As long as a claim of the operator.
const CLAIM: &str = "0123456789abcdef";

enum Work {
    /// Bring a job, as its POST answered, to its worker.
    Dispatch(String),
    /// Write the result of the job of this mirror, and remove the mirror.
    Finish(Box<MirrorView>),
}

struct Site {
    name: &'static str,
    uid: String,
    client: Client,
}

struct Shared {
    manager: Client,
    manager_uid: String,
    origin: Origin,
    sites: Vec<Site>,
    clock: Clock,
    /// Share of the jobs for which the operator writes that they run.
    running: f64,
    dispatched: AtomicUsize,
    finished: AtomicUsize,
    /// Jobs on a worker, with the worker's index.
    placed: Mutex<HashMap<String, (usize, JobView)>>,
}

/// The bare loop, running.
pub struct Floor {
    work: mpsc::UnboundedSender<Work>,
    failed: mpsc::UnboundedReceiver<crate::Error>,
    // Dropping it ends them.
    _tasks: JoinSet<()>,
}

impl Floor {
    /// Starts it with so many requests under way at once; it writes for this share of the jobs that they run.
    pub fn start(world: &World, width: usize, running: f64) -> Self {
        let sites = world.workers.iter().map(|worker| Site {
            name: worker.name,
            uid: worker.uid.clone(),
            client: worker.client.clone(),
        });
        let shared = Arc::new(Shared {
            manager: world.client.clone(),
            manager_uid: world.manager_uid.clone(),
            // Another one than the operator's, which must take nothing here for its own.
            origin: Origin::new(&world.manager_uid, crate::world::NAMESPACE, "floor", None),
            sites: sites.collect(),
            clock: Clock::start(),
            running,
            dispatched: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            placed: Mutex::default(),
        });
        let (work, queue) = mpsc::unbounded_channel();
        let (failures, failed) = mpsc::unbounded_channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut tasks = JoinSet::new();
        for lane in 0..width {
            let (shared, queue, failures) = (shared.clone(), queue.clone(), failures.clone());
            tasks.spawn(async move {
                let mut nonces = Nonces::default();
                loop {
                    let next = queue.lock().await.recv().await;
                    let Some(work) = next else { return };
                    if let Err(error) = shared.perform(work, lane, &mut nonces).await {
                        // Without a receiver nobody measures any more.
                        let _ = failures.send(error);
                    }
                }
            });
        }
        Self {
            work,
            failed,
            _tasks: tasks,
        }
    }

    /// Takes a job, as its POST answered.
    pub fn dispatch(&self, posted: String) -> Result<()> {
        Ok(self.work.send(Work::Dispatch(posted)).map_err(|_| SendError(()))?)
    }

    /// A mirror has ended.
    pub fn ended(&self, mirror: Box<MirrorView>) -> Result<()> {
        Ok(self.work.send(Work::Finish(mirror)).map_err(|_| SendError(()))?)
    }

    /// The next request that failed.
    pub async fn failure(&mut self) -> crate::Error {
        match self.failed.recv().await {
            Some(error) => error,
            None => "the bare loop ended".into(),
        }
    }
}

impl Shared {
    async fn perform(&self, work: Work, lane: usize, nonces: &mut Nonces) -> Result<()> {
        match work {
            Work::Dispatch(posted) => self.dispatch(&posted, lane, nonces).await,
            Work::Finish(mirror) => self.finish(&mirror).await,
        }
    }

    /// Finalizer, assignment, mirror asleep, its uid, release.
    async fn dispatch(&self, posted: &str, lane: usize, nonces: &mut Nonces) -> Result<()> {
        let job = views::job(posted)?;
        let number = self.dispatched.fetch_add(1, Ordering::Relaxed);
        let index = number % self.sites.len();
        let site = &self.sites[index];
        let finalizers = job.finalizers.iter().cloned().chain([FINALIZER.to_owned()]).collect();
        let job = self
            .on_manager(Request::SetJobFinalizers {
                key: job.key,
                uid: job.uid,
                resource_version: job.resource_version,
                finalizers,
            })
            .await?;
        let plan = Plan {
            cluster: site.name.to_owned(),
            cluster_uid: site.uid.clone(),
        };
        let assigned = self.intent(&job).assign(&plan, CLAIM);
        let job = self.write_status(&job, assigned).await?;
        let claim = format!("{CLAIM}{lane}");
        let identity = MirrorIdentity {
            origin: self.origin.hash.clone(),
            manager_uid: self.manager_uid.clone(),
            cluster_uid: site.uid.clone(),
            job: job.key.to_string(),
            job_uid: job.uid.to_string(),
            run: job.spec.run,
            number: job.status.last_attempt,
        };
        let object = KIND.workload().mirror(&MirrorInput {
            template: &job.spec.template,
            key: &job.key,
            identity: &identity,
            origin_name: &self.origin.text,
            nonce: &nonces.next(&claim, Wrote::Creation),
        })?;
        let create = Request::CreateMirror {
            kind: KIND,
            key: job.key.clone(),
            object,
            dry_run: false,
        };
        let Answer::Mirror(mirror) = self.send(&site.client, create).await? else {
            return Err("a create answered no mirror".into());
        };
        let recorded = self.intent(&job).record(&mirror);
        let job = self.write_status(&job, recorded).await?;
        let patch = KIND
            .workload()
            .release_patch(&mirror.uid, &mirror.nonce, &nonces.next(&claim, Wrote::Release));
        let key = job.key.clone();
        self.placed.lock().await.insert(key.name.to_string(), (index, job));
        self.send(&site.client, Request::JsonPatchMirror { kind: KIND, key, patch })
            .await?;
        Ok(())
    }

    /// Running where the operator writes it, result, delete.
    async fn finish(&self, mirror: &MirrorView) -> Result<()> {
        let placed = self.placed.lock().await.remove(&*mirror.key.name);
        let (index, mut job) = placed.ok_or_else(|| format!("{} ended and was never placed", mirror.key))?;
        let terminal = mirror.state.terminal.as_ref().ok_or("it has not ended")?;
        let number = self.finished.fetch_add(1, Ordering::Relaxed);
        let due = |n: usize| (n as f64 * self.running).floor();
        if due(number + 1) > due(number) {
            let running = self.intent(&job).follow(mirror, true);
            job = self.write_status(&job, running).await?;
        }
        let result = self.intent(&job).result(mirror, terminal);
        self.write_status(&job, result).await?;
        let client = &self.sites[index].client;
        let delete = |uid: &Arc<str>, resource_version| Request::DeleteMirror {
            kind: KIND,
            key: mirror.key.clone(),
            uid: uid.clone(),
            resource_version,
        };
        let mut version = mirror.resource_version;
        // Its controller may write once more after the end.
        while let Err(refused) = self.send(client, delete(&mirror.uid, version)).await {
            if refused.to_string() != CONFLICT {
                return Err(refused);
            }
            let read = Request::GetMirror {
                kind: KIND,
                key: mirror.key.clone(),
            };
            let Answer::Mirror(newer) = self.send(client, read).await? else {
                return Err("a read answered no mirror".into());
            };
            version = newer.resource_version;
        }
        Ok(())
    }

    fn intent<'a>(&self, job: &'a JobView) -> Intent<'a> {
        Intent::new(job, self.clock.now())
    }

    async fn write_status(&self, job: &JobView, status: multikueue::api::MultiKueueJobStatus) -> Result<JobView> {
        self.on_manager(Request::WriteJobStatus {
            key: job.key.clone(),
            uid: job.uid.clone(),
            resource_version: job.resource_version,
            status: Box::new(status),
        })
        .await
    }

    async fn on_manager(&self, request: Request) -> Result<JobView> {
        match self.send(&self.manager, request).await? {
            Answer::Job(job) => Ok(*job),
            other => Err(format!("{other:?} instead of a job").into()),
        }
    }

    async fn send(&self, client: &Client, request: Request) -> Result<Answer> {
        let made = requests::make(&request, "floor")?;
        let reply = exchange(client, requests::about(&request), made, Instant::now() + TIMEOUT).await;
        match reply {
            Reply::Done(text) => Ok(requests::read(&request, &text)?),
            Reply::Refused(refusal) if refusal.kind == RefusalKind::Conflict => Err(CONFLICT.into()),
            Reply::Refused(refusal) => Err(format!("{}: {}", request.kind(), refusal.message).into()),
            Reply::Unknown(message) => Err(format!("{}: {message}", request.kind()).into()),
        }
    }
}

/// The text of the error of a lost race.
const CONFLICT: &str = "conflict";
