//! What can go wrong while a bed is built, started or used.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// A failure of the bed or of one of its programs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a Go toolchain nor prebuilt programs are at hand.
    #[error(
        "{program} is needed and cannot be built: there is no `go` on the PATH; either install Go 1.26 or later, or \
         set KUBEBUILDER_ASSETS to a folder that holds {program}"
    )]
    NoGo {
        /// The program that was asked for.
        program: &'static str,
    },
    /// `KUBEBUILDER_ASSETS` is set, but the folder lacks a program that only a Go toolchain could add.
    #[error(
        "KUBEBUILDER_ASSETS is {}, which holds no {program}, and there is no `go` on the PATH to build it; put {program} \
         there or install Go 1.26 or later",
        assets.display()
    )]
    NotInAssets {
        /// The program that was asked for.
        program: &'static str,
        /// The folder that `KUBEBUILDER_ASSETS` names.
        assets: PathBuf,
    },
    /// The Go build of a program failed.
    #[error("go build of {program} failed ({status}); the end of its output:\n{log}")]
    Build {
        /// The program that was built.
        program: &'static str,
        /// How the build ended.
        status: ExitStatus,
        /// The last lines of its output.
        log: String,
    },
    /// A program could not be started.
    #[error("cannot start {program}")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A program ended while the bed needed it.
    #[error("{program} ended; the end of its log {}:\n{log}", path.display())]
    Exited {
        /// The program.
        program: String,
        /// Its log file.
        path: PathBuf,
        /// The last lines of its log.
        log: String,
    },
    /// A program runs but did not become ready in time.
    #[error("{program} is not ready after {after:?}: {last}; the end of its log {}:\n{log}", path.display())]
    NotReady {
        /// The program.
        program: String,
        /// How long the bed waited.
        after: Duration,
        /// What the last probe said.
        last: String,
        /// Its log file.
        path: PathBuf,
        /// The last lines of its log.
        log: String,
    },
    /// A program that a test wants to stop, pause or start was not asked for when the control plane was made.
    #[error("control plane {control_plane} has no {program}; ask for it in its ControlPlaneOptions")]
    NotConfigured {
        /// The control plane.
        control_plane: String,
        /// The program.
        program: &'static str,
    },
    /// A control plane of that name does not exist in this bed.
    #[error("there is no control plane {name:?} in this bed; there are {known:?}")]
    UnknownControlPlane {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A control plane's name is taken or cannot be a file name and an etcd prefix.
    #[error("control plane name {name:?} {problem}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No free port was found on 127.0.0.1.
    #[error("no free port on 127.0.0.1 between {from} and {to}")]
    NoPort {
        /// First port that was tried.
        from: u16,
        /// First port beyond those that were tried.
        to: u16,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate for {subject}")]
    Certificate {
        /// Whom the certificate is for.
        subject: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// A kubeconfig of the bed could not be turned into a client.
    #[error("cannot make a client for {server}: {message}")]
    Client {
        /// URL of the API server.
        server: String,
        /// What is wrong.
        message: String,
    },
    /// A request to an API server failed.
    #[error("cannot {action}")]
    Api {
        /// What was asked of the API server.
        action: String,
        /// Its answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// YAML that a test wants applied is not a list of Kubernetes objects.
    #[error("document {index} of the YAML to apply: {message}")]
    Yaml {
        /// Number of the document, from 1.
        index: usize,
        /// What is wrong with it.
        message: String,
    },
    /// The proxy refused a request.
    #[error("toxiproxy answered {status} to {request}: {body}")]
    Proxy {
        /// Method and path.
        request: String,
        /// Status code of the answer; 0 when there was none.
        status: u16,
        /// Text of the answer.
        body: String,
    },
    /// Something that was waited for did not come about.
    #[error("waited {after:?} for {what}, in vain; at last: {last}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        after: Duration,
        /// What the last look showed.
        last: String,
    },
    /// A blocking part of the bed panicked or was cancelled.
    #[error("a background task of the bed failed")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// An I/O failure of `action` on `path`, as a closure for `map_err`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// A failed request, as a closure for `map_err`.
    pub(crate) fn api(action: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let action = action.into();
        move |source| Self::Api {
            action,
            source: Box::new(source),
        }
    }
}

/// Result of the bed.
pub type Result<T, E = Error> = std::result::Result<T, E>;
