//! The roles under `deploy/` are what the operator uses, and nothing more.

use std::collections::BTreeSet;

use multikueue::api::worker_cluster::Namespaces;
use multikueue::clusters::access::{RIGHTS, review};
use serde_json::Value;

use crate::plane::{plane, repository};

/// Verb, group, resource.
type Granted = BTreeSet<(String, String, String)>;

/// What the roles of a file grant.
fn granted(file: &str) -> Granted {
    let text = std::fs::read_to_string(repository(file)).unwrap();
    let documents: Vec<Value> = text
        .split("\n---\n")
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect();
    let words = |rule: &Value, key: &str| -> Vec<String> {
        rule[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    let mut granted = Granted::new();
    for rule in documents
        .iter()
        .flat_map(|document| document["rules"].as_array().into_iter().flatten())
    {
        for verb in words(rule, "verbs") {
            for group in words(rule, "apiGroups") {
                for resource in words(rule, "resources") {
                    assert!(![&verb, &group, &resource].contains(&&"*".to_owned()), "{file}: {rule}");
                    granted.insert((verb.clone(), group.clone(), resource));
                }
            }
        }
    }
    granted
}

fn set(rights: &[(&str, &str, &str)]) -> Granted {
    rights
        .iter()
        .map(|(verb, group, resource)| ((*verb).into(), (*group).into(), (*resource).into()))
        .collect()
}

#[test]
fn the_roles_of_a_worker_grant_what_is_asked_for_there_and_nothing_more() {
    let used: Vec<_> = RIGHTS
        .iter()
        .map(|right| (right.verb, right.group, right.resource))
        .collect();
    let mut used = set(&used);
    used.insert((
        "create".into(),
        "authorization.k8s.io".into(),
        "selfsubjectaccessreviews".into(),
    ));
    let namespaces = granted("deploy/worker-role-namespaces.yaml");
    assert_eq!(namespaces, set(&[("create", "", "namespaces")]));
    let base = granted("deploy/worker-role.yaml");
    assert!(
        base.is_disjoint(&namespaces),
        "namespaces are created only where that is wanted"
    );
    assert_eq!(&base | &namespaces, used);
}

#[test]
fn the_role_of_the_manager_writes_status_finalizers_events_and_its_lease_only() {
    let granted = granted("deploy/manager-role.yaml");
    let writes: Granted = granted
        .into_iter()
        .filter(|(verb, ..)| !["get", "list", "watch"].contains(&verb.as_str()))
        .collect();
    assert_eq!(
        writes,
        set(&[
            ("patch", "multikueue.rs", "multikueuejobs"),
            ("patch", "multikueue.rs", "multikueuejobs/status"),
            ("patch", "multikueue.rs", "workerclusters"),
            ("patch", "multikueue.rs", "workerclusters/status"),
            ("create", "events.k8s.io", "events"),
            ("create", "coordination.k8s.io", "leases"),
            ("update", "coordination.k8s.io", "leases"),
        ])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_these_roles_misses_nothing() {
    let kubeconfig = plane()
        .await
        .kubeconfig_service_account("multikueue-system", "multikueue")
        .await
        .unwrap();
    let client = kubeconfig.client().await.unwrap();
    for namespaces in [
        Namespaces::default(),
        Namespaces {
            create: true,
            allow: vec!["team-a".into()],
        },
    ] {
        let access = review(&client, &namespaces).await.unwrap();
        assert_eq!((access.missing, access.degraded), (vec![], vec![]), "{namespaces:?}");
    }
}
