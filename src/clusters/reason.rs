//! Why a cluster cannot be used: a closed set of reasons, and one sentence for people.
//!
//! The reason is read off the types in the chain of sources of an error (rustls, `std::io`, tower), not off its text, wherever there is a type.

use std::error::Error as StdError;
use std::io;

use kube::core::Status;
use rustls::{CertificateError, Error as TlsError};

use crate::api::conditions::WorkerReason;

/// What went wrong with a connection or a request: finer than the reasons of the condition `Connected` where we do different things about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The certificate of the server is signed by none of the given CAs.
    UnknownCA,
    /// The certificate of the server is for other names.
    WrongHostName,
    /// The certificate of the server is out of its time.
    CertificateExpired,
    /// Any other failure of TLS.
    TLSFailure,
    /// The client certificate of the kubeconfig is out of its time.
    CredentialsExpired,
    /// Nothing listens there.
    Refused,
    /// No answer in time.
    Timeout,
    /// The host name is not known.
    DNSFailure,
    /// The connection was cut.
    ConnectionReset,
    /// Any other failure on the way.
    Unreachable,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 429 or 503.
    Busy,
    /// The server answered with another error, or with something that is not what was asked for.
    ServerError,
    /// The kubeconfig is refused.
    InvalidKubeconfig,
    /// The Secret is not there.
    SecretNotFound,
    /// The Secret has no such key.
    SecretKeyNotFound,
}

impl Reason {
    /// The reason of the condition `Connected` that this is.
    pub fn condition(self) -> WorkerReason {
        match self {
            Self::UnknownCA => WorkerReason::UnknownAuthority,
            Self::WrongHostName => WorkerReason::HostNameMismatch,
            Self::CertificateExpired | Self::CredentialsExpired => WorkerReason::CertificateExpired,
            Self::TLSFailure => WorkerReason::TlsError,
            Self::Refused => WorkerReason::ConnectionRefused,
            Self::Timeout => WorkerReason::Timeout,
            Self::DNSFailure => WorkerReason::NameResolutionFailed,
            Self::ConnectionReset | Self::Unreachable => WorkerReason::ConnectionLost,
            Self::Unauthorized => WorkerReason::Unauthorized,
            Self::Forbidden => WorkerReason::Forbidden,
            Self::NotFound | Self::Busy | Self::ServerError => WorkerReason::ServerError,
            Self::InvalidKubeconfig => WorkerReason::InvalidKubeconfig,
            Self::SecretNotFound => WorkerReason::SecretNotFound,
            Self::SecretKeyNotFound => WorkerReason::SecretKeyNotFound,
        }
    }

    /// As [`Reason::condition`], in text.
    pub fn as_str(self) -> &'static str {
        self.condition().as_str()
    }
}

/// A reason and its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The reason.
    pub reason: Reason,
    /// One sentence.
    pub message: String,
}

impl Trouble {
    /// A trouble.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// What an error of the client says.
    pub fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status),
            kube::Error::SerdeError(e) => Self::new(
                Reason::ServerError,
                format!("the answer is not what was asked for: {e}"),
            ),
            other => Self::of_chain(other),
        }
    }

    /// What an error of a watch says.
    pub fn of_watch(error: &kube::runtime::watcher::Error) -> Self {
        use kube::runtime::watcher::Error;
        match error {
            Error::InitialListFailed(e) | Error::WatchStartFailed(e) | Error::WatchFailed(e) => Self::of(e),
            Error::WatchError(status) => Self::of_status(status),
            Error::NoResourceVersion => Self::new(Reason::ServerError, "a list came without a resourceVersion"),
        }
    }

    /// What a Status says.
    pub fn of_status(status: &Status) -> Self {
        let (reason, what) = match status.code {
            401 => (Reason::Unauthorized, "the credentials are not accepted"),
            403 => (Reason::Forbidden, "the credentials lack a right"),
            404 => (Reason::NotFound, "the API server does not know what was asked for"),
            429 | 503 => (Reason::Busy, "the API server is busy"),
            _ => (Reason::ServerError, "the API server answered with an error"),
        };
        let text = cut(&status.message, 300);
        Self::new(reason, format!("{what} ({}): {text}", status.code))
    }

    /// What the sources of an error say.
    pub fn of_chain(error: &(dyn StdError + 'static)) -> Self {
        let mut fallback = None;
        let mut last = String::new();
        let mut next = Some(error);
        // Custom `source` implementations may form a circle.
        for _ in 0..16 {
            let Some(current) = next else { break };
            if let Some(found) = of_one(current) {
                return found;
            }
            let text = current.to_string();
            if text == "dns error" {
                // The resolver's own type is private to the HTTP client, and its io error has no kind.
                fallback = Some(Reason::DNSFailure);
            }
            last = text;
            next = inner(current).or_else(|| current.source());
        }
        match fallback {
            Some(Reason::DNSFailure) => Self::new(
                Reason::DNSFailure,
                format!("the host name of the server is not known: {last}"),
            ),
            _ => Self::new(
                Reason::Unreachable,
                format!("the connection failed: {}", cut(&last, 300)),
            ),
        }
    }
}

/// An io error hides the error that it was made of from `source`.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    let io = error.downcast_ref::<io::Error>()?;
    io.get_ref().map(|inner| inner as &(dyn StdError + 'static))
}

fn of_one(error: &(dyn StdError + 'static)) -> Option<Trouble> {
    if let Some(tls) = error.downcast_ref::<TlsError>() {
        return Some(of_tls(tls));
    }
    if error.is::<tower::timeout::error::Elapsed>() {
        return Some(Trouble::new(
            Reason::Timeout,
            "the server accepted the request and did not answer in time",
        ));
    }
    let io = error.downcast_ref::<io::Error>()?;
    match io.kind() {
        io::ErrorKind::ConnectionRefused => Some(Trouble::new(
            Reason::Refused,
            "nothing listens at the address of the server",
        )),
        io::ErrorKind::TimedOut => Some(Trouble::new(Reason::Timeout, "the server did not answer in time")),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof
            if inner(error).is_none() =>
        {
            Some(Trouble::new(
                Reason::ConnectionReset,
                format!("the connection was cut: {io}"),
            ))
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some(Trouble::new(
            Reason::Unreachable,
            format!("there is no way to the server: {io}"),
        )),
        _ => None,
    }
}

fn of_tls(error: &TlsError) -> Trouble {
    let TlsError::InvalidCertificate(certificate) = error else {
        return Trouble::new(Reason::TLSFailure, format!("TLS failed: {error}"));
    };
    match certificate {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Trouble::new(
            Reason::UnknownCA,
            "the certificate of the server is signed by none of the CAs in certificate-authority-data; give the CA that signed it",
        ),
        CertificateError::NotValidForNameContext { expected, presented } => Trouble::new(
            Reason::WrongHostName,
            format!(
                "the certificate of the server is not for {}, only for {}; set tls-server-name to one of these",
                expected.to_str(),
                cut(&presented.join(", "), 500)
            ),
        ),
        CertificateError::NotValidForName => Trouble::new(
            Reason::WrongHostName,
            "the certificate of the server is for other names; set tls-server-name to one of them",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Trouble::new(
            Reason::CertificateExpired,
            format!("the certificate of the server has expired: {certificate}"),
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Trouble::new(
            Reason::CertificateExpired,
            format!("the certificate of the server is not valid yet: {certificate}"),
        ),
        other => Trouble::new(
            Reason::TLSFailure,
            format!("the certificate of the server is not accepted: {other}"),
        ),
    }
}

/// At most `max` bytes of a text, cut between characters.
pub fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub(3));
    format!("{}...", &text[..end])
}
