//! Leader election against a real API server.

use std::sync::Mutex;
use std::time::Duration;

use bed::{NotYet, eventually, steadily};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use multikueue::app::leader::Leadership;
use multikueue::app::leader::sole::Sole;
use multikueue::clusters::Clock;
use multikueue::dispatcher::event::Claim;

use crate::BED;
use crate::candidate::{Candidate, TIMING, lease};

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn of_three_candidates_one_leads_and_keeps_leading_under_one_claim() {
    let client = BED
        .get()
        .await
        .unwrap()
        .control_plane("main")
        .unwrap()
        .client()
        .await
        .unwrap();
    let clock = Clock::start();
    let all = ["a", "b", "c"].map(|identity| Candidate::start(client.clone(), "exclusive", identity, clock));
    eventually(PATIENCE, "one to lead", async || {
        if all.iter().any(|candidate| candidate.claim().is_some()) {
            Ok(())
        } else {
            Err(NotYet::from("none"))
        }
    })
    .await
    .unwrap();
    steadily(TIMING.duration * 2, "exactly one leader", async || {
        match all.iter().filter(|candidate| candidate.claim().is_some()).count() {
            1 => Ok(()),
            count => Err(NotYet::from(format!("{count} lead"))),
        }
    })
    .await
    .unwrap();
    let leader = all.iter().find(|candidate| candidate.claim().is_some()).unwrap();
    let claims: Vec<_> = leader
        .published()
        .into_iter()
        .map(|(_, leadership)| match leadership {
            Leadership::Leads(claim) => claim,
            Leadership::Lost => panic!("it lost leadership in between"),
        })
        .collect();
    assert!(claims.len() >= 5, "renewed every {:?}: {claims:?}", TIMING.renew);
    assert!(
        claims
            .iter()
            .all(|claim| claim.id == claims[0].id && claim.transitions == 0),
        "{claims:?}"
    );
    assert!(claims.is_sorted_by(|a, b| a.expires < b.expires), "{claims:?}");
    let others = all.iter().filter(|candidate| candidate.claim().is_none());
    assert!(
        others.into_iter().all(|candidate| candidate.published().is_empty()),
        "the others never led"
    );
    let spec = lease(&client, "default", "exclusive").await.spec.unwrap();
    assert!(spec.holder_identity.unwrap().ends_with(&*claims[0].id));
    assert_eq!(spec.lease_duration_seconds, Some(3));
}

#[tokio::test]
async fn a_crashed_leader_is_followed_only_after_its_lease_ran_out() {
    let client = BED
        .get()
        .await
        .unwrap()
        .control_plane("main")
        .unwrap()
        .client()
        .await
        .unwrap();
    let clock = Clock::start();
    let first = Candidate::start(client.clone(), "crashed", "first", clock);
    first.leads(PATIENCE).await;
    let second = Candidate::start(client.clone(), "crashed", "second", clock);
    tokio::time::sleep(TIMING.renew * 2).await;
    let old = first.claim().unwrap();
    first.crash();
    let new = second.leads(PATIENCE).await;
    let (since, _) = second.published()[0];
    assert!(
        since > old.expires,
        "led at {since:?}, the claim before ended at {:?}",
        old.expires
    );
    assert_eq!(new.transitions, old.transitions + 1);
    assert_ne!(new.id, old.id);
}

#[tokio::test]
async fn a_leader_that_ends_gives_the_lease_back_and_is_followed_at_once() {
    let client = BED
        .get()
        .await
        .unwrap()
        .control_plane("main")
        .unwrap()
        .client()
        .await
        .unwrap();
    let clock = Clock::start();
    let first = Candidate::start(client.clone(), "vacated", "first", clock);
    first.leads(PATIENCE).await;
    first.end().await;
    let stored = lease(&client, "default", "vacated").await.spec.unwrap();
    assert_eq!(stored.holder_identity, None);

    let start = clock.mono();
    let second = Candidate::start(client.clone(), "vacated", "second", clock);
    second.leads(PATIENCE).await;
    let (since, _) = second.published()[0];
    let waited = since.checked_sub(start).unwrap();
    assert!(waited < TIMING.duration, "it waited for {waited:?}");
}

