//! Random lives of a worker against a count that knows no caches: fit, I2, and what unplaced members may lack.

use proptest::prelude::*;

use super::*;

/// One thing that happens to a worker.
#[derive(Debug, Clone)]
enum Step {
    Node {
        name: u8,
        gpus: i64,
        cpu: i64,
        pods: i64,
        zone: u8,
        tainted: bool,
        ready: bool,
    },
    NodeGone(u8),
    Pod {
        name: u8,
        node: u8,
        gpus: i64,
        cpu: i64,
        job: Option<u8>,
    },
    PodGone(u8),
    PodsListed(Vec<u8>),
    NodesListed(Vec<u8>),
    Promise {
        job: u8,
        shape: u8,
        count: i64,
    },
    Wanted {
        job: u8,
        n: i64,
    },
    Release(u8),
    Lost(bool),
    Overhead(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4u8, 0..9i64, 0..5i64, 0..7i64, 0..2u8, prop::bool::weighted(0.2), prop::bool::weighted(0.9)).prop_map(
            |(name, gpus, cpu, pods, zone, tainted, ready)| Step::Node { name, gpus, cpu, pods, zone, tainted, ready }
        ),
        1 => (0..4u8).prop_map(Step::NodeGone),
        8 => (0..12u8, 0..5u8, 0..5i64, 0..3i64, prop::option::weighted(0.5, 0..4u8))
            .prop_map(|(name, node, gpus, cpu, job)| Step::Pod { name, node, gpus, cpu, job }),
        4 => (0..12u8).prop_map(Step::PodGone),
        1 => prop::collection::vec(0..12u8, 0..6).prop_map(Step::PodsListed),
        1 => prop::collection::vec(0..4u8, 0..4).prop_map(Step::NodesListed),
        6 => (0..4u8, 0..SHAPES, 0..6i64).prop_map(|(job, shape, count)| Step::Promise { job, shape, count }),
        2 => (0..4u8, 0..6i64).prop_map(|(job, n)| Step::Wanted { job, n }),
        2 => (0..4u8).prop_map(Step::Release),
        1 => any::<bool>().prop_map(Step::Lost),
        1 => (0..2i64).prop_map(Step::Overhead),
    ]
}

const SHAPES: u8 = 6;

fn shape(n: u8) -> Arc<Shape> {
    let base = |gpus, cpu| asks(&[("nvidia.com/gpu", gpus), ("cpu", cpu)]);
    match n {
        0 => Arc::new(base(1, 0)),
        1 => Arc::new(base(2, 1)),
        2 => any_taint(&base(4, 1)),
        3 => Arc::new(base(0, 2)),
        4 => Arc::new(Shape {
            node_selector: vec![("zone".into(), "z1".into())],
            ..base(1, 1)
        }),
        _ => Arc::new(Shape {
            runtime_class: Some("kata".into()),
            ..base(1, 1)
        }),
    }
}

/// The worker as a list of facts, with nothing cached.
#[derive(Debug, Default)]
struct Model {
    nodes: BTreeMap<String, NodeRow>,
    pods: BTreeMap<String, PodRow>,
    jobs: BTreeMap<String, (Arc<Shape>, i64, i64)>,
    overhead: i64,
    known: bool,
}

fn node_name(n: u8) -> String {
    format!("n{n}")
}

impl Model {
    fn request(&self, shape: &Shape) -> BTreeMap<String, i64> {
        let mut request: BTreeMap<String, i64> = shape.requests.iter().map(|(k, v)| (k.to_string(), v)).collect();
        if shape.runtime_class.is_some() {
            *request.entry("cpu".into()).or_default() += self.overhead;
        }
        request.insert("pods".into(), 1);
        request.retain(|_, v| *v > 0);
        request
    }

    fn passes(shape: &Shape, node: &NodeRow) -> bool {
        let tolerated = !shape.tolerations.is_empty();
        node.ready
            && (node.taints.is_empty() || tolerated)
            && shape
                .node_selector
                .iter()
                .all(|(k, v)| node.labels.iter().any(|(l, w)| **l == **k && **w == **v))
    }

    /// What bound pods leave of a node.
    fn free(&self, node: &NodeRow) -> BTreeMap<String, i64> {
        let mut free: BTreeMap<String, i64> = node.allocatable.iter().map(|(k, v)| (k.to_string(), v)).collect();
        for pod in self.pods.values().filter(|p| p.node == node.name) {
            for (k, v) in pod.charged.iter() {
                *free.entry(k.to_string()).or_default() -= v;
            }
            *free.entry("pods".into()).or_default() -= 1;
        }
        free
    }

    fn bound(&self, job: &str) -> i64 {
        i64::try_from(self.pods.values().filter(|p| p.job_uid.as_deref() == Some(job)).count()).unwrap()
    }
}

