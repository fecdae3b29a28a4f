//! The bed itself, live: what tests of the operator take for granted.

use std::time::Duration;

use bed::{Shared, gpu_node, job, wait_for_job};

static BED: Shared = Shared::new(|| bed::BedOptions::new().manager("manager").worker("eu"));

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_job_on_a_gpu_node_runs_to_complete() {
    let eu = BED.get().await.unwrap().control_plane("eu").unwrap();
    let client = eu.client().await.unwrap();
    gpu_node("complete").gpus(8).create(&client).await.unwrap();
    job("complete").gpus(8).create(&client).await.unwrap();
    let done = wait_for_job(&client, "default", "complete", "Complete", SOON).await.unwrap();
    assert_eq!(done.status.unwrap().succeeded, Some(1));
}
