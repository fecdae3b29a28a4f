//! Which resources are accelerators, which model a node has, and how many of each are free.

use std::collections::BTreeMap;

use crate::api::worker_cluster::Devices;

/// Accelerators of a worker, for its status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceReport {
    /// By model.
    pub by_model: BTreeMap<String, Devices>,
    /// Free devices of all models together.
    pub free: i64,
    /// The most free devices on one node.
    pub largest_free_block: i64,
}

/// Is a resource an accelerator? Names are opaque otherwise; those of vendors' device plugins are known.
pub fn is_device(resource: &str) -> bool {
    let Some((vendor, name)) = resource.split_once('/') else {
        return false;
    };
    match vendor {
        "nvidia.com" => matches!(name, "gpu" | "gpu.shared") || name.starts_with("mig-"),
        // `gpu`, or the name of a partition such as `cpx_nps4`.
        "amd.com" => name == "gpu" || name.contains("_nps"),
        "google.com" => name == "tpu",
        // The monitoring resources and the fractions of a device are no devices.
        "gpu.intel.com" => matches!(name, "i915" | "xe"),
        "habana.ai" => name == "gaudi",
        "aws.amazon.com" => matches!(name, "neuron" | "neurondevice" | "neuroncore"),
        "huawei.com" => name.starts_with("Ascend"),
        "cambricon.com" => name.starts_with("mlu"),
        "qualcomm.com" => name.starts_with("qaic"),
        _ => false,
    }
}

/// Names for the same chips, the coarsest first.
pub(super) const NEURON: [&str; 3] = [
    "aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice",
    "aws.amazon.com/neuroncore",
];

/// Resources that a node's devices are counted in. Neuron plugins advertise the same chips under several names: the coarsest counts.
pub(super) fn counted<'a>(resources: impl Iterator<Item = &'a str> + Clone) -> impl Iterator<Item = &'a str> {
    let coarsest = NEURON.into_iter().find(|n| resources.clone().any(|r| r == *n));
    resources.filter(move |r| is_device(r) && (!NEURON.contains(r) || Some(*r) == coarsest))
}

/// Labels that name the model, the most precise first.
const MODEL_LABELS: [&str; 12] = [
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "gpu.nvidia.com/model",
    "gpu.nvidia.com/class",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "eks.amazonaws.com/instance-gpu-name",
    "karpenter.azure.com/sku-gpu-name",
    "k8s.amazonaws.com/accelerator",
];

/// The model of a node's devices of one resource; the resource's own name when no label tells. `label` looks up a label of the node.
pub fn model<'a>(resource: &str, label: impl Fn(&str) -> Option<&'a str>) -> String {
    let named = |keys: &[&str]| keys.iter().find_map(|k| label(k).filter(|v| !v.is_empty()));
    if let Some(profile) = resource.strip_prefix("nvidia.com/mig-") {
        return match (named(&[&format!("{resource}.product")]), named(&MODEL_LABELS)) {
            (Some(product), _) => product.into(),
            (None, Some(model)) => format!("{model}-MIG-{profile}"),
            (None, None) => resource.into(),
        };
    }
    // A TPU node may carry labels of others' conventions too; its own is the one that counts.
    let tpu = (resource == "google.com/tpu")
        .then(|| named(&["cloud.google.com/gke-tpu-accelerator"]))
        .flatten();
    tpu.or_else(|| named(&MODEL_LABELS)).unwrap_or(resource).into()
}

/// Memory of one device in MiB, where a label tells; 0 where none does.
pub(super) fn memory_mib<'a>(label: impl Fn(&str) -> Option<&'a str>) -> i64 {
    [
        "nvidia.com/gpu.memory",
        "karpenter.k8s.aws/instance-gpu-memory",
        "eks.amazonaws.com/instance-gpu-memory",
    ]
    .iter()
    .find_map(|k| label(k)?.parse().ok())
    .unwrap_or(0)
}

/// Taints that say that a node is out of service, whatever a pod tolerates. Others (`nvidia.com/gpu=present`) only keep strangers away.
pub(super) fn out_of_service(taint_key: &str) -> bool {
    taint_key.starts_with("node.kubernetes.io/")
        || matches!(
            taint_key,
            "ToBeDeletedByClusterAutoscaler" | "karpenter.sh/disrupted" | "node.cloudprovider.kubernetes.io/shutdown"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_of_the_vendors_are_known_and_others_are_not() {
        for name in [
            "nvidia.com/gpu",
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-1g.10gb",
            "amd.com/gpu",
            "amd.com/cpx_nps4",
            "google.com/tpu",
            "gpu.intel.com/xe",
            "habana.ai/gaudi",
            "aws.amazon.com/neuroncore",
        ] {
            assert!(is_device(name), "{name}");
        }
        for name in [
            "cpu",
            "memory",
            "rdma/hca",
            "gpu.intel.com/i915_monitoring",
            "gpu.intel.com/millicores",
            "hugepages-2Mi",
        ] {
            assert!(!is_device(name), "{name}");
        }
    }

    #[test]
    fn neuron_chips_are_counted_under_one_name() {
        let all = [
            "aws.amazon.com/neuroncore",
            "aws.amazon.com/neurondevice",
            "cpu",
            "nvidia.com/gpu",
        ];
        assert_eq!(
            counted(all.into_iter()).collect::<Vec<_>>(),
            ["aws.amazon.com/neurondevice", "nvidia.com/gpu"]
        );
    }

    #[test]
    fn models_come_from_the_most_precise_label() {
        let model_of = |resource: &str, labels: &[(&'static str, &'static str)]| {
            model(resource, |k| labels.iter().find(|(l, _)| *l == k).map(|(_, v)| *v))
        };
        let h100 = [
            ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"),
            ("cloud.google.com/gke-accelerator", "nvidia-h100-80gb"),
        ];
        assert_eq!(model_of("nvidia.com/gpu", &h100), "NVIDIA-H100-80GB-HBM3");
        assert_eq!(
            model_of("nvidia.com/mig-1g.10gb", &h100),
            "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"
        );
        assert_eq!(model_of("amd.com/gpu", &[]), "amd.com/gpu");
        assert_eq!(
            model_of(
                "nvidia.com/mig-1g.10gb",
                &[("nvidia.com/mig-1g.10gb.product", "A100-MIG")]
            ),
            "A100-MIG"
        );
    }
}
