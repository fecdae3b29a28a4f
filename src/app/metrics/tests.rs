use std::collections::BTreeMap;

use super::*;
use crate::api::job::Phase;
use crate::api::worker_cluster::Devices;
use crate::dispatcher::summary::WorkerSummary;

fn value(text: &str, series: &str) -> Option<f64> {
    text.lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn requests_are_counted_by_kind_and_outcome() {
    let metrics = Metrics::new();
    metrics.effect_done(&Target::Manager, "create_mirror", "done", Duration::from_millis(3));
    metrics.effect_done(&Target::Manager, "create_mirror", "done", Duration::from_millis(5));
    metrics.effect_done(&Target::Manager, "create_mirror", "forbidden", Duration::from_millis(5));
    metrics.effect_done(&Target::Manager, "get_job", "not_sent", Duration::ZERO);
    let text = metrics.encode().unwrap();
    let count = |kind, outcome| {
        value(
            &text,
            &format!("multikueue_effects_total{{kind=\"{kind}\",outcome=\"{outcome}\"}}"),
        )
    };
    assert_eq!(count("create_mirror", "done"), Some(2.0));
    assert_eq!(count("create_mirror", "forbidden"), Some(1.0));
    assert_eq!(count("get_job", "not_sent"), Some(1.0));
    assert_eq!(
        value(
            &text,
            "multikueue_effect_duration_seconds_count{kind=\"create_mirror\"}"
        ),
        Some(3.0)
    );
    assert_eq!(
        value(&text, "multikueue_effect_duration_seconds_count{kind=\"get_job\"}"),
        None,
        "it took no time"
    );
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn the_world_is_shown_as_it_is_now_and_series_of_a_gone_worker_end() {
    let metrics = Metrics::new();
    let devices = BTreeMap::from([(
        "H100".to_owned(),
        Devices {
            free: 3,
            used: 4,
            unavailable: 1,
        },
    )]);
    metrics.set_summary(Summary {
        jobs: BTreeMap::from([(Phase::Running, 7)]),
        queue_length: 2,
        unreadable_jobs: 0,
        workers: BTreeMap::from([
            (
                "eu".into(),
                WorkerSummary {
                    connected: true,
                    devices,
                },
            ),
            ("us".into(), WorkerSummary::default()),
        ]),
        dispatch_latencies: vec![Duration::from_millis(40), Duration::from_secs(4)],
    });
    let text = metrics.encode().unwrap();
    assert_eq!(value(&text, "multikueue_jobs{phase=\"Running\"}"), Some(7.0));
    assert_eq!(value(&text, "multikueue_jobs{phase=\"Failed\"}"), Some(0.0));
    assert_eq!(value(&text, "multikueue_queue_length"), Some(2.0));
    assert_eq!(value(&text, "multikueue_worker_connected{worker=\"eu\"}"), Some(1.0));
    assert_eq!(value(&text, "multikueue_worker_connected{worker=\"us\"}"), Some(0.0));
    for (state, count) in [("free", 3.0), ("used", 4.0), ("unavailable", 1.0)] {
        let series = format!("multikueue_devices{{worker=\"eu\",model=\"H100\",state=\"{state}\"}}");
        assert_eq!(value(&text, &series), Some(count));
    }
    assert_eq!(value(&text, "multikueue_dispatch_latency_seconds_count"), Some(2.0));

    metrics.set_summary(Summary::default());
    let text = metrics.encode().unwrap();
    assert!(!text.contains("worker=\"eu\""));
    assert_eq!(
        value(&text, "multikueue_dispatch_latency_seconds_count"),
        Some(2.0),
        "a histogram only grows"
    );
}

#[test]
fn leadership_and_restarted_watches_are_shown() {
    let metrics = Metrics::new();
    assert_eq!(value(&metrics.encode().unwrap(), "multikueue_leader"), Some(0.0));
    metrics.leading(true);
    metrics.watch_restarted("nodes");
    let text = metrics.encode().unwrap();
    assert_eq!(value(&text, "multikueue_leader"), Some(1.0));
    assert_eq!(
        value(&text, "multikueue_watch_restarts_total{kind=\"nodes\"}"),
        Some(1.0)
    );
    metrics.leading(false);
    assert_eq!(value(&metrics.encode().unwrap(), "multikueue_leader"), Some(0.0));
}