fn apply(step: &Step, ledger: &mut Ledger, model: &mut Model) {
    let job_name = |j: u8| format!("j{j}");
    match step {
        Step::Node {
            name,
            gpus,
            cpu,
            pods,
            zone,
            tainted: taint,
            ready,
        } => {
            let mut row = labelled(
                NodeRow {
                    name: node_name(*name).into(),
                    ready: *ready,
                    ..NodeRow::default()
                },
                &[("zone", ["z0", "z1"][*zone as usize])],
            );
            row.allocatable = amounts(&[("nvidia.com/gpu", *gpus), ("cpu", *cpu), ("pods", *pods)]);
            if *taint {
                row = tainted(row, "x", NodeTaintEffect::NoSchedule);
            }
            ledger.upsert_node(&row);
            model.nodes.insert(node_name(*name), row);
        }
        Step::NodeGone(name) => {
            ledger.delete_node(&node_name(*name));
            model.nodes.remove(&node_name(*name));
        }
        Step::Pod {
            name,
            node,
            gpus,
            cpu,
            job,
        } => {
            let mut row = pod(&format!("p{name}"), &node_name(*node), *gpus);
            row.charged = amounts(&[("nvidia.com/gpu", *gpus), ("cpu", *cpu)]);
            row.job_uid = job.map(|j| job_name(j).into());
            ledger.upsert_pod(&row);
            model.pods.insert(row.name.to_string(), row);
        }
        Step::PodGone(name) => {
            ledger.delete_pod("team", &format!("p{name}"));
            model.pods.remove(&format!("p{name}"));
        }
        Step::PodsListed(names) => {
            model.pods.retain(|k, _| names.iter().any(|n| *k == format!("p{n}")));
            ledger.reset_pods(&model.pods.values().cloned().collect::<Vec<_>>());
            relisted(ledger, model);
        }
        Step::NodesListed(names) => {
            model.nodes.retain(|k, _| names.iter().any(|n| *k == node_name(*n)));
            ledger.reset_nodes(&model.nodes.values().cloned().collect::<Vec<_>>());
            relisted(ledger, model);
        }
        Step::Promise { job, shape: s, count } => {
            let shape = shape(*s);
            ledger.promise(&job_name(*job).into(), &[set(&shape, *count)]);
            model.jobs.insert(job_name(*job), (shape, *count, *count));
        }
        Step::Wanted { job, n } => {
            ledger.set_wanted(&job_name(*job), *n);
            if let Some(j) = model.jobs.get_mut(&job_name(*job)) {
                j.2 = *n;
            }
        }
        Step::Release(job) => {
            ledger.release(&job_name(*job));
            model.jobs.remove(&job_name(*job));
        }
        Step::Lost(pods) => {
            ledger.watch_lost(if *pods { Watched::Pods } else { Watched::Nodes }, "cut");
            model.known = false;
        }
        Step::Overhead(cpu) => {
            let class = RuntimeClassRow {
                overhead: amounts(&[("cpu", *cpu)]),
                ..RuntimeClassRow::default()
            };
            ledger.set_runtime_classes([("kata".into(), class)].into());
            model.overhead = *cpu;
        }
    }
}

fn relisted(ledger: &Ledger, model: &mut Model) {
    model.known = ledger.known().is_ok();
}

/// Members placed on a node, as the ledger has them.
fn placed(ledger: &Ledger) -> BTreeMap<String, Vec<(String, i64)>> {
    let mut placed: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
    for id in ledger.promised() {
        for (node, n) in ledger.placed(id) {
            placed.entry(node.to_string()).or_default().push((id.to_string(), n));
        }
    }
    placed
}

