use proptest::prelude::*;

use super::*;

fn list(entries: &[(&str, &str)]) -> ResourceList {
    entries
        .iter()
        .map(|(name, text)| ((*name).to_owned(), text.parse().unwrap()))
        .collect()
}

fn amounts(entries: &[(&str, i64)]) -> Amounts {
    let mut amounts = Amounts::default();
    for (name, amount) in entries {
        amounts.set((*name).into(), *amount);
    }
    amounts
}

#[test]
fn cpu_is_in_milli_units_and_all_else_in_whole_units_rounded_up() {
    let read = Amounts::from_quantities(
        &list(&[
            ("cpu", "1.0001"),
            ("memory", "1.5Ki"),
            ("nvidia.com/gpu", "8"),
            ("pods", "110"),
            ("ephemeral-storage", "100m"),
            ("zero", "0"),
        ]),
        &mut Names::default(),
    );
    assert_eq!(
        read,
        amounts(&[
            ("cpu", 1001),
            ("ephemeral-storage", 1),
            ("memory", 1536),
            ("nvidia.com/gpu", 8),
            ("pods", 110)
        ])
    );
}

#[test]
fn names_are_shared_and_not_copied() {
    let mut names = Names::default();
    let first = Amounts::from_quantities(&list(&[("nvidia.com/gpu", "8")]), &mut names);
    let second = Amounts::from_quantities(&list(&[("nvidia.com/gpu", "4")]), &mut names);
    assert!(Arc::ptr_eq(
        first.iter().next().unwrap().0,
        second.iter().next().unwrap().0
    ));
    assert_eq!(names.len(), 1);
}

#[test]
fn sums_stop_at_the_ends_of_int64() {
    let mut sum = amounts(&[("a", i64::MAX), ("b", i64::MIN)]);
    sum.add_assign(&amounts(&[("a", 1)]));
    sum.sub_assign(&amounts(&[("b", 1)]));
    assert_eq!(sum, amounts(&[("a", i64::MAX), ("b", i64::MIN)]));
}

fn any_amounts() -> impl Strategy<Value = Amounts> {
    prop::collection::vec((prop::sample::select(vec!["a", "b", "c", "d", "e"]), -5_i64..5), 0..6)
        .prop_map(|entries| amounts(&entries))
}

proptest! {
    #[test]
    fn arithmetic_is_that_of_each_name_alone_and_leaves_no_zeros(a in any_amounts(), b in any_amounts()) {
        let (mut sum, mut rest, mut peak) = (a.clone(), a.clone(), a.clone());
        sum.add_assign(&b);
        rest.sub_assign(&b);
        peak.max_assign(&b);
        for name in ["a", "b", "c", "d", "e"] {
            prop_assert_eq!(sum.get(name), a.get(name) + b.get(name));
            prop_assert_eq!(rest.get(name), a.get(name) - b.get(name));
            if b.iter().any(|(n, _)| &**n == name) {
                prop_assert_eq!(peak.get(name), a.get(name).max(b.get(name)));
            } else {
                prop_assert_eq!(peak.get(name), a.get(name));
            }
        }
        for result in [&sum, &rest, &peak] {
            prop_assert!(result.iter().all(|(_, amount)| amount != 0));
            prop_assert!(result.iter().zip(result.iter().skip(1)).all(|(one, next)| one.0 < next.0));
        }
        sum.sub_assign(&b);
        prop_assert_eq!(sum, a);
    }
}
