//! Label selectors over the labels of `WorkerCluster` objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Does a selector match? The rules are those of `LabelSelectorAsSelector` in apimachinery: an empty selector matches everything, all requirements
/// must hold, `NotIn` holds when the key is absent. A requirement that the API server would refuse (unknown operator, `In` without values) matches nothing:
/// to match everything would send the job where its user did not want it.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    selector
        .match_labels
        .iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().flatten().all(|r| holds(r, labels))
}

fn holds(requirement: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|v| values.contains(v)),
        "NotIn" => !values.is_empty() && !value.is_some_and(|v| values.contains(v)),
        "Exists" => values.is_empty() && value.is_some(),
        "DoesNotExist" => values.is_empty() && value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> BTreeMap<String, String> {
        [("region", "eu"), ("tier", "onprem")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into()
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: key.into(),
                operator: operator.into(),
                values: Some(values.iter().map(ToString::to_string).collect()),
            }]),
            match_labels: None,
        }
    }

    #[test]
    fn an_empty_selector_matches_everything() {
        assert!(matches(&LabelSelector::default(), &labels()));
        assert!(matches(&LabelSelector::default(), &BTreeMap::new()));
    }

    #[test]
    fn match_labels_must_all_be_there() {
        let selector = |pairs: &[(&str, &str)]| LabelSelector {
            match_labels: Some(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
            match_expressions: None,
        };
        assert!(matches(&selector(&[("region", "eu"), ("tier", "onprem")]), &labels()));
        assert!(!matches(&selector(&[("region", "eu"), ("tier", "cloud")]), &labels()));
        assert!(!matches(&selector(&[("zone", "a")]), &labels()));
    }

    #[test]
    fn operators_follow_the_api_server() {
        for (key, operator, values, expected) in [
            ("region", "In", &["eu", "us"][..], true),
            ("region", "In", &["us"], false),
            ("zone", "In", &["a"], false),
            ("region", "NotIn", &["us"], true),
            ("region", "NotIn", &["eu"], false),
            ("zone", "NotIn", &["a"], true),
            ("region", "Exists", &[], true),
            ("zone", "Exists", &[], false),
            ("zone", "DoesNotExist", &[], true),
            ("region", "DoesNotExist", &[], false),
            ("region", "In", &[], false),
            ("region", "NotIn", &[], false),
            ("region", "Exists", &["eu"], false),
            ("region", "Equals", &["eu"], false),
        ] {
            assert_eq!(
                matches(&expression(key, operator, values), &labels()),
                expected,
                "{key} {operator} {values:?}"
            );
        }
    }
}
