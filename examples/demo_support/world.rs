//! The demo's world: control planes, nodes, the operator, joined workers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bed::{Bed, BedOptions, ControlPlane, Process, apply_yaml, create_nodes, eventually, gpu_node, pod};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use multikueue::api::conditions::{CONNECTED, STALLED, is_true};
use multikueue::api::{MultiKueueJob, WorkerCluster};
use serde_json::json;

use super::expect::Expected;
use crate::Result;

const NAMESPACE: &str = "multikueue-system";
const H100: &str = "NVIDIA-H100-80GB-HBM3";
const A100: &str = "NVIDIA-A100-SXM4-80GB";

/// A job as the table shows it.
pub struct JobLine {
    /// Name.
    pub name: String,
    /// Phase.
    pub phase: String,
    /// Worker, empty without one.
    pub worker: String,
    /// Reason of its failure.
    pub reason: String,
    /// Message of its failure.
    pub message: String,
    /// Why it waits, a sentence for each worker.
    pub waiting: Vec<String>,
}

impl JobLine {
    /// Nothing more will become of it.
    pub fn is_ended(&self) -> bool {
        matches!(&*self.phase, "Succeeded" | "Failed")
    }

    fn of(job: &MultiKueueJob) -> Self {
        let status = job.status.clone().unwrap_or_default();
        let stalled = status.conditions.iter().find(|c| c.type_ == STALLED);
        let nearest = status.waiting.iter().flat_map(|w| &w.nearest);
        let written = status.run > 0;
        Self {
            name: job.metadata.name.clone().unwrap_or_default(),
            phase: if written {
                format!("{:?}", status.phase)
            } else {
                "new".into()
            },
            worker: status
                .assignment
                .as_ref()
                .map(|a| a.cluster.clone())
                .unwrap_or_default(),
            reason: stalled.map(|c| c.reason.clone()).unwrap_or_default(),
            message: stalled.map(|c| c.message.clone()).unwrap_or_default(),
            waiting: nearest.map(|n| format!("{}: {}", n.cluster, n.message)).collect(),
        }
    }
}

impl fmt::Display for JobLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = if self.reason.is_empty() {
            self.waiting.join("; ")
        } else {
            self.reason.clone()
        };
        write!(f, "job    {:<14}{:<11}{:<5}{why}", self.name, self.phase, self.worker)
    }
}

/// A worker as the table shows it.
pub struct WorkerLine {
    /// Name.
    pub name: String,
    text: String,
}

impl fmt::Display for WorkerLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {:<14}{}", self.name, self.text)
    }
}

/// Control planes, nodes, the operator, joined workers.
pub struct World {
    // Everything ends with it.
    _bed: Bed,
    manager: Arc<ControlPlane>,
    client: Client,
    workers: Vec<(String, Arc<ControlPlane>, Client)>,
    operator: Process,
}

impl World {
    /// Starts it all; the control planes' programs are built first if they are not in the cache.
    pub async fn start() -> Result<Self> {
        let operator = build_operator()?;
        println!("starting a manager and the workers eu and us ...");
        let bed = Bed::start(BedOptions::new().manager("manager").worker("eu").worker("us")).await?;
        let manager = bed.control_plane("manager")?;
        let client = manager.client().await?;
        for file in [
            "crds/multikueuejobs.yaml",
            "crds/workerclusters.yaml",
            "deploy/manager-role.yaml",
        ] {
            apply_yaml(&client, &read(file)?).await?;
        }
        let account = manager.kubeconfig_service_account(NAMESPACE, "multikueue").await?;
        let kubeconfig = manager.write_kubeconfig("operator.kubeconfig", &account)?;
        let args = [
            "run",
            "--namespace",
            NAMESPACE,
            "--metrics-bind-address",
            "127.0.0.1:0",
            "--log-format",
            "text",
            "--kubeconfig",
        ];
        let args = args
            .iter()
            .map(ToString::to_string)
            .chain([kubeconfig.display().to_string()])
            .collect();
        let operator = Process::new("the operator", operator, args, bed.folder().join("operator.log"));
        operator.start()?;

        let mut workers = Vec::new();
        for name in ["eu", "us"] {
            let worker = bed.control_plane(name)?;
            let worker_client = worker.client().await?;
            furnish(name, &worker_client).await?;
            join(&client, &worker, name).await?;
            workers.push((name.to_owned(), worker, worker_client));
        }
        let world = Self {
            _bed: bed,
            manager,
            client,
            workers,
            operator,
        };
        let connected = || async {
            let workers: Api<WorkerCluster> = Api::all(world.client.clone());
            let list = workers.list(&ListParams::default()).await?;
            let up = |w: &WorkerCluster| {
                w.status
                    .as_ref()
                    .is_some_and(|s| is_true(&s.conditions, CONNECTED) && s.free_devices > 0)
            };
            if list.items.len() == 2 && list.items.iter().all(up) {
                Ok(())
            } else {
                Err(bed::NotYet::from(format!(
                    "{:?}",
                    list.items.iter().map(|w| &w.status).collect::<Vec<_>>()
                )))
            }
        };
        eventually(
            Duration::from_secs(30),
            "both workers are connected and counted",
            connected,
        )
        .await
        .map_err(|e| format!("{e}\nthe operator says:\n{}", world.operator.log_tail()))?;
        Ok(world)
    }

    /// Applies the files of the expected jobs, as a user would.
    pub async fn apply_examples(&self, expected: &[Expected]) -> Result<()> {
        for job in expected {
            let file = root().join(format!("examples/{}.yaml", job.name));
            println!("kubectl apply -f examples/{}.yaml", job.name);
            let output = self
                .manager
                .kubectl(&["apply", "-f", &file.display().to_string()])
                .await?;
            if !output.status.success() {
                return Err(output.stderr.into());
            }
        }
        println!();
        Ok(())
    }

