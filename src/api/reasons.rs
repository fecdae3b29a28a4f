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
    /// Why a job stands where it stands. (A Job that failed on its worker brings the reason of its own condition along.)
    JobReason {
        /// Queued, and not tried on any worker yet.
        Queued,
        /// No worker has room for all of it now.
        NoRoom,
        /// No worker may take it: selectors, taints, namespaces, or none is there.
        NoMatchingWorker,
        /// Whether a worker has room is not known of at least one that could.
        CapacityUnknown,
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
        /// Released; not every pod has started.
        Starting,
        /// Every pod has started.
        Running,
        /// It is being taken off its worker to be queued again.
        Revoking,
        /// The object on the worker is Complete.
        Succeeded,
        /// The object on the worker failed and gave no reason.
        JobFailed,
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
        /// The worker has seen a later state of this manager than there is now: the manager was restored from a backup.
        ManagerRestored,
        /// Every needed right is there.
        Authorized,
        /// Some needed rights are missing; the message names them.
        PermissionsMissing,
        /// The rights could not be asked for.
        ReviewFailed,
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
