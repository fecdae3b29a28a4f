//! Requests, as the programs that serve or send them count them.

use std::collections::BTreeMap;

use crate::Result;
use crate::world::World;

/// A page of metrics in Prometheus' text format.
#[derive(Debug, Clone, Default)]
pub struct Exposition {
    series: Vec<(String, BTreeMap<String, String>, f64)>,
}

impl Exposition {
    /// The series of a page. Label values with quotes or commas in them are in none of the metrics that are read here.
    pub fn of(text: &str) -> Self {
        let series = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let (series, value) = line.rsplit_once(' ')?;
                let (name, labels) = series.split_once('{').unwrap_or((series, ""));
                let labels = labels
                    .trim_end_matches('}')
                    .split(',')
                    .filter_map(|label| label.split_once('='))
                    .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
                    .collect();
                Some((name.to_owned(), labels, value.parse().ok()?))
            })
            .collect();
        Self { series }
    }

    /// The sum of all series of `name` with these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.series
            .iter()
            .filter(|(of, _, _)| of == name)
            .filter(|(_, has, _)| {
                labels
                    .iter()
                    .all(|(label, value)| has.get(*label).is_some_and(|v| v == value))
            })
            .map(|(_, _, value)| value)
            .sum()
    }

    /// The sums of `name` by the values of one label.
    fn by(&self, name: &str, key: impl Fn(&BTreeMap<String, String>) -> Option<String>) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (_, labels, value) in self.series.iter().filter(|(of, _, _)| of == name) {
            if let Some(key) = key(labels) {
                *sums.entry(key).or_default() += value;
            }
        }
        sums
    }
}

/// All requests so far: of the manager, of all workers together, and as the operator counts its own.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    manager: BTreeMap<String, f64>,
    workers: BTreeMap<String, f64>,
    operator: BTreeMap<String, f64>,
}

/// Resources whose requests tell of jobs; everything else is what control planes do by themselves.
const TOLD: [&str; 6] = [
    "multikueuejobs",
    "multikueuejobs/status",
    "workerclusters",
    "workerclusters/status",
    "jobs",
    "events",
];

impl Counts {
    /// Asks all API servers, and the operator.
    pub async fn take(world: &World) -> Result<Self> {
        let mut workers = BTreeMap::new();
        for worker in &world.workers {
            for (key, value) in served(&worker.plane.metrics().await?) {
                *workers.entry(key).or_default() += value;
            }
        }
        let own = world.operator_metrics().await?;
        let effect =
            |labels: &BTreeMap<String, String>| Some(format!("{:<20} {}", labels.get("kind")?, labels.get("outcome")?));
        Ok(Self {
            manager: served(&world.manager.metrics().await?),
            workers,
            operator: own.by("multikueue_effects_total", effect),
        })
    }

    /// What was added since `earlier`, for each of `jobs` jobs.
    pub fn since(&self, earlier: &Self, jobs: usize) -> Self {
        let per_job = |now: &BTreeMap<String, f64>, then: &BTreeMap<String, f64>| {
            now.iter()
                .map(|(key, value)| (key.clone(), (value - then.get(key).unwrap_or(&0.0)) / jobs as f64))
                .filter(|(_, value)| *value > 0.0)
                .collect()
        };
        Self {
            manager: per_job(&self.manager, &earlier.manager),
            workers: per_job(&self.workers, &earlier.workers),
            operator: per_job(&self.operator, &earlier.operator),
        }
    }

    /// Writes of the operator on jobs, on the manager. Nobody else patches there.
    pub fn manager_writes(&self) -> f64 {
        sum(&self.manager, &["PATCH multikueuejobs", "PATCH multikueuejobs/status"])
    }

    /// Writes of the operator on Jobs, on workers. Controllers there write by PUT of the status subresource.
    pub fn worker_writes(&self) -> f64 {
        sum(&self.workers, &["POST jobs", "PATCH jobs", "DELETE jobs"])
    }

    /// Reads of jobs on the manager, of Jobs on workers, and of pods by the operator.
    pub fn reads(&self) -> f64 {
        let pods: f64 = self
            .operator
            .iter()
            .filter(|(key, _)| key.starts_with("list_pods"))
            .map(|(_, value)| value)
            .sum();
        sum(&self.manager, &["GET multikueuejobs"]) + sum(&self.workers, &["GET jobs"]) + pods
    }

    /// For people.
    pub fn print(&self) {
        for (title, counts) in [
            ("served by the manager", &self.manager),
            ("served by the workers", &self.workers),
            ("sent by the operator, leases and events too", &self.operator),
        ] {
            println!("  {title}:");
            for (key, value) in counts {
                println!("    {value:8.3}  {key}");
            }
        }
    }
}

fn sum(counts: &BTreeMap<String, f64>, keys: &[&str]) -> f64 {
    // An empty sum of floats is -0.
    keys.iter().filter_map(|key| counts.get(*key)).sum::<f64>() + 0.0
}

fn served(page: &str) -> BTreeMap<String, f64> {
    Exposition::of(page).by("apiserver_request_total", |labels| {
        let (verb, resource, sub) = (labels.get("verb")?, labels.get("resource")?, labels.get("subresource")?);
        let resource = if sub.is_empty() {
            resource.clone()
        } else {
            format!("{resource}/{sub}")
        };
        TOLD.contains(&&*resource).then(|| format!("{verb} {resource}"))
    })
}
