//! Nodes that KWOK plays.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, NodeSystemInfo, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::error::{Error, Result};
use crate::kwok;
use crate::wait::eventually;

const SCHEDULABLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A node of 32 CPUs, 256Gi and 110 pods, without devices.
pub fn node(name: &str) -> NodeBuilder {
    NodeBuilder {
        name: name.to_owned(),
        labels: BTreeMap::from([
            ("kubernetes.io/hostname".to_owned(), name.to_owned()),
            ("kubernetes.io/os".to_owned(), "linux".to_owned()),
            ("kubernetes.io/arch".to_owned(), "amd64".to_owned()),
        ]),
        taints: Vec::new(),
        cordoned: false,
        allocatable: BTreeMap::from(
            [
                ("cpu", "32"),
                ("memory", "256Gi"),
                ("ephemeral-storage", "1Ti"),
                ("pods", "110"),
            ]
            .map(|(name, amount)| (name.to_owned(), amount.to_owned())),
        ),
    }
}

/// A node as above with 8 GPUs of the model `NVIDIA-H100-80GB-HBM3`.
pub fn gpu_node(name: &str) -> NodeBuilder {
    node(name).model("NVIDIA-H100-80GB-HBM3").gpus(8)
}

/// A node to be.
#[derive(Clone, Debug)]
pub struct NodeBuilder {
    name: String,
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    cordoned: bool,
    allocatable: BTreeMap<String, String>,
}

impl NodeBuilder {
    /// The GPU's model, as NVIDIA's feature discovery labels it.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.label("nvidia.com/gpu.product", model)
    }

    /// How many GPUs (`nvidia.com/gpu`).
    #[must_use]
    pub fn gpus(self, count: u32) -> Self {
        self.allocatable("nvidia.com/gpu", &count.to_string())
    }

    /// How much CPU, a Kubernetes quantity.
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.allocatable("cpu", amount)
    }

    /// How much memory, a Kubernetes quantity.
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.allocatable("memory", amount)
    }

    /// How many pods.
    #[must_use]
    pub fn pods(self, count: u32) -> Self {
        self.allocatable("pods", &count.to_string())
    }

    /// How much of any resource, allocatable and capacity alike.
    #[must_use]
    pub fn allocatable(mut self, resource: &str, amount: &str) -> Self {
        self.allocatable.insert(resource.to_owned(), amount.to_owned());
        self
    }

    /// A label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// A taint, with an effect such as `NoSchedule`.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        let (key, value, effect) = (key.to_owned(), Some(value.to_owned()), effect.to_owned());
        self.taints.push(Taint {
            key,
            value,
            effect,
            ..Taint::default()
        });
        self
    }

    /// Unschedulable, as after `kubectl cordon`.
    #[must_use]
    pub fn cordoned(self) -> Self {
        Self { cordoned: true, ..self }
    }

    /// The object.
    pub fn build(self) -> Node {
        let allocatable: BTreeMap<String, Quantity> = self
            .allocatable
            .into_iter()
            .map(|(name, amount)| (name, Quantity(amount)))
            .collect();
        let mut node = Node {
            spec: Some(NodeSpec {
                taints: (!self.taints.is_empty()).then_some(self.taints),
                unschedulable: self.cordoned.then_some(true),
                ..NodeSpec::default()
            }),
            status: Some(NodeStatus {
                allocatable: Some(allocatable.clone()),
                capacity: Some(allocatable),
                node_info: Some(NodeSystemInfo {
                    architecture: "amd64".to_owned(),
                    operating_system: "linux".to_owned(),
                    kubelet_version: "v1.37.2".to_owned(),
                    ..NodeSystemInfo::default()
                }),
                ..NodeStatus::default()
            }),
            ..Node::default()
        };
        node.metadata.name = Some(self.name);
        node.metadata.labels = Some(self.labels);
        let annotation = (kwok::NODE_ANNOTATION.to_owned(), kwok::NODE_ANNOTATION_VALUE.to_owned());
        node.metadata.annotations = Some(BTreeMap::from([annotation]));
        node
    }

    /// Creates it and waits until it is ready and its not-ready taint is gone, which needs KWOK and a controller manager.
    pub async fn create(self, client: &Client) -> Result<Node> {
        let nodes = create_nodes(client, [self]).await?;
        nodes.into_iter().next().ok_or_else(|| Error::Timeout {
            what: "one node".to_owned(),
            after: Duration::ZERO,
            last: "none was made".to_owned(),
        })
    }
}

/// Creates many nodes and waits until all are ready and without the not-ready taint.
pub async fn create_nodes(client: &Client, nodes: impl IntoIterator<Item = NodeBuilder>) -> Result<Vec<Node>> {
    const AT_ONCE: usize = 32;
    let api = &Api::<Node>::all(client.clone());
    futures::stream::iter(nodes)
        .map(|builder| async move {
            let node = builder.build();
            let name = &node.metadata.name.clone().unwrap_or_default();
            let created = api.create(&PostParams::default(), &node).await;
            created.map_err(Error::api(format!("create the node {name}")))?;
            eventually(
                SCHEDULABLE_TIMEOUT,
                &format!("the node {name} to be schedulable"),
                || async move {
                    let node = api.get(name).await?;
                    if is_schedulable(&node) {
                        Ok(node)
                    } else {
                        Err(format!("{:?} {:?}", node.spec, node.status).into())
                    }
                },
            )
            .await
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

fn is_schedulable(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
        && taints.iter().all(|taint| taint.key != "node.kubernetes.io/not-ready")
}
