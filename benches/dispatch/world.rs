//! What is measured on: a manager and two workers with more free GPUs than jobs, and the operator as users run it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bed::{Bed, BedOptions, ControlPlane, Process, apply_yaml, create_nodes, eventually, gpu_node};
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy};
use kube::{Api, Client};
use multikueue::api::MultiKueueJob;
use multikueue::clusters::client;
use serde_json::json;

use crate::Result;
use crate::counts::Exposition;

/// Namespace of the operator.
pub const NAMESPACE: &str = "multikueue-system";
/// How long anything but the measured work may take.
const PATIENCE: Duration = Duration::from_mins(3);
/// Requests under way at once when objects are made or cleared away.
pub const AT_ONCE: usize = 32;
/// GPUs of a node.
const GPUS: usize = 8;

/// A worker as the bench knows it.
pub struct Worker {
    /// Name in the bed and of its `WorkerCluster`.
    pub name: &'static str,
    /// Uid of its `kube-system`.
    pub uid: String,
    /// Its programs.
    pub plane: Arc<ControlPlane>,
    /// May do everything.
    pub admin: Client,
    /// The operator's client there, made by the operator's own code, with its rights.
    pub client: Client,
}

/// Control planes, nodes, roles, joined workers and the operator's program.
pub struct World {
    /// The manager.
    pub manager: Arc<ControlPlane>,
    /// Uid of its `kube-system`.
    pub manager_uid: String,
    /// May do everything there.
    pub admin: Client,
    /// The operator's client there.
    pub client: Client,
    /// The workers.
    pub workers: Vec<Worker>,
    operator: Process,
    metrics: Client,
    nodes: usize,
    // Everything ends with it.
    _bed: Bed,
}

impl World {
    /// Starts it all but the operator.
    pub async fn start(nodes: usize) -> Result<Self> {
        let bed = Bed::start(BedOptions::new().manager("manager").worker("eu").worker("us")).await?;
        let manager = bed.control_plane("manager")?;
        let admin = manager.client().await?;
        for file in [
            "crds/multikueuejobs.yaml",
            "crds/workerclusters.yaml",
            "deploy/manager-role.yaml",
        ] {
            apply_yaml(&admin, &read(file)?).await?;
        }
        let account = manager.kubeconfig_service_account(NAMESPACE, "multikueue").await?;
        let mut workers = Vec::new();
        for name in ["eu", "us"] {
            workers.push(join(&bed, &admin, name, nodes / 2).await?);
        }
        let port = free_port()?;
        let metrics = Client::try_from(kube::Config::new(format!("http://127.0.0.1:{port}").parse()?))?;
        let kubeconfig = manager.write_kubeconfig("operator.kubeconfig", &account)?;
        // Default limits; only the port differs, since the default one may be taken here.
        let args = [
            "run",
            "--namespace",
            NAMESPACE,
            "--metrics-bind-address",
            &format!("127.0.0.1:{port}"),
            "--kubeconfig",
            &kubeconfig.display().to_string(),
        ];
        let operator = Process::new(
            "the operator",
            PathBuf::from(env!("CARGO_BIN_EXE_multikueue")),
            args.map(ToOwned::to_owned).to_vec(),
            bed.folder().join("operator.log"),
        );
        Ok(Self {
            manager_uid: uid(&admin).await?,
            client: client::manager(account.config().await?)?,
            manager,
            admin,
            workers,
            operator,
            metrics,
            nodes,
            _bed: bed,
        })
    }

    /// Starts the operator and waits until it is connected to both workers and has counted their GPUs.
    pub async fn start_operator(&self) -> Result<()> {
        self.operator.start()?;
        let free = self.nodes * GPUS;
        let ready = eventually(PATIENCE, "the operator to count all GPUs", || async {
            let metrics = self.operator_metrics().await.map_err(|e| e.to_string())?;
            let connected = metrics.sum("multikueue_worker_connected", &[]);
            let counted = metrics.sum("multikueue_devices", &[("state", "free")]);
            if connected >= self.workers.len() as f64 && counted >= free as f64 {
                Ok(())
            } else {
                Err(format!("{connected} workers are connected, {counted} of {free} GPUs are free").into())
            }
        });
        Ok(ready
            .await
            .map_err(|e| format!("{e}\nthe operator says:\n{}", self.operator_log()))?)
    }

