//! When things were so: watches that the operator and the bare loop are measured by alike.

use std::collections::BTreeSet;
use std::time::Instant;

use futures::io::AsyncBufReadExt as _;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use multikueue::clusters::mirror::mirror;
use multikueue::lifecycle::view::MirrorView;
use multikueue::workload::TemplateKind;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::Result;
use crate::world::World;

/// What was seen for the first time.
#[derive(Debug)]
pub enum What {
    /// The mirror is awake.
    Released(String),
    /// The mirror has ended.
    Ended(Box<MirrorView>),
    /// The job's result stands on the manager: true for `Succeeded`.
    Result(String, bool),
}

/// A sighting and its time.
#[derive(Debug)]
pub struct Sighting {
    /// When.
    pub at: Instant,
    /// What.
    pub what: What,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct JobLite {
    metadata: Meta,
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Meta {
    name: String,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    phase: String,
}

/// Starts a watch of the jobs of the manager and one of the Jobs of each worker.
pub fn observe(world: &World) -> mpsc::UnboundedReceiver<Result<Sighting>> {
    let (sightings, seen) = mpsc::unbounded_channel();
    let manager = world.admin.clone();
    let out = sightings.clone();
    tokio::spawn(async move {
        let path = "/apis/multikueue.rs/v1alpha1/namespaces/default/multikueuejobs?watch=true&resourceVersion=0";
        let mut ended = BTreeSet::new();
        follow(manager, path, &out, |text| {
            let job: JobLite = serde_json::from_str(text)?;
            let (name, phase) = (job.metadata.name, job.status.unwrap_or_default().phase);
            let news = matches!(&*phase, "Succeeded" | "Failed") && ended.insert(name.clone());
            Ok(news
                .then(|| What::Result(name, phase == "Succeeded"))
                .into_iter()
                .collect())
        })
        .await;
    });
    for worker in &world.workers {
        let (client, out) = (worker.admin.clone(), sightings.clone());
        tokio::spawn(async move {
            let path = "/apis/batch/v1/namespaces/default/jobs?watch=true&resourceVersion=0";
            let (mut awake, mut ended) = (BTreeSet::new(), BTreeSet::new());
            follow(client, path, &out, |text| {
                let seen = mirror(TemplateKind::Job, text)?;
                let mut news = Vec::new();
                if !seen.state.asleep && awake.insert(seen.uid.clone()) {
                    news.push(What::Released(seen.key.name.to_string()));
                }
                if seen.state.terminal.is_some() && ended.insert(seen.uid.clone()) {
                    news.push(What::Ended(Box::new(seen)));
                }
                Ok(news)
            })
            .await;
        });
    }
    seen
}

/// One watch; a server ends each after some time, and the next begins with what is there.
///
/// "What is there" is what the server's cache has (`resourceVersion=0`): control planes of the bed share an etcd, and a cache without news of its own may be
/// behind the newest revision for longer than a watch that wants that one is waited for.
async fn follow(
    client: Client,
    path: &'static str,
    out: &mpsc::UnboundedSender<Result<Sighting>>,
    mut read: impl FnMut(&str) -> Result<Vec<What>>,
) {
    loop {
        if let Err(error) = one_watch(&client, path, out, &mut read).await {
            // Without a receiver the bench is at its end.
            let _ = out.send(Err(format!("{path}: {error}").into()));
            return;
        }
    }
}

async fn one_watch(
    client: &Client,
    path: &'static str,
    out: &mpsc::UnboundedSender<Result<Sighting>>,
    read: &mut impl FnMut(&str) -> Result<Vec<What>>,
) -> Result<()> {
    let request = http::Request::get(path).body(Vec::new())?;
    let mut lines = std::pin::pin!(client.request_stream(request).await?.lines().into_stream());
    while let Some(line) = lines.next().await {
        let line = line?;
        let at = Instant::now();
        let Line { kind, object } = serde_json::from_str(&line)?;
        match kind {
            "ADDED" | "MODIFIED" => {
                for what in read(object.get())? {
                    out.send(Ok(Sighting { at, what }))?;
                }
            }
            "DELETED" => {}
            _ => return Err(line.into()),
        }
    }
    Ok(())
}
