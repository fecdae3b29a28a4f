//! From an answer of an API server to what the core does about it.

use std::time::Duration;

use kube::core::Status;

use super::reason::cut;
use crate::dispatcher::{Refusal, RefusalKind};

/// What an API server answered to a request, or that it did not.
#[derive(Debug)]
pub enum Reply {
    /// Success, with the text of the body.
    Done(String),
    /// It was not done.
    Refused(Refusal),
    /// It may have been done, or may still be.
    Unknown(String),
}

/// What a request is about, to read refusals by.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Plural of the kind: a Status names resources, whatever its field is called.
    pub plural: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// It is a JSON patch.
    pub json_patch: bool,
    /// It changes something.
    pub writes: bool,
}

/// Longest text of a Status that is passed on.
const MAX_MESSAGE: usize = 1_024;

/// Reads an answer with an error code.
pub fn refuse(asked: Asked<'_>, code: u16, body: &str, retry_after: Option<Duration>) -> Reply {
    // A proxy or a bare path that does not exist answers with text: no Status, and no proof of anything.
    let status = serde_json::from_str::<Status>(body)
        .ok()
        .filter(|status| status.status.is_some() || !status.reason.is_empty());
    let told = |kind| {
        let details = status.as_ref().and_then(|status| status.details.as_ref());
        let seconds = details.map_or(0, |details| details.retry_after_seconds);
        Reply::Refused(Refusal {
            kind,
            code,
            reason: status
                .as_ref()
                .map_or_else(String::new, |status| cut(&status.reason, 100)),
            message: cut(
                status.as_ref().map_or(body.trim(), |status| &status.message),
                MAX_MESSAGE,
            ),
            retry_after: retry_after.or((seconds > 0).then(|| Duration::from_secs(seconds.into()))),
        })
    };
    let reason = status.as_ref().map_or("", |status| status.reason.as_str());
    match (code, &status) {
        (404, Some(status)) => told(not_found(asked, status)),
        (404, None) => told(RefusalKind::OtherNotFound),
        (409, Some(_)) if reason == "AlreadyExists" => told(RefusalKind::AlreadyExists),
        (409 | 412, _) => told(RefusalKind::Conflict),
        (422, Some(status)) if asked.json_patch && names_nothing(status) => told(RefusalKind::Conflict),
        (400 | 413 | 422, _) => told(RefusalKind::Invalid),
        (401 | 403, _) => told(RefusalKind::Forbidden),
        (429, _) | (503, Some(_)) => told(RefusalKind::Busy),
        // The API server gave up waiting for its storage, or something in between gave up waiting for the API server: a write may have been done.
        (500.., _) if asked.writes && !refused_by_webhook(reason, status.as_ref()) => {
            let text = status.as_ref().map_or(body.trim(), |status| &status.message);
            Reply::Unknown(format!("the answer was {code}: {}", cut(text, 300)))
        }
        (503, None) => told(RefusalKind::Busy),
        _ => told(RefusalKind::Server),
    }
}

fn not_found(asked: Asked<'_>, status: &Status) -> RefusalKind {
    let Some(details) = &status.details else {
        return RefusalKind::OtherNotFound;
    };
    if details.group == asked.group && details.kind == asked.plural && details.name == asked.name {
        RefusalKind::ObjectNotFound
    } else if details.group.is_empty() && details.kind == "namespaces" && !details.name.is_empty() {
        RefusalKind::NamespaceNotFound
    } else {
        RefusalKind::OtherNotFound
    }
}

/// A JSON patch that does not apply (a `test` that failed, a path that is gone) is answered by a 422 without details, one whose result is not valid by a 422
/// that names the object: `jsonPatcher` and `NewInvalid` in `k8s.io/apiserver` and `k8s.io/apimachinery`. The texts are the same for years, but are texts.
fn names_nothing(status: &Status) -> bool {
    status
        .details
        .as_ref()
        .is_none_or(|details| details.kind.is_empty() && details.name.is_empty())
}

/// Webhooks are called before anything is stored. There is no other mark of their failure than the text (`ToStatusErr`, `NewInternalError`).
fn refused_by_webhook(reason: &str, status: Option<&Status>) -> bool {
    reason == "InternalError" && status.is_some_and(|status| status.message.contains("failed calling webhook"))
}

/// Seconds of a `Retry-After` header; its other form, a date, is not sent by API servers.
pub fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let seconds = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