#[tokio::test]
async fn a_leader_cut_off_by_a_frozen_api_server_is_none_by_itself_when_its_claim_ends() {
    let frozen = BED.get().await.unwrap().control_plane("frozen").unwrap();
    let clock = Clock::start();
    let leader = Candidate::start(frozen.client().await.unwrap(), "cut-off", "only", clock);
    leader.leads(PATIENCE).await;
    frozen.api_server().pause().unwrap();
    // The last renewal before the silence may come in just now: what counts is the claim when it is over.
    let lost = eventually(TIMING.duration * 2, "leadership to be lost", async || {
        match leader.published().pop() {
            Some((at, Leadership::Lost)) => Ok(at),
            other => Err(NotYet::from(format!("{other:?}"))),
        }
    })
    .await;
    frozen.api_server().resume().unwrap();
    let lost = lost.unwrap();
    let published = leader.published();
    let former = published.iter().rev().find_map(|(_, leadership)| match leadership {
        Leadership::Leads(claim) if claim.expires <= lost => Some(claim.clone()),
        _ => None,
    });
    let former = former.expect("a claim that ended");
    let late = lost.checked_sub(former.expires).unwrap();
    assert!(late < TIMING.renew, "published {late:?} after the end of the claim");

    let again = leader.leads(PATIENCE).await;
    assert_ne!(again.id, former.id, "a new acquisition");
    assert_eq!(again.transitions, former.transitions + 1);
    leader.end().await;
}

#[tokio::test]
async fn a_candidate_waits_for_a_namespace_that_is_not_there_yet() {
    let client = BED
        .get()
        .await
        .unwrap()
        .control_plane("main")
        .unwrap()
        .client()
        .await
        .unwrap();
    let config = multikueue::app::leader::LeaderConfig {
        namespace: "not-there-yet".into(),
        name: "early".into(),
        identity: "early".into(),
        timing: TIMING,
    };
    let mut leader = multikueue::app::leader::Leader::new(client.clone(), config, Clock::start()).unwrap();
    let (led, leads) = tokio::sync::oneshot::channel();
    let mut led = Some(led);
    let publish = move |leadership| {
        if let (Leadership::Leads(_), Some(led)) = (leadership, led.take()) {
            led.send(()).unwrap();
        }
    };
    let task = tokio::spawn(async move { leader.run(publish, std::future::pending()).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!task.is_finished());
    bed::create_namespace(&client, "not-there-yet", false).await.unwrap();
    tokio::time::timeout(PATIENCE, leads).await.unwrap().unwrap();
    task.abort();
}

#[tokio::test]
async fn who_leads_without_an_election_renews_its_claim_for_as_long_as_the_manager_is_the_same_cluster() {
    let plane = BED.get().await.unwrap().control_plane("main").unwrap();
    let client = plane.client().await.unwrap();
    let clock = Clock::start();
    let system = Api::<Namespace>::all(client.clone()).get("kube-system").await.unwrap();
    let renew = Duration::from_millis(200);
    let sole = Sole::new(client.clone(), clock, system.metadata.uid.clone().unwrap(), renew).unwrap();
    let claims = Mutex::new(Vec::new());
    let publish = |claim: Claim| claims.lock().unwrap().push((clock.mono(), claim));
    tokio::select! {
        uid = sole.run(publish) => panic!("the manager was another cluster: {uid}"),
        enough = eventually(PATIENCE, "renewals", async || match claims.lock().unwrap().len() {
            0..4 => Err(NotYet::from("not yet")),
            _ => Ok(()),
        }) => enough.unwrap(),
    }
    let claims = claims.into_inner().unwrap();
    assert!(claims.is_sorted_by(|(_, a), (_, b)| a.renewed < b.renewed && a.id == b.id && a.expires == b.expires));
    assert!(
        claims.iter().all(|(at, claim)| claim.renewed <= *at),
        "counted from before the request"
    );

    let stranger = Sole::new(client, clock, "another".into(), renew).unwrap();
    let mut published = 0;
    assert_eq!(Some(stranger.run(|_| published += 1).await), system.metadata.uid);
    assert_eq!(published, 1, "what was claimed at the start is not renewed");
}
