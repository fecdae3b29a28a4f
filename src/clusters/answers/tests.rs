use serde_json::{Value, json};

use super::*;

const GET: Asked<'_> = Asked {
    group: "batch",
    plural: "jobs",
    name: "train",
    json_patch: false,
    writes: false,
};
const CREATE: Asked<'_> = Asked { writes: true, ..GET };
const PATCH: Asked<'_> = Asked {
    writes: true,
    json_patch: true,
    ..GET
};

fn status(code: u16, reason: &str, details: &Value) -> String {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "why", "reason": reason, "details": details, "code": code})
        .to_string()
}

fn kind(asked: Asked<'_>, code: u16, body: &str) -> Option<RefusalKind> {
    match refuse(asked, code, body, None) {
        Reply::Refused(refusal) => Some(refusal.kind),
        Reply::Unknown(_) => None,
        Reply::Done(_) => panic!("a refusal is no success"),
    }
}

#[test]
fn only_a_status_that_names_group_kind_and_name_says_that_the_object_is_not_there() {
    let details = json!({"name": "train", "group": "batch", "kind": "jobs"});
    assert_eq!(
        kind(GET, 404, &status(404, "NotFound", &details)),
        Some(RefusalKind::ObjectNotFound)
    );
    for other in [
        json!({"name": "other", "group": "batch", "kind": "jobs"}),
        json!({"name": "train", "group": "", "kind": "jobs"}),
        json!({"name": "train", "group": "batch", "kind": "cronjobs"}),
        json!({}),
        Value::Null,
    ] {
        assert_eq!(
            kind(GET, 404, &status(404, "NotFound", &other)),
            Some(RefusalKind::OtherNotFound),
            "{other}"
        );
    }
    assert_eq!(kind(GET, 404, "404 page not found\n"), Some(RefusalKind::OtherNotFound));
    assert_eq!(
        kind(GET, 404, "<html>no backend</html>"),
        Some(RefusalKind::OtherNotFound)
    );
    assert_eq!(
        kind(GET, 404, r#"{"message":"Not Found"}"#),
        Some(RefusalKind::OtherNotFound)
    );
    let namespace = json!({"name": "team", "kind": "namespaces"});
    assert_eq!(
        kind(CREATE, 404, &status(404, "NotFound", &namespace)),
        Some(RefusalKind::NamespaceNotFound)
    );
}

#[test]
fn a_failed_test_is_a_conflict_and_an_invalid_object_is_not() {
    let named = json!({"name": "train", "group": "batch", "kind": "Job", "causes": [{"field": "spec"}]});
    assert_eq!(
        kind(PATCH, 422, &status(422, "Invalid", &json!({}))),
        Some(RefusalKind::Conflict)
    );
    assert_eq!(
        kind(PATCH, 422, &status(422, "Invalid", &named)),
        Some(RefusalKind::Invalid)
    );
    assert_eq!(
        kind(CREATE, 422, &status(422, "Invalid", &named)),
        Some(RefusalKind::Invalid)
    );
    assert_eq!(
        kind(CREATE, 422, &status(422, "Invalid", &json!({}))),
        Some(RefusalKind::Invalid)
    );
}

#[test]
fn what_may_have_been_done_is_unknown_and_what_was_not_is_refused() {
    let plain = |code, reason| status(code, reason, &json!({}));
    assert_eq!(
        kind(CREATE, 409, &plain(409, "AlreadyExists")),
        Some(RefusalKind::AlreadyExists)
    );
    assert_eq!(kind(CREATE, 409, &plain(409, "Conflict")), Some(RefusalKind::Conflict));
    assert_eq!(
        kind(CREATE, 401, &plain(401, "Unauthorized")),
        Some(RefusalKind::Forbidden)
    );
    assert_eq!(
        kind(CREATE, 403, &plain(403, "Forbidden")),
        Some(RefusalKind::Forbidden)
    );
    assert_eq!(kind(CREATE, 413, "too large"), Some(RefusalKind::Invalid));
    assert_eq!(kind(CREATE, 429, "slow down"), Some(RefusalKind::Busy));
    assert_eq!(
        kind(CREATE, 503, &plain(503, "ServiceUnavailable")),
        Some(RefusalKind::Busy)
    );
    // A write that timed out in the storage, or behind a load balancer, may have been done.
    for (code, body) in [
        (500, plain(500, "")),
        (504, plain(504, "Timeout")),
        (502, "bad gateway".into()),
        (503, "no backend".into()),
    ] {
        assert_eq!(kind(CREATE, code, &body), None, "{code} {body}");
    }
    assert_eq!(kind(GET, 500, &plain(500, "")), Some(RefusalKind::Server));
    assert_eq!(kind(GET, 503, "no backend"), Some(RefusalKind::Busy));
    let webhook = status(500, "InternalError", &json!({})).replace(
        "why",
        r#"Internal error occurred: failed calling webhook \"v.example\": EOF"#,
    );
    assert_eq!(kind(CREATE, 500, &webhook), Some(RefusalKind::Server));
}

#[test]
fn the_pause_asked_for_is_passed_on() {
    let pause = |header: Option<Duration>, seconds: u32| match refuse(
        CREATE,
        429,
        &status(429, "TooManyRequests", &json!({"retryAfterSeconds": seconds})),
        header,
    ) {
        Reply::Refused(refusal) => refusal.retry_after,
        other => panic!("{other:?}"),
    };
    assert_eq!(pause(None, 0), None);
    assert_eq!(pause(None, 7), Some(Duration::from_secs(7)));
    assert_eq!(pause(Some(Duration::from_secs(3)), 7), Some(Duration::from_secs(3)));
    let mut headers = http::HeaderMap::new();
    headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("11"));
    assert_eq!(retry_after(&headers), Some(Duration::from_secs(11)));
}
