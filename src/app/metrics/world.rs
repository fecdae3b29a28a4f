//! The gauges of the world, written out of the last summary at each scrape.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, MetricEncoder};
use prometheus_client::metrics::MetricType;

use crate::api::job::Phase;
use crate::dispatcher::summary::Summary;

/// The last summary as gauges.
///
/// A collector and not a `Family` of gauges: the series of a worker or a model that is gone end with it, and a scrape never sees half of
/// an update.
#[derive(Debug, Clone)]
pub(super) struct World(pub(super) Arc<RwLock<Summary>>);

const PHASES: [(Phase, &str); 7] = [
    (Phase::Queued, "Queued"),
    (Phase::Assigned, "Assigned"),
    (Phase::Running, "Running"),
    (Phase::Succeeded, "Succeeded"),
    (Phase::Failed, "Failed"),
    (Phase::Unknown, "Unknown"),
    (Phase::Suspended, "Suspended"),
];

impl Collector for World {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let summary = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut jobs = gauge(&mut encoder, "jobs", "Jobs by phase")?;
        for (phase, label) in PHASES {
            // Every phase has a series, so that an alert on it works before its first job.
            let count = summary.jobs.get(&phase).copied().unwrap_or(0);
            series(&mut jobs, &[("phase", label)], &whole(count))?;
        }
        let mut queue = gauge(&mut encoder, "queue_length", "Jobs that wait for a worker now")?;
        queue.encode_gauge(&whole(summary.queue_length))?;
        let mut unreadable = gauge(&mut encoder, "unreadable_jobs", "Jobs that could not be decoded")?;
        unreadable.encode_gauge(&whole(summary.unreadable_jobs))?;
        let mut connected = gauge(&mut encoder, "worker_connected", "1 while the worker answers, else 0")?;
        for (name, worker) in &summary.workers {
            series(&mut connected, &[("worker", &**name)], &u32::from(worker.connected))?;
        }
        let mut devices = gauge(
            &mut encoder,
            "devices",
            "Devices by worker, accelerator model and state",
        )?;
        for (name, worker) in &summary.workers {
            for (model, counts) in &worker.devices {
                for (state, count) in [
                    ("free", counts.free),
                    ("used", counts.used),
                    ("unavailable", counts.unavailable),
                ] {
                    series(
                        &mut devices,
                        &[("worker", &**name), ("model", model.as_str()), ("state", state)],
                        &count,
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// A count as a gauge holds it; no count gets near the limit.
fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn gauge<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)
}

fn series<const N: usize>(
    metric: &mut MetricEncoder<'_>,
    labels: &[(&str, &str); N],
    value: &impl EncodeGaugeValue,
) -> Result<(), fmt::Error>
where
    for<'a> [(&'a str, &'a str); N]: EncodeLabelSet,
{
    metric.encode_family(labels)?.encode_gauge(value)
}
