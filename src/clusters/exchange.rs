//! One request, one deadline, one reply: the only place that sends what is not a watch.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Request, Uri};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;

use super::answers::{Asked, Reply, refuse, retry_after};
use super::reason::Trouble;

/// Sends a request and waits for the whole answer, at most until `deadline`.
///
/// The API server is told the deadline too: what reaches it in time must not be carried out long after we stopped waiting.
pub async fn exchange(client: &Client, asked: Asked<'_>, request: Request<Vec<u8>>, deadline: Instant) -> Reply {
    let left = deadline.saturating_duration_since(Instant::now());
    let request = match with_timeout(request, left) {
        Ok(request) => request.map(Body::from),
        // Nothing was sent, but nothing says so either; it is a bug, and the log line tells.
        Err(e) => return Reply::Unknown(format!("the request could not be made: {e}")),
    };
    match tokio::time::timeout_at(deadline, converse(client, asked, request)).await {
        Ok(reply) => reply,
        Err(_) => Reply::Unknown(format!("no answer within {} ms", left.as_millis())),
    }
}

async fn converse(client: &Client, asked: Asked<'_>, request: Request<Body>) -> Reply {
    let answer = match client.send(request).await {
        Ok(answer) => answer,
        Err(e) => return Reply::Unknown(Trouble::of(&e).message),
    };
    let code = answer.status().as_u16();
    let success = answer.status().is_success();
    let pause = retry_after(answer.headers());
    let body = match answer.into_body().collect_bytes().await {
        Ok(body) => body,
        Err(e) => return Reply::Unknown(format!("the answer broke off: {}", Trouble::of(&e).message)),
    };
    let text = String::from_utf8_lossy(&body);
    if success {
        Reply::Done(text.into_owned())
    } else {
        refuse(asked, code, &text, pause)
    }
}

fn with_timeout(request: Request<Vec<u8>>, left: Duration) -> Result<Request<Vec<u8>>, http::Error> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let separator = match path.find('?') {
        None => "?",
        Some(at) if at + 1 == path.len() || path.ends_with('&') => "",
        Some(_) => "&",
    };
    parts.uri = format!("{path}{separator}timeout={}ms", left.as_millis().max(1)).parse::<Uri>()?;
    // kube sets the content type of patches and of deletes itself.
    if !body.is_empty() {
        parts
            .headers
            .entry(http::header::CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/json"));
    }
    parts
        .headers
        .entry(HeaderName::from_static("accept"))
        .or_insert(HeaderValue::from_static("application/json"));
    Ok(Request::from_parts(parts, body))
}
