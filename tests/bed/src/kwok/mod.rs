//! Nodes without machines: KWOK plays their kubelets by the stages in `stages.yaml`.
//!
//! A pod on such a node lives as its annotations say. Values are strings, as annotations are:
//!
//! | Annotation | Meaning | Without it |
//! |---|---|---|
//! | [`RUN_SECONDS`] | runs so long, then ends; `"0"`: goes from Pending straight to its end (`restartPolicy: Never`); [`FOREVER`] | 1 |
//! | [`EXIT_CODE`] | ends with this code; not 0 means Failed, or a restart where the policy is `OnFailure` | 0 |
//! | [`NEVER_START`] | `"true"`: stays Pending, `ContainerCreating` | starts at once |
//! | [`IGNORE_SIGTERM_SECONDS`] | once deleted, goes on at least so long (up to a second more), then exit code 137 | ends at once, exit code 143 |
//!
//! A restart of KWOK starts the running time of pods anew.

/// Annotation of a pod: how many seconds it runs, or [`FOREVER`].
pub const RUN_SECONDS: &str = "bed.multikueue.rs/run-seconds";
/// Value of [`RUN_SECONDS`] for a pod that does not end by itself.
pub const FOREVER: &str = "forever";
/// Annotation of a pod: the exit code of its containers.
pub const EXIT_CODE: &str = "bed.multikueue.rs/exit-code";
/// Annotation of a pod: `"true"` if it is bound to its node but never starts.
pub const NEVER_START: &str = "bed.multikueue.rs/never-start";
/// Annotation of a pod: how many seconds it lingers once it is deleted, whatever its grace period.
pub const IGNORE_SIGTERM_SECONDS: &str = "bed.multikueue.rs/ignore-sigterm-seconds";

/// Annotation that puts a node into the care of KWOK, with the value [`NODE_ANNOTATION_VALUE`].
pub const NODE_ANNOTATION: &str = "kwok.x-k8s.io/node";
/// Value of [`NODE_ANNOTATION`].
pub const NODE_ANNOTATION_VALUE: &str = "fake";

/// Configuration file of KWOK.
pub(crate) const STAGES: &str = include_str!("stages.yaml");