    /// The jobs as they stand.
    pub async fn jobs(&self) -> Result<Vec<JobLine>> {
        let jobs: Api<MultiKueueJob> = Api::default_namespaced(self.client.clone());
        Ok(jobs
            .list(&ListParams::default())
            .await?
            .items
            .iter()
            .map(JobLine::of)
            .collect())
    }

    /// The workers as they stand.
    pub async fn workers(&self) -> Result<Vec<WorkerLine>> {
        let workers: Api<WorkerCluster> = Api::all(self.client.clone());
        let line = |w: WorkerCluster| {
            let status = w.status.unwrap_or_default();
            let models: Vec<_> = status
                .devices
                .iter()
                .map(|(model, d)| {
                    format!(
                        "{model} {} free, {} used, {} unavailable",
                        d.free, d.used, d.unavailable
                    )
                })
                .collect();
            WorkerLine {
                name: w.metadata.name.unwrap_or_default(),
                text: models.join("; "),
            }
        };
        Ok(workers
            .list(&ListParams::default())
            .await?
            .items
            .into_iter()
            .map(line)
            .collect())
    }

    /// `kubectl delete`, without waiting.
    pub async fn delete_job(&self, name: &str) -> Result<()> {
        let jobs: Api<MultiKueueJob> = Api::default_namespaced(self.client.clone());
        jobs.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// How many Jobs and pods of a job's name the workers hold.
    pub async fn left_on_workers(&self, name: &str) -> Result<usize> {
        let mut left = 0;
        for (_, _, client) in &self.workers {
            let jobs: Api<Job> = Api::default_namespaced(client.clone());
            left += usize::from(jobs.get_opt(name).await?.is_some());
            let pods: Api<Pod> = Api::default_namespaced(client.clone());
            left += pods
                .list(&ListParams::default().labels(&format!("batch.kubernetes.io/job-name={name}")))
                .await?
                .items
                .len();
        }
        Ok(left)
    }

    /// The end of the operator's log.
    pub fn operator_log(&self) -> String {
        self.operator.log_tail()
    }

    /// How to look around in what is left running.
    pub fn explain(&self) {
        println!("\nAll of it is left running until Ctrl-C. In another terminal:\n");
        println!(
            "  export KUBECONFIG={}",
            self.manager.folder().join("admin.kubeconfig").display()
        );
        println!("  kubectl get multikueuejobs,workerclusters");
        println!("  kubectl describe multikueuejob fits-nowhere");
        println!("  kubectl apply -f examples/one-gpu.yaml");
        for (name, plane, _) in &self.workers {
            let kubeconfig = plane.folder().join("admin.kubeconfig");
            println!(
                "  KUBECONFIG={} kubectl get jobs,pods,nodes      # worker {name}",
                kubeconfig.display()
            );
        }
        println!(
            "  less {}      # the operator's log",
            self.operator.log_path().display()
        );
    }
}

/// Nodes and what is on them already.
async fn furnish(name: &str, client: &Client) -> Result<()> {
    let mut nodes: Vec<_>;
    if name == "eu" {
        nodes = (1..=7)
            .map(|n| gpu_node(&format!("h100-{n}")).model(H100).gpus(8))
            .collect();
        nodes.push(gpu_node("h100-cordoned").model(H100).gpus(8).cordoned());
    } else {
        nodes = (1..=2)
            .map(|n| gpu_node(&format!("a100-{n}")).model(A100).gpus(8))
            .collect();
        nodes.push(
            gpu_node("a100-reserved")
                .model(A100)
                .gpus(8)
                .taint("reserved", "research", "NoSchedule"),
        );
    }
    create_nodes(client, nodes).await?;
    // Somebody else's pods: they take room, and nobody touches them.
    let node = if name == "eu" { "h100-7" } else { "a100-1" };
    pod("notebook")
        .on(node)
        .gpus(5)
        .annotation("bed.multikueue.rs/run-seconds", "forever")
        .create(client)
        .await?;
    Ok(())
}

/// What the README says under "Joining a real worker".
async fn join(manager: &Client, worker: &ControlPlane, name: &str) -> Result<()> {
    apply_yaml(&worker.client().await?, &read("deploy/worker-role.yaml")?).await?;
    let kubeconfig = worker.kubeconfig_service_account(NAMESPACE, "multikueue").await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{name}-kubeconfig"), "namespace": NAMESPACE},
        "stringData": {"kubeconfig": kubeconfig.to_string()},
    });
    let cluster = json!({
        "apiVersion": "multikueue.rs/v1alpha1", "kind": "WorkerCluster",
        "metadata": {"name": name, "labels": {"region": name}},
        "spec": {"kubeconfig": {"secretRef": {"name": format!("{name}-kubeconfig")}}},
    });
    apply_yaml(manager, &format!("{secret}\n---\n{cluster}")).await?;
    Ok(())
}

/// Builds the program that users run, if it is not built, and says where it is.
///
/// Together with this example: alone its dependencies would have fewer features, and all of them would be compiled once more.
fn build_operator() -> Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--bin", "multikueue", "--example", "demo"])
        .current_dir(root());
    // What `cargo run` says of this package makes build scripts (ring's) take their own package for changed, and half the tree is compiled again.
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    {
        build.env_remove(name);
    }
    let status = build.status()?;
    if !status.success() {
        return Err("the operator does not build".into());
    }
    // This example is target/<profile>/examples/demo; cargo's default profile is what was just built.
    let target = std::env::current_exe()?
        .ancestors()
        .nth(3)
        .map(Path::to_owned)
        .ok_or("no target directory")?;
    Ok(target.join("debug/multikueue"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(file: &str) -> Result<String> {
    Ok(std::fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))?)
}
