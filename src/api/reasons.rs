//! The closed sets of reasons that stand in conditions, events and metrics.

/// Defines a closed set of reasons: the variant's name is what stands in the cluster.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every reason of the set.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The reason as it stands in conditions, events and metrics.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

reasons! {
    /// Why a job stands where it stands. (A Job that ended on its worker brings the reason of its own condition along, and one that waits has the
    /// reason of the worker that comes nearest: [`crate::capacity::Reason`] for its room.)
    JobReason {
        /// Queued, and not tried on any worker yet.
        Queued,
        /// Queued, and there is no worker at all.
        NoWorkers,
        /// The template cannot run anywhere as it is written.
        InvalidTemplate,
        /// The `PriorityClass` that it names does not exist.
        PriorityClassNotFound,
        /// `spec.suspend` is true, and nothing of it runs.
        Suspended,
        /// `spec.suspend` is true, and it is being taken off its worker.
        Suspending,
        /// A worker is chosen; its object is not released there yet.
        Assigned,
        /// Found on a worker above the counter of this manager, which was restored from a time before.
        Adopted,
        /// Its object on the worker was put to sleep by another after its release.
        SuspendedOnWorker,
        /// Every pod has started.
        Running,
        /// It is being taken off its worker to be queued again.
        Revoking,
        /// The object on the worker is Complete and gave no reason.
        Complete,
        /// The object on the worker failed and gave no reason.
        Failed,
        /// The object on the worker was removed by another.
        MirrorDeleted,
        /// It waited longer than `maxQueueSeconds`.
        MaxQueueTimeExceeded,
        /// It failed to start `maxAttempts` times.
        MaxAttemptsExceeded,
        /// Its worker does not answer.
        WorkerLost,
        /// Its worker answers, and the status is that of now.
        Fresh,
        /// It is deleted, and waits for its object on the worker to go.
        Deleting,
    }
}

reasons! {
    /// Why a condition of a `WorkerCluster` has its status.
    WorkerReason {
        /// The first contact is being made.
        Connecting,
        /// It answers.
        Connected,
        /// The Secret with the kubeconfig does not exist.
        SecretNotFound,
        /// The Secret lacks the key.
        SecretKeyNotFound,
        /// The kubeconfig cannot be read, or uses what the operator refuses (programs, files, no TLS).
        InvalidKubeconfig,
        /// The server's certificate comes from an authority that the kubeconfig does not name.
        UnknownAuthority,
        /// The server's certificate is for another host name.
        HostNameMismatch,
        /// The server's certificate, or the client's, has expired.
        CertificateExpired,
        /// TLS failed otherwise.
        TlsError,
        /// The host name has no address.
        NameResolutionFailed,
        /// Nothing listens at the address.
        ConnectionRefused,
        /// The connection broke.
        ConnectionLost,
        /// No answer in time.
        Timeout,
        /// The credentials are not accepted (401).
        Unauthorized,
        /// The credentials are accepted, but may not do this (403).
        Forbidden,
        /// The server answers with errors.
        ServerError,
        /// Another cluster answers than the one that was pinned.
        IdentityChanged,
        /// An older `WorkerCluster` names the same cluster.
        DuplicateCluster,
        /// Another manager uses the same origin on this worker.
        OriginClash,
        /// The lease on the worker, which proves that it takes our writes, cannot be held.
        LeaseNotHeld,
        /// Every needed right is there.
        Authorized,
        /// Some needed rights are missing; the message names them.
        PermissionsMissing,
        /// Nodes and pods are being read for the first time on this connection.
        Syncing,
        /// Nodes and pods are known and followed.
        Synced,
        /// The watches of nodes or pods fail.
        WatchFailed,
        /// The worker does not answer, so this is not known.
        Disconnected,
    }
}
