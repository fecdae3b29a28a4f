//! Faults of the network between a client and an API server.

use std::time::{Duration, Instant};

use bed::{Link, eventually};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::timeout;

use crate::world::{BED, SOON, control_plane};

/// Longer than an answer takes, short enough for a test that expects none.
const SILENCE: Duration = Duration::from_secs(2);

async fn linked() -> (Link, Client) {
    let manager = control_plane("manager").await;
    let link = BED.get().await.unwrap().link(&manager).await.unwrap();
    let client = manager.kubeconfig().clone().via(&link).client().await.unwrap();
    client.apiserver_version().await.expect("a new link has no fault");
    (link, client)
}

async fn works_again(client: &Client) {
    eventually(SOON, "an answer after the fault", || async {
        Ok(client.apiserver_version().await?)
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_black_hole_swallows_and_heals() {
    let (link, client) = linked().await;
    link.black_hole().await.unwrap();
    timeout(SILENCE, client.apiserver_version())
        .await
        .expect_err("silence on the open connection");
    let fresh = control_plane("manager")
        .await
        .kubeconfig()
        .clone()
        .via(&link)
        .client()
        .await
        .unwrap();
    timeout(SILENCE, fresh.apiserver_version())
        .await
        .expect_err("silence on a new connection");
    link.heal().await.unwrap();
    works_again(&client).await;
}

#[tokio::test]
async fn a_refused_connection_is_an_error_at_once() {
    let (link, client) = linked().await;
    link.refuse().await.unwrap();
    timeout(SILENCE, client.apiserver_version())
        .await
        .expect("an answer")
        .expect_err("refused");
    link.heal().await.unwrap();
    works_again(&client).await;
}

#[tokio::test]
async fn a_reset_connection_is_an_error_at_once() {
    let (link, client) = linked().await;
    link.reset().await.unwrap();
    timeout(SILENCE, client.apiserver_version())
        .await
        .expect("an answer")
        .expect_err("reset");
    link.heal().await.unwrap();
    works_again(&client).await;
}

#[tokio::test]
async fn a_lost_answer_does_not_undo_the_request() {
    let (link, client) = linked().await;
    link.lose_answers().await.unwrap();
    let object = ConfigMap {
        metadata: ObjectMeta {
            name: Some("unanswered".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let objects = Api::<ConfigMap>::default_namespaced(client);
    timeout(SILENCE, objects.create(&PostParams::default(), &object))
        .await
        .expect_err("no answer");
    let direct = Api::<ConfigMap>::default_namespaced(control_plane("manager").await.client().await.unwrap());
    direct.get("unanswered").await.expect("the request was done");
}

#[tokio::test]
async fn latency_and_bandwidth_slow_answers_down() {
    let (link, client) = linked().await;
    let took = async || {
        let start = Instant::now();
        client.apiserver_version().await.unwrap();
        start.elapsed()
    };
    link.latency(Duration::from_millis(400)).await.unwrap();
    assert!(took().await >= Duration::from_millis(400));
    link.bandwidth(10).await.unwrap();
    let start = Instant::now();
    // Some 100 KB.
    let request = http::Request::get("/openapi/v3/apis/batch/v1")
        .body(Vec::new())
        .unwrap();
    let length = client.request_text(request).await.unwrap().len();
    assert!(
        length > 30_000 && start.elapsed() > Duration::from_secs(2),
        "{length} bytes took {:?}",
        start.elapsed()
    );
    link.slow_close(Duration::from_millis(100)).await.unwrap();
    link.heal().await.unwrap();
    works_again(&client).await;
}

#[tokio::test]
async fn a_fault_of_one_link_spares_the_others() {
    let ((broken, _), (_, client)) = (linked().await, linked().await);
    broken.black_hole().await.unwrap();
    timeout(SILENCE, client.apiserver_version())
        .await
        .expect("an answer")
        .unwrap();
}
