use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::dispatcher::effect::{Request, Target};
use crate::dispatcher::{Answer, Outcome};
use crate::lifecycle::view::JobKey;

/// A core that hands out what it was given, and remembers what it was told.
#[derive(Default)]
struct Scripted {
    effects: VecDeque<Vec<Effect>>,
    wakeups: VecDeque<Duration>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Core for Scripted {
    fn handle(&mut self, event: Event, _: Now) {
        let name = match event {
            Event::Outcome { id, .. } => format!("outcome {}", id.0),
            Event::ClaimLost => "lost".into(),
            _ => "other".into(),
        };
        self.told.lock().unwrap().push(name);
    }

    fn poll(&mut self, _: Now) -> Vec<Effect> {
        self.told.lock().unwrap().push("poll".into());
        self.wakeups.pop_front();
        self.effects.pop_front().unwrap_or_default()
    }

    fn next_wakeup(&self) -> Option<Duration> {
        self.wakeups.front().copied()
    }

    fn summary(&mut self, _: Now) -> Summary {
        Summary {
            queue_length: 5,
            ..Summary::default()
        }
    }
}

struct Sent(mpsc::UnboundedSender<Effect>);

impl Executors for Sent {
    fn send(&self, effect: Effect) {
        self.0.send(effect).unwrap();
    }
}

fn effect(id: u64) -> Effect {
    let key = JobKey {
        namespace: "a".into(),
        name: "b".into(),
    };
    Effect {
        id: EffectId(id),
        target: Target::Manager,
        epoch: 0,
        deadline: Duration::from_secs(9),
        request: Request::GetJob { key },
    }
}

fn done(id: u64) -> Event {
    Event::Outcome {
        id: EffectId(id),
        outcome: Outcome::Done(Answer::Accepted),
    }
}

struct Rig {
    driver: Driver<Scripted, Sent>,
    sent: mpsc::UnboundedReceiver<Effect>,
    told: Arc<Mutex<Vec<String>>>,
    metrics: Metrics,
    health: Health,
}

fn rig(core: Scripted) -> Rig {
    let (sender, sent) = mpsc::unbounded_channel();
    let (clock, metrics) = (Clock::start(), Metrics::new());
    let health = Health::new(clock, &PARTS);
    let told = core.told.clone();
    let driver = Driver::new(core, Sent(sender), clock, metrics.clone(), health.clone());
    Rig {
        driver,
        sent,
        told,
        metrics,
        health,
    }
}

/// Runs the loop until `until` is done.
async fn run(rig: &mut Rig, events: &mut mpsc::UnboundedReceiver<Event>, until: impl Future<Output = ()>) {
    rig.driver.run(events, until).await;
}

#[tokio::test]
async fn a_burst_of_events_is_one_decision() {
    let mut rig = rig(Scripted::default());
    let (sender, mut events) = mpsc::unbounded_channel();
    for id in 0..100 {
        sender.send(done(id)).unwrap();
    }
    drop(sender);
    run(&mut rig, &mut events, std::future::pending()).await;
    let told = rig.told.lock().unwrap();
    assert_eq!(told.iter().filter(|name| name.starts_with("outcome")).count(), 100);
    assert_eq!(told.iter().filter(|name| *name == "poll").count(), 1, "{told:?}");
}

#[tokio::test]
async fn effects_are_sent_and_their_outcomes_counted() {
    let core = Scripted {
        effects: VecDeque::from([vec![effect(1), effect(2)]]),
        ..Scripted::default()
    };
    let mut rig = rig(core);
    let (sender, mut events) = mpsc::unbounded_channel();
    sender.send(Event::ClaimLost).unwrap();
    let mut sent = std::mem::replace(&mut rig.sent, mpsc::unbounded_channel().1);
    run(&mut rig, &mut events, async {
        assert_eq!(sent.recv().await.unwrap().id, EffectId(1));
        assert_eq!(sent.recv().await.unwrap().id, EffectId(2));
    })
    .await;
    sender.send(done(2)).unwrap();
    drop(sender);
    run(&mut rig, &mut events, std::future::pending()).await;
    let text = rig.metrics.encode().unwrap();
    assert!(
        text.contains("multikueue_effects_total{kind=\"get_job\",outcome=\"done\"} 1\n"),
        "{text}"
    );
    assert!(
        text.contains("multikueue_queue_length 5"),
        "the summary is shown: {text}"
    );
}

#[tokio::test]
async fn the_loop_wakes_when_the_core_asks_for_it() {
    let core = Scripted {
        wakeups: VecDeque::from([Duration::ZERO, Duration::from_millis(20)]),
        effects: VecDeque::from([vec![], vec![effect(7)]]),
        ..Scripted::default()
    };
    let mut rig = rig(core);
    let (_sender, mut events) = mpsc::unbounded_channel();
    let mut sent = std::mem::replace(&mut rig.sent, mpsc::unbounded_channel().1);
    let clock = rig.driver.clock;
    run(&mut rig, &mut events, async {
        assert_eq!(sent.recv().await.unwrap().id, EffectId(7));
    })
    .await;
    let now = clock.now().mono;
    assert!(now >= Duration::from_millis(20) && now < BEAT, "{now:?}");
}

#[tokio::test]
async fn ready_once_each_list_of_the_manager_is_complete() {
    let mut rig = rig(Scripted::default());
    let (sender, mut events) = mpsc::unbounded_channel();
    sender.send(Event::JobsListed([].into())).unwrap();
    sender
        .send(Event::PriorityClasses {
            values: [].into(),
            default: 0,
        })
        .unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    drop(stop);
    run(&mut rig, &mut events, async { drop(stopped.await) }).await;
    assert_eq!(rig.health.unready().len(), 3, "a stop comes before events");
    sender.send(Event::ClaimLost).unwrap();
    drop(sender);
    run(&mut rig, &mut events, std::future::pending()).await;
    assert_eq!(rig.health.unready(), ["workerclusters: not there yet"]);
}

#[tokio::test]
async fn a_drained_loop_waits_for_outcomes_and_sends_nothing() {
    let core = Scripted {
        effects: VecDeque::from([vec![effect(1), effect(2)], vec![effect(3)]]),
        ..Scripted::default()
    };
    let mut rig = rig(core);
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut sent = std::mem::replace(&mut rig.sent, mpsc::unbounded_channel().1);
    run(&mut rig, &mut events, async {
        sent.recv().await.unwrap();
    })
    .await;
    sender.send(done(1)).unwrap();
    assert!(
        !rig.driver.drain(&mut events, Duration::from_millis(20)).await,
        "2 is still in flight"
    );
    sender.send(done(2)).unwrap();
    assert!(rig.driver.drain(&mut events, Duration::from_secs(20)).await);
    assert_eq!(sent.recv().await.unwrap().id, EffectId(2));
    assert!(sent.try_recv().is_err(), "3 was not asked for");
}
