//! The programs of a bed: which they are, what they are built from, where they are found.
//!
//! Every one is a Go module. Its `go.mod` and `go.sum` are compiled into this crate, so a test binary can build what it
//! needs wherever it runs. Binaries go to a cache outside the working tree; a fresh clone on the same machine starts at once.

mod build;

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use crate::error::Result;

/// A program of the bed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// Store of all API servers.
    Etcd,
    /// `kube-apiserver`.
    ApiServer,
    /// `kube-controller-manager`: Jobs, service accounts, namespace deletion, garbage collection, node life cycle.
    ControllerManager,
    /// `kube-scheduler`.
    Scheduler,
    /// `kubectl`.
    Kubectl,
    /// Plays the kubelets of nodes that are only objects.
    Kwok,
    /// Breaks connections on demand.
    Toxiproxy,
    /// `helm`.
    Helm,
}

/// A Go module directory that pins the versions of one or more programs.
struct Module {
    name: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    ldflags: &'static str,
}

macro_rules! module {
    ($name:literal, $ldflags:expr) => {
        Module {
            name: $name,
            go_mod: include_str!(concat!("../../programs/", $name, "/go.mod")),
            go_sum: include_str!(concat!("../../programs/", $name, "/go.sum")),
            ldflags: $ldflags,
        }
    };
}

static ETCD: Module = module!("etcd", "-s -w");
// Without the version the server says v0.0.0, and clients that look at it refuse.
static KUBERNETES: Module = module!(
    "kubernetes",
    "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1 \
     -X k8s.io/component-base/version.gitMinor=37"
);
static KWOK: Module = module!("kwok", "-s -w");
static TOXIPROXY: Module = module!("toxiproxy", "-s -w");
static HELM: Module = module!("helm", "-s -w");

impl Program {
    /// Every program, in the order in which to build them.
    pub const ALL: [Self; 8] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kwok,
        Self::Kubectl,
        Self::Toxiproxy,
        Self::Helm,
    ];

    /// Name of its binary.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Toxiproxy => "toxiproxy",
            Self::Helm => "helm",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
            Self::Toxiproxy => "github.com/Shopify/toxiproxy/v2/cmd/server",
            Self::Helm => "helm.sh/helm/v3/cmd/helm",
        }
    }

    const fn module(self) -> &'static Module {
        match self {
            Self::Etcd => &ETCD,
            Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl => &KUBERNETES,
            Self::Kwok => &KWOK,
            Self::Toxiproxy => &TOXIPROXY,
            Self::Helm => &HELM,
        }
    }

    /// How long a build without anything in Go's caches takes on two cores, for people who wait.
    const fn usual_build(self) -> &'static str {
        match self {
            Self::ApiServer => "4 minutes",
            Self::Etcd | Self::ControllerManager | Self::Kwok | Self::Helm => "a minute",
            Self::Scheduler | Self::Kubectl | Self::Toxiproxy => "20 seconds",
        }
    }

    /// Path of its binary: from `KUBEBUILDER_ASSETS` if that folder has it, else from the cache, where it is built first
    /// if need be (which blocks for minutes the first time, and says so on standard error).
    pub fn locate(self) -> Result<PathBuf> {
        build::locate(self)
    }

    /// [`Program::locate`] for async callers.
    pub async fn path(self) -> Result<PathBuf> {
        tokio::task::spawn_blocking(move || self.locate()).await?
    }
}

impl Module {
    /// What the binaries are a function of, as 16 hex digits.
    fn hash(&self) -> String {
        use std::fmt::Write as _;
        let mut hash = Sha256::new();
        for part in [
            self.go_mod,
            self.go_sum,
            self.ldflags,
            std::env::consts::OS,
            std::env::consts::ARCH,
        ] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
