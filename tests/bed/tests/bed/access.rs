//! Who one is, and what the API server then says.

use std::fs;
use std::time::Duration;

use bed::{ControlPlaneOptions, Error, apply_yaml, create_namespace, eventually};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};

use crate::world::{BED, SOON, control_plane};

async fn who_am_i(client: Client) -> (String, Vec<String>) {
    let reviews = Api::<SelfSubjectReview>::all(client);
    let review = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    (user.username.unwrap(), user.groups.unwrap())
}

#[tokio::test]
async fn an_api_server_serves_with_its_version() {
    let manager = control_plane("manager").await;
    let version = manager.client().await.unwrap().apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.37.2");
    assert!(manager.metrics().await.unwrap().contains("apiserver_request_total"));
}

#[tokio::test]
async fn a_service_account_is_itself_and_may_do_what_its_role_says() {
    let manager = control_plane("manager").await;
    let client = manager.client().await.unwrap();
    create_namespace(&client, "accounts", true).await.unwrap();
    let role = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: accounts}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: robot, namespace: accounts}
rules:
- {apiGroups: [''], resources: [serviceaccounts], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robot, namespace: accounts}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: robot}
subjects:
- {kind: ServiceAccount, name: robot, namespace: accounts}
";
    assert_eq!(apply_yaml(&client, role).await.unwrap().len(), 3);
    let kubeconfig = manager.kubeconfig_service_account("accounts", "robot").await.unwrap();
    let robot = kubeconfig.client().await.unwrap();
    assert_eq!(who_am_i(robot.clone()).await.0, "system:serviceaccount:accounts:robot");
    let accounts = Api::<ServiceAccount>::namespaced(robot.clone(), "accounts");
    eventually(SOON, "the role to count", || async {
        Ok(accounts.list(&ListParams::default()).await?)
    })
    .await
    .unwrap();
    let refused = Api::<ConfigMap>::namespaced(robot, "accounts")
        .list(&ListParams::default())
        .await
        .unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
}

#[tokio::test]
async fn a_client_certificate_is_its_user_and_group_on_its_cluster_only() {
    let (manager, eu) = (control_plane("manager").await, control_plane("eu").await);
    let kubeconfig = manager
        .kubeconfig_client_certificate("ann", Some("research"), Duration::from_hours(1))
        .unwrap();
    let (user, groups) = who_am_i(kubeconfig.client().await.unwrap()).await;
    assert_eq!(user, "ann");
    assert!(groups.contains(&"research".to_owned()), "{groups:?}");
    let elsewhere = kubeconfig.with_server(eu.server());
    let refused = elsewhere.client().await.unwrap().apiserver_version().await.unwrap_err();
    assert!(
        matches!(refused, kube::Error::HyperError(_) | kube::Error::Service(_)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_expired_certificate_is_nobody() {
    let manager = control_plane("manager").await;
    let kubeconfig = manager
        .kubeconfig_client_certificate("late", None, Duration::ZERO)
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let client = kubeconfig.client().await.unwrap();
    let reviews = Api::<SelfSubjectReview>::all(client);
    let refused = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 401));
}

#[tokio::test]
async fn kubectl_speaks_to_its_control_plane() {
    let manager = control_plane("manager").await;
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: by-kubectl}, data: {key: value}}";
    let applied = manager
        .kubectl_with_input(&["apply", "-f", "-"], manifest)
        .await
        .unwrap();
    assert!(applied.status.success(), "{applied:?}");
    let shown = manager
        .kubectl(&["get", "configmap", "by-kubectl", "-o", "jsonpath={.data.key}"])
        .await
        .unwrap();
    assert_eq!(shown.stdout, "value");
    let absent = manager.kubectl(&["get", "configmap", "absent"]).await.unwrap();
    assert!(
        !absent.status.success() && absent.stderr.contains("NotFound"),
        "{absent:?}"
    );
}

#[tokio::test]
async fn a_kind_can_be_used_as_soon_as_its_definition_is_applied() {
    let client = control_plane("manager").await.client().await.unwrap();
    let yaml = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.bed.test}
spec:
  group: bed.test
  names: {kind: Thing, plural: things, singular: thing}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: bed.test/v1
kind: Thing
metadata: {name: first}
";
    let applied = apply_yaml(&client, yaml).await.unwrap();
    assert_eq!(applied[1].metadata.namespace.as_deref(), Some("default"));
    let broken = apply_yaml(&client, "kind: ConfigMap\nmetadata: {name: x}\n")
        .await
        .unwrap_err();
    assert!(matches!(broken, Error::Yaml { index: 1, .. }), "{broken}");
}

#[tokio::test]
async fn the_audit_log_says_who_wrote() {
    let manager = control_plane("manager").await;
    let client = manager.client().await.unwrap();
    create_namespace(&client, "audited", false).await.unwrap();
    let log = manager.audit_log().unwrap();
    eventually(SOON, "the entry in the audit log", || async {
        let text = fs::read_to_string(&log)?;
        let mut entries = text
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let written = entries.any(|entry| {
            entry["verb"] == "create" && entry["objectRef"]["name"] == "audited" && entry["user"]["username"] == "admin"
        });
        if written {
            Ok(())
        } else {
            Err(format!("{} bytes without it", text.len()).into())
        }
    })
    .await
    .unwrap();
    assert!(matches!(
        control_plane("eu").await.audit_log(),
        Err(Error::NotConfigured { .. })
    ));
}

#[tokio::test]
async fn a_deleted_namespace_goes_from_a_manager() {
    let client = control_plane("manager").await.client().await.unwrap();
    create_namespace(&client, "going", true).await.unwrap();
    let namespaces = Api::<Namespace>::all(client);
    namespaces.delete("going", &DeleteParams::default()).await.unwrap();
    eventually(SOON, "the namespace to go", || async {
        match namespaces.get_opt("going").await? {
            None => Ok(()),
            Some(namespace) => Err(format!("{:?}", namespace.status).into()),
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_control_plane_can_come_later_and_keeps_to_itself() {
    let bed = BED.get().await.unwrap();
    let late = bed
        .add_control_plane("late", ControlPlaneOptions::bare())
        .await
        .unwrap();
    let client = late.client().await.unwrap();
    create_namespace(&client, "only-here", false).await.unwrap();
    let elsewhere = Api::<Namespace>::all(control_plane("manager").await.client().await.unwrap());
    assert!(elsewhere.get_opt("only-here").await.unwrap().is_none());
    for name in ["late", "", "Upper", "a/b"] {
        let refused = bed
            .add_control_plane(name, ControlPlaneOptions::bare())
            .await
            .unwrap_err();
        assert!(matches!(refused, Error::BadName { .. }), "{refused}");
    }
    assert!(matches!(late.scheduler(), Err(Error::NotConfigured { .. })));
    assert!(matches!(
        bed.control_plane("absent"),
        Err(Error::UnknownControlPlane { .. })
    ));
}
