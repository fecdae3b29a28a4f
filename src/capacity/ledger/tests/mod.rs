//! The ledger against tables of cases and against a brute-force count.

mod cases;
mod model;
mod promises;
mod sentences;

use std::sync::Arc;

use super::*;
use crate::capacity::rows::{NodeRow, PodRow};
use crate::resources::Amounts;
use crate::resources::shape::{NodeTaint, NodeTaintEffect, PodSet, Toleration};

/// A node builder: 96 cpu, 1 TiB, 110 pods, and what the test adds.
fn node(name: &str, gpus: i64) -> NodeRow {
    let mut row = NodeRow {
        name: name.into(),
        ready: true,
        allocatable: amounts(&[("cpu", 96_000), ("memory", 1 << 40), ("pods", 110)]),
        ..NodeRow::default()
    };
    if gpus > 0 {
        row.allocatable.set("nvidia.com/gpu".into(), gpus);
        row.capacity.set("nvidia.com/gpu".into(), gpus);
    }
    row
}

fn labelled(mut row: NodeRow, labels: &[(&str, &str)]) -> NodeRow {
    row.labels = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    row.labels.sort();
    row
}

fn tainted(mut row: NodeRow, key: &str, effect: NodeTaintEffect) -> NodeRow {
    row.taints.push(NodeTaint {
        key: key.into(),
        value: String::new(),
        effect,
    });
    row
}

fn pod(name: &str, node: &str, gpus: i64) -> PodRow {
    PodRow {
        namespace: "team".into(),
        name: name.into(),
        uid: name.into(),
        node: node.into(),
        charged: amounts(&[("nvidia.com/gpu", gpus)]),
        running: true,
        ..PodRow::default()
    }
}

fn own(name: &str, node: &str, gpus: i64, job: &str) -> PodRow {
    PodRow {
        job_uid: Some(job.into()),
        ..pod(name, node, gpus)
    }
}

fn amounts(list: &[(&str, i64)]) -> Amounts {
    let mut amounts = Amounts::default();
    for (name, n) in list {
        amounts.set((*name).into(), *n);
    }
    amounts
}

fn asks(list: &[(&str, i64)]) -> Shape {
    Shape {
        requests: amounts(list),
        ..Shape::default()
    }
}

fn gpu(n: i64) -> Arc<Shape> {
    Arc::new(asks(&[("nvidia.com/gpu", n)]))
}

fn set(shape: &Arc<Shape>, count: i64) -> PodSet {
    PodSet {
        shape: shape.clone(),
        count,
    }
}

fn ledger(nodes: &[NodeRow], pods: &[PodRow]) -> Ledger {
    let mut ledger = Ledger::new();
    ledger.reset_nodes(nodes);
    ledger.reset_pods(pods);
    ledger
}

fn fits(ledger: &mut Ledger, shape: &Arc<Shape>) -> i64 {
    match ledger.fit(shape) {
        Fit::Known { members } => members,
        other => panic!("{other:?}"),
    }
}

fn any_taint(shape: &Shape) -> Arc<Shape> {
    Arc::new(Shape {
        tolerations: vec![Toleration {
            key: String::new(),
            exists: true,
            value: String::new(),
            effect: None,
        }],
        ..shape.clone()
    })
}
