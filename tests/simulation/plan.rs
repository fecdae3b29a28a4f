//! What the jobs of a simulation ask for, and how their pods behave: written into the template, read back off the mirror.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use multikueue::api::job::{Placement, Policy};
use multikueue::api::{MultiKueueJobSpec, RawJson};
use serde_json::{Value, json};

use crate::world::Ms;

/// The device that every pod asks for.
pub const GPU: &str = "nvidia.com/gpu";

/// How a pod ends once it is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Succeeds,
    Fails,
    /// It is bound and never becomes Running: its image cannot be pulled.
    NeverStarts,
}

/// A job as its user thinks of it.
#[derive(Debug, Clone)]
pub struct Plan {
    pub name: &'static str,
    pub pods: i64,
    pub completions: i64,
    pub gpus: i64,
    pub millis: Ms,
    pub fate: Fate,
    pub backoff_limit: i64,
    pub region: Option<&'static str>,
    pub policy: Policy,
}

impl Plan {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            pods: 1,
            completions: 1,
            gpus: 1,
            millis: 20_000,
            fate: Fate::Succeeds,
            backoff_limit: 0,
            region: None,
            policy: Policy {
                start_timeout_seconds: 120,
                max_attempts: 3,
                retain_mirror_seconds: 300,
                deletion_timeout_seconds: 300,
                ..Policy::default()
            },
        }
    }

    pub fn pods(self, pods: i64) -> Self {
        Self {
            pods,
            completions: pods,
            ..self
        }
    }

    pub fn gpus(self, gpus: i64) -> Self {
        Self { gpus, ..self }
    }

    pub fn fate(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }

    pub fn millis(self, millis: Ms) -> Self {
        Self { millis, ..self }
    }

    pub fn region(self, region: &'static str) -> Self {
        Self {
            region: Some(region),
            ..self
        }
    }

    pub fn spec(&self) -> MultiKueueJobSpec {
        MultiKueueJobSpec {
            priority_class_name: None,
            suspend: false,
            run: 1,
            template: RawJson::from_value(&self.template()),
            placement: Placement {
                cluster_selector: self.region.map(selector),
                ..Placement::default()
            },
            policy: self.policy.clone(),
        }
    }

    fn template(&self) -> Value {
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": {
                "parallelism": self.pods,
                "completions": self.completions,
                "backoffLimit": self.backoff_limit,
                "ttlSecondsAfterFinished": 0,
                "template": {
                    "metadata": {"annotations": {
                        "sim/millis": self.millis.to_string(),
                        "sim/fate": match self.fate {
                            Fate::Succeeds => "succeeds",
                            Fate::Fails => "fails",
                            Fate::NeverStarts => "never-starts",
                        },
                    }},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": "main",
                            "image": "example.com/train:1",
                            "resources": {"limits": {GPU: self.gpus.to_string()}},
                        }],
                    },
                },
            },
        })
    }
}

/// Workers of one region.
pub fn selector(region: &str) -> LabelSelector {
    LabelSelector {
        match_labels: Some([("region".to_owned(), region.to_owned())].into()),
        match_expressions: None,
    }
}

/// What the Job controller and the kubelet of the model read off an object.
#[derive(Debug, Clone)]
pub struct Workload {
    pub parallelism: i64,
    pub completions: i64,
    pub backoff_limit: i64,
    pub gpus: i64,
    pub millis: Ms,
    pub fate: Fate,
}

impl Workload {
    pub fn read(object: &Value) -> Self {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let number = |path: &str| object.pointer(path).and_then(Value::as_i64);
        Self {
            parallelism: number("/spec/parallelism").unwrap_or(1),
            completions: number("/spec/completions").unwrap_or(1),
            backoff_limit: number("/spec/backoffLimit").unwrap_or(6),
            gpus: text("/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu")
                .parse()
                .unwrap_or(0),
            millis: text("/spec/template/metadata/annotations/sim~1millis")
                .parse()
                .unwrap_or(1000),
            fate: match text("/spec/template/metadata/annotations/sim~1fate") {
                "fails" => Fate::Fails,
                "never-starts" => Fate::NeverStarts,
                _ => Fate::Succeeds,
            },
        }
    }
}
