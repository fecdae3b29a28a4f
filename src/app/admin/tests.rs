use axum::body::{Body, to_bytes};
use axum::http::Request;
use tower::ServiceExt;

use super::*;
use crate::clusters::Clock;

async fn get_path(router: &Router, path: &str) -> (StatusCode, Option<String>, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let content = response
        .headers()
        .get(header::CONTENT_TYPE)
        .map(|value| value.to_str().unwrap().to_owned());
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, content, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn ready_when_every_part_is_and_until_then_each_missing_part_says_why() {
    let health = Health::new(Clock::start(), &["jobs", "workerclusters"]);
    let router = router(health.clone(), Metrics::new());
    health.waiting("jobs", "the custom resource definition is not installed");
    let (status, _, body) = get_path(&router, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        body,
        "jobs: the custom resource definition is not installed\nworkerclusters: not there yet\n"
    );

    health.ready("jobs");
    let (status, _, body) = get_path(&router, "/readyz").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "workerclusters: not there yet\n")
    );

    health.ready("workerclusters");
    let (status, _, body) = get_path(&router, "/readyz").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "ok\n"));
}

#[tokio::test]
async fn alive_although_not_ready() {
    let health = Health::new(Clock::start(), &["jobs"]);
    health.beat();
    let (status, _, body) = get_path(&router(health, Metrics::new()), "/healthz").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "ok\n"));
}

#[tokio::test]
async fn metrics_are_served_as_open_metrics() {
    let metrics = Metrics::new();
    metrics.leading(true);
    let router = router(Health::new(Clock::start(), &[]), metrics);
    let (status, content, body) = get_path(&router, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(content.as_deref(), Some(OPEN_METRICS));
    assert!(
        body.contains("multikueue_leader 1\n") && body.ends_with("# EOF\n"),
        "{body}"
    );
}

#[tokio::test]
async fn any_address_is_bound_once_and_a_taken_port_is_an_error_that_names_the_flag() {
    assert!(bind(&BindAddress::Off).await.unwrap().is_none());
    let listener = bind(&"127.0.0.1:0".parse().unwrap()).await.unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let error = bind(&BindAddress::One(address)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {address} (--metrics-bind-address)")
    );
}
