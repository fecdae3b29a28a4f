use std::collections::VecDeque;

use serde_json::{Value, json};

use super::*;
use crate::clusters::views::PriorityClassLite;

/// A feed of priority classes whose events are texts, in any mode.
struct Probe<const MODE: u8>;

impl<const M: u8> Feed for Probe<M> {
    type Object = PriorityClassLite;
    type Key = String;
    type Row = String;
    const MODE: Mode = match M {
        0 => Mode::Bulk,
        1 => Mode::Keyed,
        _ => Mode::Whole,
    };
    const NAME: &'static str = "probe";

    fn key(&self, meta: &ObjectMeta) -> String {
        meta.name.clone().unwrap_or_default()
    }
    fn row(&mut self, key: &String, object: Result<PriorityClassLite, String>) -> Option<String> {
        object.ok().map(|class| format!("{key}={}", class.value))
    }
    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        let text = match output {
            Output::Row(row) => row,
            Output::Gone(key, uid) => format!("-{key}/{uid}"),
            Output::All(rows) => format!("all {}", rows.values().cloned().collect::<Vec<_>>().join(",")),
            Output::Keys(keys) => format!("keys {}", keys.into_iter().collect::<Vec<_>>().join(",")),
            Output::Failed(trouble) => format!("failed {}", trouble.message),
        };
        Some(Event::WorkerClusterDeleted(text.as_str().into()))
    }
}

fn object(name: &str, value: &Value) -> Slim<PriorityClassLite> {
    let text =
        json!({"metadata": {"name": name, "uid": format!("{name}-uid"), "resourceVersion": "1"}, "value": value})
            .to_string();
    serde_json::from_str(&text).unwrap()
}

fn class(name: &str, value: i32) -> Slim<PriorityClassLite> {
    object(name, &json!(value))
}

fn drain<F: Feed>(outbox: &mut Outbox<F>) -> Vec<String> {
    let mut said = Vec::new();
    loop {
        outbox.prepare();
        match outbox.next.take() {
            Some(Event::WorkerClusterDeleted(text)) => said.push(text.to_string()),
            Some(other) => panic!("{other:?}"),
            None => return said,
        }
    }
}

fn list<F: Feed<Object = PriorityClassLite>>(outbox: &mut Outbox<F>, objects: &[(&str, i32)]) {
    outbox.take(watcher::Event::Init);
    for (name, value) in objects {
        outbox.take(watcher::Event::InitApply(class(name, *value)));
    }
    outbox.take(watcher::Event::InitDone);
}

#[test]
fn a_list_that_begins_again_replaces_nothing_before_it_is_complete() {
    let mut outbox = Outbox::new(Probe::<0>);
    list(&mut outbox, &[("a", 1), ("b", 2)]);
    assert_eq!(drain(&mut outbox), ["all a=1,b=2"]);
    outbox.take(watcher::Event::Init);
    outbox.take(watcher::Event::InitApply(class("c", 3)));
    assert_eq!(drain(&mut outbox), [""; 0]);
    list(&mut outbox, &[("b", 4)]);
    assert_eq!(drain(&mut outbox), ["all b=4"]);
}

#[test]
fn what_waits_is_replaced_by_what_is_newer() {
    let mut outbox = Outbox::new(Probe::<0>);
    list(&mut outbox, &[("a", 1), ("b", 2)]);
    // The list is not handed over yet: changes go into it.
    outbox.take(watcher::Event::Apply(class("c", 3)));
    outbox.take(watcher::Event::Delete(class("a", 1)));
    assert_eq!(drain(&mut outbox), ["all b=2,c=3"]);
    for value in 0..1_000 {
        outbox.take(watcher::Event::Apply(class("c", value)));
    }
    outbox.take(watcher::Event::Delete(class("b", 2)));
    assert_eq!(outbox.changes.len(), 2);
    assert_eq!(drain(&mut outbox), ["-b/b-uid", "c=999"]);
}

#[test]
fn keys_follow_the_rows_of_a_list_and_know_what_happened_meanwhile() {
    let mut outbox = Outbox::new(Probe::<1>);
    list(&mut outbox, &[("a", 1), ("b", 2)]);
    outbox.take(watcher::Event::Delete(class("a", 1)));
    outbox.take(watcher::Event::Apply(class("c", 3)));
    assert_eq!(drain(&mut outbox), ["-a/a-uid", "b=2", "c=3", "keys b,c"]);
}

#[test]
fn a_whole_is_said_again_with_every_change() {
    let mut outbox = Outbox::new(Probe::<2>);
    list(&mut outbox, &[("a", 1)]);
    assert_eq!(drain(&mut outbox), ["all a=1"]);
    outbox.take(watcher::Event::Apply(class("b", 2)));
    assert_eq!(drain(&mut outbox), ["all a=1,b=2"]);
    outbox.take(watcher::Event::Delete(class("a", 1)));
    assert_eq!(drain(&mut outbox), ["all b=2"]);
}

#[test]
fn an_object_that_cannot_be_read_is_gone_and_the_others_stay() {
    let mut outbox = Outbox::new(Probe::<0>);
    outbox.take(watcher::Event::Init);
    outbox.take(watcher::Event::InitApply(object("bad", &json!("text"))));
    outbox.take(watcher::Event::InitApply(class("good", 1)));
    outbox.take(watcher::Event::InitDone);
    assert_eq!(drain(&mut outbox), ["all good=1"]);
    outbox.take(watcher::Event::Apply(object("good", &json!("text"))));
    assert_eq!(drain(&mut outbox), ["-good/good-uid"]);
}

#[test]
fn a_failure_is_said_once_and_nothing_of_before_follows_it() {
    let mut outbox = Outbox::new(Probe::<0>);
    list(&mut outbox, &[("a", 1)]);
    let trouble = Trouble::new(Reason::Forbidden, "no right");
    outbox.fail(&trouble);
    assert_eq!(drain(&mut outbox), ["failed no right"]);
    outbox.fail(&trouble);
    assert_eq!(drain(&mut outbox), [""; 0]);
    list(&mut outbox, &[("a", 1)]);
    outbox.fail(&trouble);
    assert_eq!(drain(&mut outbox), ["failed no right"]);
}

/// The watch is read to its end although nobody takes the events.
#[tokio::test]
async fn a_core_that_is_away_does_not_stop_the_reading() {
    let (events, mut core) = mpsc::channel(1);
    let mut items: VecDeque<_> = (0..5_000).map(|i| Ok(watcher::Event::Apply(class("a", i)))).collect();
    items.push_back(Ok(watcher::Event::Apply(class("b", 1))));
    let mut outbox = Outbox::new(Probe::<0>);
    let mut backoff = Backoff::new(STALE, STALE);
    let observe: Observe = std::sync::Arc::new(());
    // The stream's end is the proof: it is reached while one event at most was handed over.
    let followed = follow(
        &mut outbox,
        futures::stream::iter(items),
        &mut backoff,
        &events,
        &observe,
    )
    .await;
    assert!(followed.is_ok());
    let mut said = Vec::new();
    while let Ok(Event::WorkerClusterDeleted(text)) = core.try_recv() {
        said.push(text.to_string());
    }
    assert_eq!(said.len(), 1);
    said.extend(drain(&mut outbox));
    assert_eq!(&said[said.len() - 2..], ["a=4999", "b=1"]);
}
