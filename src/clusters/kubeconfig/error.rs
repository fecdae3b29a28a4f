//! Why a kubeconfig is not used.

use super::MAX_BYTES;

/// Why a kubeconfig is not used. Every message names the field, what was found, and what would be right; none repeats a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// More than [`MAX_BYTES`].
    #[error("the kubeconfig has {found} bytes; at most {MAX_BYTES} are read")]
    TooLarge {
        /// Bytes found.
        found: usize,
    },
    /// Nothing but white space.
    #[error("the kubeconfig is empty; a kubeconfig with one context is expected")]
    Empty,
    /// Not UTF-8, not YAML, or not of the form of a kubeconfig.
    #[error("the kubeconfig is not readable{place}; YAML or JSON of kind Config is expected")]
    Unparsable {
        /// Where, if known. The parser's own text is left out: it quotes the source, and with it keys.
        place: String,
    },
    /// Several contexts and none is current, or none at all.
    #[error("current-context is not set and there are {found} contexts; set it, or leave exactly one context")]
    NoCurrentContext {
        /// Number of contexts.
        found: usize,
    },
    /// A reference leads nowhere.
    #[error("{field} names {name:?}, which is not in the kubeconfig; add it, or name one that is")]
    Dangling {
        /// The field that refers.
        field: &'static str,
        /// What it refers to.
        name: String,
    },
    /// A program would be run, or a plugin be used.
    #[error("user.{field} is set; plugins are never run: use token, or client-certificate-data with client-key-data")]
    Plugin {
        /// `exec` or `auth-provider`.
        field: &'static str,
    },
    /// A file would be read.
    #[error("{field} names a file; files are never read: {right}")]
    File {
        /// The field.
        field: &'static str,
        /// What would be right.
        right: &'static str,
    },
    /// The server's certificate would not be checked.
    #[error(
        "cluster.insecure-skip-tls-verify is true; the server is always verified: give its CA in certificate-authority-data, and tls-server-name if \
         the host names differ"
    )]
    InsecureSkipTlsVerify,
    /// A user and a password.
    #[error("user.username is set; API servers have no basic authentication since Kubernetes 1.19: use token")]
    BasicAuth,
    /// A URL that is none, or that is not used.
    #[error("{field} is {found:?}; {right}")]
    Url {
        /// The field.
        field: &'static str,
        /// The URL, without user info.
        found: String,
        /// What would be right.
        right: &'static str,
    },
    /// A required field is missing.
    #[error("{field} is missing; {right}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What would be right.
        right: &'static str,
    },
    /// Data that does not hold what it should.
    #[error("{field} {found}; {right}")]
    Data {
        /// The field.
        field: &'static str,
        /// What was found.
        found: &'static str,
        /// What would be right.
        right: &'static str,
    },
}
