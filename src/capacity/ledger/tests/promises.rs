//! Room that is held for jobs, member by member.

use super::*;

fn placed(ledger: &Ledger, id: &str) -> Vec<(String, i64)> {
    ledger.placed(id).into_iter().map(|(n, k)| (n.to_string(), k)).collect()
}

#[test]
fn a_promise_is_room_that_nobody_else_gets() {
    let mut ledger = ledger(&[node("a", 4), node("b", 4)], &[]);
    ledger.promise(&"job".into(), &[set(&gpu(4), 1)]);
    assert_eq!(fits(&mut ledger, &gpu(4)), 1);
    let generation = ledger.generation();
    // Its pod appears where it was planned: the same room, once.
    ledger.upsert_pod(&own("p", "a", 4, "job"));
    assert_eq!(fits(&mut ledger, &gpu(4)), 1);
    assert_eq!(ledger.generation(), generation, "nothing became free");
    assert_eq!(placed(&ledger, "job"), []);
    ledger.delete_pod("team", "p");
    assert_eq!(fits(&mut ledger, &gpu(4)), 1, "the member is wanted still");
    ledger.release("job");
    assert_eq!(fits(&mut ledger, &gpu(4)), 2);
    assert!(ledger.generation() > generation);
}

#[test]
fn a_pod_that_lands_elsewhere_frees_the_node_it_was_planned_on() {
    let mut ledger = ledger(&[node("a", 4), node("b", 4)], &[]);
    ledger.promise(&"job".into(), &[set(&gpu(4), 1)]);
    assert_eq!(placed(&ledger, "job"), [("a".into(), 1)]);
    ledger.upsert_pod(&own("p", "b", 4, "job"));
    assert_eq!(placed(&ledger, "job"), []);
    assert_eq!(fits(&mut ledger, &gpu(4)), 1);
}

#[test]
fn members_move_when_others_take_their_node() {
    let mut ledger = ledger(&[node("a", 4), node("b", 8)], &[]);
    ledger.promise(&"job".into(), &[set(&gpu(4), 1)]);
    assert_eq!(placed(&ledger, "job"), [("a".into(), 1)]);
    ledger.upsert_pod(&pod("stranger", "a", 1));
    assert_eq!(placed(&ledger, "job"), [("b".into(), 1)]);
    // The youngest promise leaves first.
    ledger.promise(&"young".into(), &[set(&gpu(4), 1)]);
    ledger.upsert_pod(&pod("another", "b", 2));
    assert_eq!(placed(&ledger, "job"), [("b".into(), 1)]);
    assert_eq!((placed(&ledger, "young"), ledger.unplaced()), (vec![], 1));
}

#[test]
fn what_an_unplaced_member_waits_for_nothing_else_takes() {
    let mut ledger = ledger(&[node("a", 4)], &[]);
    ledger.promise(&"job".into(), &[set(&gpu(4), 1)]);
    ledger.upsert_pod(&pod("stranger", "a", 1));
    assert_eq!(ledger.unplaced(), 1);
    assert_eq!(
        fits(&mut ledger, &gpu(1)),
        0,
        "three are free, and all of them are waited for"
    );
    let generation = ledger.generation();
    ledger.delete_pod("team", "stranger");
    assert_eq!((ledger.unplaced(), fits(&mut ledger, &gpu(1))), (0, 0));
    ledger.set_wanted("job", 0);
    assert_eq!(fits(&mut ledger, &gpu(1)), 4);
    assert!(ledger.generation() > generation);
}

#[test]
fn the_oldest_promise_gets_room_first() {
    let mut ledger = ledger(&[], &[]);
    ledger.promise(&"big".into(), &[set(&gpu(8), 1)]);
    ledger.promise(&"small".into(), &[set(&gpu(1), 1)]);
    assert_eq!(ledger.unplaced(), 2);
    ledger.upsert_node(&node("a", 8));
    assert_eq!(placed(&ledger, "big"), [("a".into(), 1)]);
    assert_eq!(ledger.unplaced(), 1);
    ledger.upsert_node(&node("b", 1));
    assert_eq!(placed(&ledger, "small"), [("b".into(), 1)]);
}

#[test]
fn wanted_members_fall_as_members_succeed() {
    let mut ledger = ledger(&[node("a", 8)], &[own("p0", "a", 2, "job"), own("p1", "a", 2, "job")]);
    ledger.promise(&"job".into(), &[set(&gpu(2), 3)]);
    assert_eq!(fits(&mut ledger, &gpu(2)), 1);
    ledger.set_wanted("job", 2);
    assert_eq!(fits(&mut ledger, &gpu(2)), 2);
    assert_eq!(
        ledger.job_pods("job"),
        JobPods {
            bound: 2,
            running: 2,
            deleting: 0
        }
    );
}

#[test]
fn nodes_that_go_take_no_promise_with_them() {
    let mut ledger = ledger(&[node("a", 4), node("b", 4)], &[]);
    ledger.promise(&"job".into(), &[set(&gpu(4), 1)]);
    ledger.delete_node("a");
    assert_eq!(placed(&ledger, "job"), [("b".into(), 1)]);
    ledger.upsert_node(&tainted(node("b", 4), "x", NodeTaintEffect::NoSchedule));
    assert_eq!(ledger.unplaced(), 1);
    ledger.upsert_node(&node("b", 4));
    assert_eq!(ledger.unplaced(), 0);
}

#[test]
fn pod_sets_of_a_job_are_packed_together_or_not_at_all() {
    let sets = [set(&gpu(8), 1), set(&gpu(4), 2)];
    let mut small = ledger(&[node("a", 8)], &[]);
    assert_eq!(small.plan(&sets), None);
    assert_eq!(
        small.explain(&sets).map(|s| s.message),
        Some("8 nvidia.com/gpu free, at most 8 on one node; 16 needed by 2 pod sets together".into())
    );
    let mut large = ledger(&[node("a", 8), node("b", 8)], &[]);
    assert!(large.plan(&sets).is_some());
    large.promise(&"job".into(), &sets);
    assert_eq!((large.unplaced(), fits(&mut large, &gpu(1))), (0, 0));
    // A pod counts for the set whose members are charged what it is.
    large.upsert_pod(&own("p", "b", 4, "job"));
    assert_eq!((large.unplaced(), fits(&mut large, &gpu(1))), (0, 0));
}

#[test]
fn best_fit_leaves_scarce_models_and_large_blocks_whole() {
    let t4 = labelled(node("t4", 4), &[("nvidia.com/gpu.product", "T4")]);
    let h100 = labelled(node("h100", 4), &[("nvidia.com/gpu.product", "H100")]);
    let mut mixed = ledger(&[h100, t4], &[]);
    mixed.set_model_ranks(|name| if name == "H100" { 2 } else { 1 });
    mixed.promise(&"any".into(), &[set(&gpu(1), 2)]);
    assert_eq!(placed(&mixed, "any"), [("t4".into(), 2)]);
    assert_eq!(mixed.plan(&[set(&gpu(4), 1)]).map(|c| c.rank), Some(2));

    let blocks: Vec<NodeRow> = [8, 1, 3].iter().map(|n| node(&format!("n{n}"), *n)).collect();
    let mut blocks = ledger(&blocks, &[]);
    blocks.promise(&"job".into(), &[set(&gpu(1), 3)]);
    assert_eq!(blocks.devices().largest_free_block, 8);
    blocks.promise(&"cpu".into(), &[set(&Arc::new(asks(&[("cpu", 1000)])), 1)]);
    assert_ne!(placed(&blocks, "cpu"), [("n8".into(), 1)]);
}