    /// Ends the operator as Kubernetes does, and waits until it has given its lease back.
    pub async fn stop_operator(&self) -> Result<()> {
        self.operator.terminate()?;
        eventually(PATIENCE, "the operator to end", || async {
            match self.operator.exit_status() {
                Some(_) => Ok(()),
                None => Err("it runs".into()),
            }
        })
        .await?;
        self.operator.stop();
        Ok(())
    }

    /// What the operator says of itself.
    pub async fn operator_metrics(&self) -> Result<Exposition> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        Ok(Exposition::of(&self.metrics.request_text(request).await?))
    }

    /// The most memory that the operator has had, in MiB.
    pub fn operator_rss_mib(&self) -> Result<f64> {
        let pid = self.operator.pid().ok_or("the operator does not run")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .ok_or("no VmHWM")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib / 1024.0)
    }

    /// The end of the operator's log.
    pub fn operator_log(&self) -> String {
        self.operator.log_tail()
    }

    /// Waits until no worker has a Job or a pod.
    pub async fn workers_empty(&self) -> Result<()> {
        for worker in &self.workers {
            let jobs: Api<Job> = Api::default_namespaced(worker.admin.clone());
            let pods: Api<Pod> = Api::default_namespaced(worker.admin.clone());
            eventually(PATIENCE, &format!("{} to be empty", worker.name), || async {
                let one = ListParams::default().limit(1);
                let left = jobs.list_metadata(&one).await?.items.len() + pods.list_metadata(&one).await?.items.len();
                if left == 0 {
                    Ok(())
                } else {
                    Err("Jobs or pods are left".into())
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Clears everything away, without the operator.
    pub async fn clear(&self) -> Result<()> {
        let jobs: Api<MultiKueueJob> = Api::default_namespaced(self.admin.clone());
        let names: Vec<_> = jobs.list_metadata(&ListParams::default()).await?.items;
        let mut gone = futures::stream::iter(names.iter().filter_map(|job| job.metadata.name.as_deref()))
            .map(|name| {
                let jobs = &jobs;
                async move {
                    let none = json!({"metadata": {"finalizers": null}});
                    jobs.patch(name, &PatchParams::default(), &Patch::Merge(none)).await?;
                    jobs.delete(name, &DeleteParams::default()).await
                }
            })
            .buffer_unordered(AT_ONCE);
        while let Some(done) = gone.next().await {
            done?;
        }
        for worker in &self.workers {
            let background = DeleteParams {
                propagation_policy: Some(PropagationPolicy::Background),
                grace_period_seconds: Some(0),
                ..DeleteParams::default()
            };
            let all = ListParams::default();
            let jobs: Api<Job> = Api::default_namespaced(worker.admin.clone());
            jobs.delete_collection(&background, &all).await?;
            let pods: Api<Pod> = Api::default_namespaced(worker.admin.clone());
            pods.delete_collection(&background, &all).await?;
        }
        self.workers_empty().await
    }
}

/// What the README says under "Joining a real worker", and nodes.
async fn join(bed: &Bed, manager: &Client, name: &'static str, nodes: usize) -> Result<Worker> {
    let plane = bed.control_plane(name)?;
    let admin = plane.client().await?;
    apply_yaml(&admin, &read("deploy/worker-role.yaml")?).await?;
    create_nodes(&admin, (1..=nodes).map(|n| gpu_node(&format!("{name}-{n}")))).await?;
    let kubeconfig = plane.kubeconfig_service_account(NAMESPACE, "multikueue").await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{name}-kubeconfig"), "namespace": NAMESPACE},
        "stringData": {"kubeconfig": kubeconfig.to_string()},
    });
    let cluster = json!({
        "apiVersion": "multikueue.rs/v1alpha1", "kind": "WorkerCluster",
        "metadata": {"name": name},
        "spec": {"kubeconfig": {"secretRef": {"name": format!("{name}-kubeconfig")}}},
    });
    apply_yaml(manager, &format!("{secret}\n---\n{cluster}")).await?;
    Ok(Worker {
        name,
        uid: uid(&admin).await?,
        client: client::manager(kubeconfig.config().await?)?,
        plane,
        admin,
    })
}

async fn uid(client: &Client) -> Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = namespaces.get("kube-system").await?;
    Ok(system.metadata.uid.ok_or("kube-system has no uid")?)
}

/// Free a moment ago; the operator says so if somebody else took it since.
fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn read(file: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    Ok(std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?)
}
