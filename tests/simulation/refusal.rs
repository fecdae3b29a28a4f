//! Answers of an API server that did not do what was asked, as the rim classifies them.

use multikueue::dispatcher::{Refusal, RefusalKind};

/// A refusal with the status code and reason that a real API server gives for its kind.
pub fn refuse(kind: RefusalKind, message: impl Into<String>) -> Refusal {
    let (code, reason) = match kind {
        RefusalKind::ObjectNotFound | RefusalKind::NamespaceNotFound | RefusalKind::OtherNotFound => (404, "NotFound"),
        RefusalKind::AlreadyExists => (409, "AlreadyExists"),
        RefusalKind::Conflict => (409, "Conflict"),
        RefusalKind::Invalid => (422, "Invalid"),
        RefusalKind::Forbidden => (403, "Forbidden"),
        RefusalKind::Busy => (429, "TooManyRequests"),
        RefusalKind::Server => (500, "InternalError"),
    };
    Refusal {
        kind,
        code,
        reason: reason.into(),
        message: message.into(),
        retry_after: None,
    }
}
