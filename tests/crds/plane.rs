//! One API server with the committed CRDs, shared by all tests of this binary, and the objects they start from.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bed::{BedOptions, ControlPlane, ControlPlaneOptions, Output, Shared};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

static BED: Shared = Shared::new(|| BedOptions::new().control_plane("manager", ControlPlaneOptions::bare()));
static INSTALLED: OnceCell<()> = OnceCell::const_new();

/// A file or folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The YAML files of a folder of the repository, by name.
pub fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(repository(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

/// An API server that serves our kinds and knows our roles, installed as people do: `kubectl apply -f crds` and so on.
pub async fn plane() -> Arc<ControlPlane> {
    let plane = BED.get().await.unwrap().control_plane("manager").unwrap();
    INSTALLED
        .get_or_init(async || {
            let role = |name: &str| format!("deploy/{name}.yaml");
            for path in [
                "crds".into(),
                role("manager-role"),
                role("worker-role"),
                role("worker-role-namespaces"),
            ] {
                let path = repository(&path);
                let output = plane.kubectl(&["apply", "-f", path.to_str().unwrap()]).await.unwrap();
                assert!(output.status.success(), "{}", output.stderr);
            }
            established(&plane, "crd/multikueuejobs.multikueue.rs").await;
            established(&plane, "crd/workerclusters.multikueue.rs").await;
        })
        .await;
    plane
}

/// Waits until a CRD is served.
pub async fn established(plane: &ControlPlane, crd: &str) {
    let output = plane
        .kubectl(&["wait", "--for=condition=Established", "--timeout=30s", crd])
        .await
        .unwrap();
    assert!(output.status.success(), "{}", output.stderr);
}

/// Runs kubectl and fails the test if it fails.
pub async fn kubectl(args: &[&str]) -> String {
    let Output { status, stdout, stderr } = plane().await.kubectl(args).await.unwrap();
    assert!(status.success(), "kubectl {args:?}: {stdout}{stderr}");
    stdout
}

/// Jobs of namespace `default`.
pub async fn jobs() -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("multikueue.rs", "v1alpha1", "MultiKueueJob");
    Api::default_namespaced_with(plane().await.client().await.unwrap(), &ApiResource::from_gvk(&gvk))
}

/// Workers.
pub async fn workers() -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("multikueue.rs", "v1alpha1", "WorkerCluster");
    Api::all_with(plane().await.client().await.unwrap(), &ApiResource::from_gvk(&gvk))
}

/// A small job that is right in every way.
pub fn job(name: &str) -> Value {
    json!({
        "apiVersion": "multikueue.rs/v1alpha1",
        "kind": "MultiKueueJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "template": {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "spec": {
                    "parallelism": 2,
                    "template": {"spec": {
                        "restartPolicy": "Never",
                        "nodeSelector": {"a": "b"},
                        "containers": [{"name": "c", "image": "registry.example/train:1", "env": [{"name": "A", "value": "1"}]}],
                    }},
                },
            },
        },
    })
}

/// A small worker that is right in every way.
pub fn worker(name: &str) -> Value {
    json!({
        "apiVersion": "multikueue.rs/v1alpha1",
        "kind": "WorkerCluster",
        "metadata": {"name": name},
        "spec": {"kubeconfig": {"secretRef": {"name": "eu-kubeconfig"}}},
    })
}

/// The value with another one at a dotted path, made on the way if need be; null removes.
pub fn with(mut root: Value, path: &str, value: Value) -> Value {
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let parent = parents
        .split('.')
        .filter(|key| !key.is_empty())
        .fold(&mut root, |node, key| {
            node.as_object_mut().unwrap().entry(key).or_insert_with(|| json!({}))
        });
    let parent = parent.as_object_mut().unwrap();
    if value.is_null() {
        assert!(parent.remove(last).is_some(), "{path} is not there");
    } else {
        parent.insert(last.to_owned(), value);
    }
    root
}

/// The message of a refusal with 422, or none.
fn refusal<T>(result: kube::Result<T>) -> Option<String> {
    match result {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if status.code == 422 => Some(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

/// What the API server says against creating the object; it is not created.
pub async fn refused(api: &Api<DynamicObject>, object: &Value) -> Option<String> {
    let object = serde_json::from_value(object.clone()).unwrap();
    refusal(
        api.create(
            &PostParams {
                dry_run: true,
                ..PostParams::default()
            },
            &object,
        )
        .await,
    )
}

/// What the API server says against a merge patch; it is not applied.
pub async fn change_refused(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Option<String> {
    refusal(
        api.patch(name, &PatchParams::default().dry_run(), &Patch::Merge(patch))
            .await,
    )
}

/// Creates the object.
pub async fn create(api: &Api<DynamicObject>, object: &Value) -> DynamicObject {
    api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap())
        .await
        .unwrap()
}

/// Writes the whole status as the operator does: a JSON patch that replaces it.
pub async fn write_status(api: &Api<DynamicObject>, name: &str, status: &Value) {
    let patch = serde_json::from_value(json!([{"op": "replace", "path": "/status", "value": status}])).unwrap();
    api.patch_status(name, &PatchParams::default(), &Patch::<Value>::Json(patch))
        .await
        .unwrap();
}

/// Reads the CRD of jobs under another group without its root rules: what stood there before a rule was made.
pub async fn install(crd: &Value) {
    let name = format!("crd/{}", crd["metadata"]["name"].as_str().unwrap());
    let plane = plane().await;
    let output = plane
        .kubectl_with_input(&["apply", "-f", "-"], &crd.to_string())
        .await
        .unwrap();
    assert!(output.status.success(), "{}", output.stderr);
    established(&plane, &name).await;
}

/// Repeats a check for some seconds: a CRD that changed is served a moment later.
pub async fn soon<F: AsyncFnMut() -> bool>(what: &str, mut check: F) {
    for _ in 0..100 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not come true within 10 s");
}
