//! Filters as tables.

use super::*;

fn facts(labels: &[(&str, &str)]) -> Facts {
    let mut labels: Vec<(Arc<str>, Arc<str>)> = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    labels.sort();
    Facts {
        labels,
        ready: true,
        ..Facts::default()
    }
}

fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    Requirement {
        key: key.into(),
        operator,
        values: values.iter().map(ToString::to_string).collect(),
    }
}

fn affinity(terms: Vec<NodeSelectorTerm>) -> Shape {
    Shape {
        node_affinity: terms,
        ..Shape::default()
    }
}

fn expressions(list: Vec<Requirement>) -> NodeSelectorTerm {
    NodeSelectorTerm {
        expressions: list,
        fields: Vec::new(),
    }
}

fn passes(shape: &Shape, facts: &Facts) -> bool {
    check(shape, None, "n1", facts).is_ok()
}

#[test]
fn operators_of_node_affinity() {
    use Operator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
    let node = facts(&[("zone", "a"), ("cores", "64"), ("word", "many")]);
    for (key, operator, values, expected) in [
        ("zone", In, &["a", "b"][..], true),
        ("zone", In, &["b"], false),
        ("rack", In, &["b"], false),
        ("zone", NotIn, &["b"], true),
        ("zone", NotIn, &["a"], false),
        ("rack", NotIn, &["a"], true),
        ("zone", Exists, &[], true),
        ("rack", Exists, &[], false),
        ("rack", DoesNotExist, &[], true),
        ("zone", DoesNotExist, &[], false),
        ("cores", Gt, &["63"], true),
        ("cores", Gt, &["64"], false),
        ("cores", Lt, &["65"], true),
        ("cores", Lt, &["64"], false),
        ("word", Gt, &["1"], false),
        ("rack", Lt, &["1"], false),
    ] {
        let shape = affinity(vec![expressions(vec![requirement(key, operator, values)])]);
        assert_eq!(passes(&shape, &node), expected, "{key} {operator:?} {values:?}");
    }
}

#[test]
fn terms_are_alternatives_and_an_empty_term_is_none() {
    let node = facts(&[("zone", "a")]);
    let matching = || expressions(vec![requirement("zone", Operator::In, &["a"])]);
    let other = || expressions(vec![requirement("zone", Operator::In, &["b"])]);
    assert!(passes(&affinity(vec![other(), matching()]), &node));
    assert!(!passes(&affinity(vec![other()]), &node));
    assert!(!passes(&affinity(vec![NodeSelectorTerm::default()]), &node));
    let name = |n: &str| NodeSelectorTerm {
        expressions: Vec::new(),
        fields: vec![requirement("metadata.name", Operator::In, &[n])],
    };
    assert!(passes(&affinity(vec![name("n1")]), &node));
    assert!(!passes(&affinity(vec![name("n2")]), &node));
}

#[test]
fn taints_must_be_tolerated_but_for_soft_ones() {
    use NodeTaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};
    let toleration = |key: &str, exists, value: &str, effect| Toleration {
        key: key.into(),
        exists,
        value: value.into(),
        effect,
    };
    for (effect, toleration, expected) in [
        (NoSchedule, None, false),
        (NoExecute, None, false),
        (PreferNoSchedule, None, true),
        (NoSchedule, Some(toleration("k", false, "v", None)), true),
        (NoSchedule, Some(toleration("k", false, "v", Some(NoSchedule))), true),
        (NoExecute, Some(toleration("k", false, "v", Some(NoSchedule))), false),
        (NoSchedule, Some(toleration("k", false, "w", None)), false),
        (NoSchedule, Some(toleration("k", true, "", None)), true),
        (NoSchedule, Some(toleration("", true, "", None)), true),
        (NoSchedule, Some(toleration("", false, "v", None)), false),
        (NoSchedule, Some(toleration("other", true, "", None)), false),
    ] {
        let node = Facts {
            taints: Arc::new([NodeTaint {
                key: "k".into(),
                value: "v".into(),
                effect,
            }]),
            ..facts(&[])
        };
        let shape = Shape {
            tolerations: toleration.iter().cloned().collect(),
            ..Shape::default()
        };
        assert_eq!(passes(&shape, &node), expected, "{effect:?} {toleration:?}");
    }
}

#[test]
fn a_cordon_may_be_tolerated_and_absence_may_not() {
    let shape = Shape {
        tolerations: vec![Toleration {
            key: String::new(),
            exists: true,
            value: String::new(),
            effect: None,
        }],
        ..Shape::default()
    };
    let cordoned = Facts {
        unschedulable: true,
        ..facts(&[])
    };
    assert_eq!(
        check(&Shape::default(), None, "n", &cordoned),
        Err(Reason::Unschedulable)
    );
    assert_eq!(check(&shape, None, "n", &cordoned), Ok(()));
    let away = Facts {
        ready: false,
        ..facts(&[])
    };
    assert_eq!(check(&shape, None, "n", &away), Err(Reason::NodeNotReady));
    let going = Facts {
        deleting: true,
        ..facts(&[])
    };
    assert_eq!(check(&shape, None, "n", &going), Err(Reason::NodeDeleting));
}

#[test]
fn a_runtime_class_adds_its_selector_and_tolerations() {
    let runtime = RuntimeClassRow {
        node_selector: vec![("kata".into(), "yes".into())],
        tolerations: vec![Toleration {
            key: "kata".into(),
            exists: true,
            value: String::new(),
            effect: None,
        }],
        ..RuntimeClassRow::default()
    };
    let node = Facts {
        taints: Arc::new([NodeTaint {
            key: "kata".into(),
            value: String::new(),
            effect: NodeTaintEffect::NoSchedule,
        }]),
        ..facts(&[("kata", "yes")])
    };
    let shape = Shape::default();
    assert_eq!(check(&shape, Some(&runtime), "n", &node), Ok(()));
    assert_eq!(check(&shape, None, "n", &node), Err(Reason::UntoleratedTaint));
    assert_eq!(
        check(&shape, Some(&runtime), "n", &facts(&[])),
        Err(Reason::SelectorMismatch)
    );
}

#[test]
fn templates_that_the_api_server_refuses_are_broken() {
    let one = |r| affinity(vec![expressions(vec![r])]);
    assert_eq!(
        validate(&one(requirement("zone", Operator::In, &[]))),
        Err("node affinity on zone: operator In has []; it takes at least one value".into())
    );
    assert_eq!(
        validate(&one(requirement("cores", Operator::Gt, &["many"]))),
        Err("node affinity on cores: operator Gt has [\"many\"]; it takes one integer".into())
    );
    let fields = NodeSelectorTerm {
        expressions: Vec::new(),
        fields: vec![requirement("spec.nodeName", Operator::In, &["n"])],
    };
    assert!(validate(&affinity(vec![fields])).is_err());
    assert_eq!(validate(&one(requirement("zone", Operator::Exists, &[]))), Ok(()));
}