fn check(ledger: &mut Ledger, model: &Model) -> Result<(), TestCaseError> {
    // Members are neither lost nor made.
    let placed = placed(ledger);
    let mut unplaced = 0;
    for (job, (_, _, wanted)) in &model.jobs {
        let here: i64 = placed
            .values()
            .flatten()
            .filter(|(j, _)| j == job)
            .map(|(_, n)| n)
            .sum();
        let need = (wanted - model.bound(job)).max(0);
        prop_assert!(here <= need, "{job}: {here} placed, {need} needed");
        unplaced += need - here;
    }
    prop_assert_eq!(ledger.unplaced(), unplaced);
    if !model.known {
        prop_assert!(matches!(ledger.fit(&gpu(1)), Fit::Unknown(_)));
        return Ok(());
    }
    // I2: no node is promised more than it has.
    let mut left = BTreeMap::new();
    for (name, row) in &model.nodes {
        let mut free = model.free(row);
        for (job, n) in placed.get(name).into_iter().flatten() {
            let shape = &model.jobs[job].0;
            prop_assert!(Model::passes(shape, row), "{job} on {name}");
            for (k, v) in model.request(shape) {
                *free.entry(k).or_default() -= n * v;
            }
        }
        for (job, _) in placed.get(name).into_iter().flatten() {
            for k in model.request(&model.jobs[job].0).keys() {
                prop_assert!(free[k] >= 0, "{name} is promised {} {k} too much", -free[k]);
            }
        }
        left.insert(name.clone(), free);
    }
    prop_assert!(placed.keys().all(|n| model.nodes.contains_key(n)));
    // Fit, by placing members one by one; what unplaced members wait for may only lower it.
    for s in 0..SHAPES {
        let shape = shape(s);
        let mut count = 0;
        for (name, row) in &model.nodes {
            let mut free = left[name].clone();
            let request = model.request(&shape);
            while Model::passes(&shape, row) && request.iter().all(|(k, v)| free.get(k).copied().unwrap_or(0) >= *v) {
                count += 1;
                for (k, v) in &request {
                    *free.entry(k.clone()).or_default() -= v;
                }
            }
        }
        let fit = match ledger.fit(&shape) {
            Fit::Known { members } => members,
            Fit::Unknown(_) if shape.runtime_class.is_some() => continue,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        if unplaced == 0 {
            prop_assert_eq!(fit, count, "shape {}", s);
        } else {
            prop_assert!(fit <= count, "shape {s}: {fit} > {count}");
        }
        // A plan says yes exactly when the members fit, and explain no exactly when they do not.
        for n in [1, 2, 5] {
            let sets = [set(&shape, n)];
            prop_assert_eq!(ledger.plan(&sets).is_some(), fit >= n);
            prop_assert_eq!(ledger.explain(&sets).is_none(), fit >= n);
        }
    }
    // While members of a shape wait, nothing is free for that shape.
    for (job, (shape, _, wanted)) in &model.jobs {
        let here: i64 = placed
            .values()
            .flatten()
            .filter(|(j, _)| j == job)
            .map(|(_, n)| n)
            .sum();
        if (wanted - model.bound(job)).max(0) > here
            && let Fit::Known { members } = ledger.fit(shape)
        {
            prop_assert_eq!(members, 0, "{} waits for room", job);
        }
    }
    // Totals are derived from the nodes, and from nothing else.
    let report = ledger.devices();
    let all: i64 = model.nodes.values().map(|n| n.allocatable.get("nvidia.com/gpu")).sum();
    let counted: i64 = report.by_model.values().map(|d| d.free + d.used + d.unavailable).sum();
    prop_assert_eq!(counted, all);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_life_of_a_worker_keeps_the_books(steps in prop::collection::vec(step(), 1..40)) {
        let mut ledger = ledger(&[], &[]);
        let mut model = Model { known: true, ..Model::default() };
        for step in &steps {
            let (generation, before) = (ledger.generation(), totals(&mut ledger));
            apply(step, &mut ledger, &mut model);
            check(&mut ledger, &model)?;
            // Room never grows unseen: jobs that were tried are skipped until the generation does.
            if ledger.generation() == generation {
                for (before, after) in before.iter().zip(totals(&mut ledger)) {
                    prop_assert!(after <= *before, "room grew from {before} to {after} unseen by {step:?}");
                }
            }
        }
    }

    #[test]
    fn the_order_of_events_does_not_matter_to_what_is_free(
        gpus in prop::collection::vec(1..9i64, 1..5),
        pods in prop::collection::vec((0..5usize, 1..3i64), 0..8),
        order in any::<prop::sample::Index>(),
    ) {
        let nodes: Vec<NodeRow> = gpus.iter().enumerate().map(|(i, n)| node(&format!("n{i}"), *n)).collect();
        let pods: Vec<PodRow> = pods.iter().enumerate().map(|(i, (at, n))| pod(&format!("p{i}"), &format!("n{at}"), *n)).collect();
        let mut listed = ledger(&nodes, &pods);
        let mut told = ledger(&[], &[]);
        // Pods of nodes that are not known yet are kept for them.
        let split = order.index(pods.len() + 1);
        pods[..split].iter().for_each(|p| told.upsert_pod(p));
        nodes.iter().rev().for_each(|n| told.upsert_node(n));
        pods[split..].iter().for_each(|p| told.upsert_pod(p));
        for n in 1..9 {
            prop_assert_eq!(fits(&mut listed, &gpu(n)), fits(&mut told, &gpu(n)));
        }
        prop_assert_eq!(listed.devices(), told.devices());
    }
}

fn totals(ledger: &mut Ledger) -> Vec<i64> {
    (0..SHAPES)
        .map(|s| match ledger.fit(&shape(s)) {
            Fit::Known { members } => members,
            Fit::Unknown(_) | Fit::Error(_) => 0,
        })
        .collect()
}
