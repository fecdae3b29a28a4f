//! Cycles over small fleets.

mod order;
mod places;
mod reasons;
mod reserves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::api::JobKey;
use crate::api::Now;
use crate::api::job::Placement;
use crate::capacity::{NodeRow, PodRow};
use crate::resources::{Amounts, PodSet, Shape};
use crate::scheduling::job::Exclusion;
use crate::scheduling::site::{Site, SiteMeta};
use crate::workload::TemplateKind;

type Sites = BTreeMap<Arc<str>, Site>;

const ALL: usize = usize::MAX;

fn scheduler() -> Scheduler {
    Scheduler::new(SchedulerConfig {
        operator_namespace: "multikueue-system".into(),
        reserve_after: Duration::from_mins(10),
        reasons_per_second: 10,
    })
}

fn at(seconds: u64) -> Now {
    Now {
        mono: Duration::from_secs(seconds),
        wall: Timestamp::UNIX_EPOCH,
    }
}

fn gpu(n: i64) -> Arc<Shape> {
    let mut requests = Amounts::default();
    requests.set("nvidia.com/gpu".into(), n);
    Arc::new(Shape {
        requests,
        ..Shape::default()
    })
}

/// `count` members of `gpus` each, queued at second `age`.
fn job(name: &str, age: i64, count: i64, gpus: i64) -> QueuedJob {
    QueuedJob {
        key: JobKey::new("team", name),
        uid: format!("uid-{name}").into(),
        priority: 0,
        queued_at: Timestamp::from_second(age).unwrap(),
        kind: TemplateKind::Job,
        pod_sets: Arc::new([PodSet {
            shape: gpu(gpus),
            count,
        }]),
        placement: Arc::default(),
        excluded: BTreeMap::new(),
        told: BTreeSet::new(),
    }
}

fn node(name: &str, gpus: i64) -> NodeRow {
    let mut row = NodeRow {
        name: name.into(),
        ready: true,
        ..NodeRow::default()
    };
    row.allocatable.set("pods".into(), 110);
    row.allocatable.set("nvidia.com/gpu".into(), gpus);
    row
}

fn pod(name: &str, node: &str, gpus: i64) -> PodRow {
    let mut charged = Amounts::default();
    charged.set("nvidia.com/gpu".into(), gpus);
    PodRow {
        namespace: "team".into(),
        name: name.into(),
        node: node.into(),
        charged,
        running: true,
        ..PodRow::default()
    }
}

/// A worker with nodes of so many GPUs.
fn site(name: &str, nodes: &[i64]) -> Site {
    let mut site = Site::new(SiteMeta {
        cluster_uid: format!("uid-{name}").into(),
        labels: [("name".to_owned(), name.to_owned())].into(),
        kinds: [TemplateKind::Job.as_str().to_owned()].into(),
        ..SiteMeta::default()
    });
    let rows: Vec<NodeRow> = nodes
        .iter()
        .enumerate()
        .map(|(i, n)| node(&format!("n{i}"), *n))
        .collect();
    site.ledger.reset_nodes(&rows);
    site.ledger.reset_pods(&[]);
    site
}

fn fleet(sites: &[(&str, &[i64])]) -> Sites {
    sites
        .iter()
        .map(|(name, nodes)| ((*name).into(), site(name, nodes)))
        .collect()
}

fn change(sites: &mut Sites, name: &str, f: impl FnOnce(&mut SiteMeta)) {
    let site = sites.get_mut(name).unwrap();
    let mut meta = site.meta().clone();
    f(&mut meta);
    site.set_meta(meta);
}

/// Names of the jobs placed, with their workers.
fn placed(cycle: &Cycle) -> Vec<(String, String)> {
    cycle
        .placed
        .iter()
        .map(|p| (p.key.name.to_string(), p.site.to_string()))
        .collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

fn run(jobs: Vec<QueuedJob>, sites: &mut Sites) -> (Scheduler, Vec<(String, String)>) {
    let mut scheduler = scheduler();
    for job in jobs {
        scheduler.upsert(job);
    }
    let cycle = scheduler.cycle(sites, at(0), ALL);
    assert!(cycle.finished);
    let placed = placed(&cycle);
    (scheduler, placed)
}

fn select(key: &str, value: &str) -> LabelSelector {
    LabelSelector {
        match_labels: Some([(key.to_owned(), value.to_owned())].into()),
        match_expressions: None,
    }
}

fn sentence(scheduler: &mut Scheduler, sites: &mut Sites, name: &str) -> (String, String) {
    let waiting = scheduler.waiting(&JobKey::new("team", name), sites).unwrap();
    let nearest = waiting.nearest.first().unwrap();
    (nearest.reason.clone(), nearest.message.clone())
}
