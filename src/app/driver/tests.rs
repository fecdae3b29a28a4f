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
    synced: bool,
    told: Arc<Mutex<Vec<String>>>,
}

impl Core for Scripted {
    fn handle(&mut self, event: Event, _: Now) {
        let name = match event {
            Event::ClaimLost => "lost".into(),
            Event::Outcome {
                id,
                outcome: Outcome::NotSent,
            } => format!("not sent {}", id.0),
            Event::Outcome { id, .. } => format!("outcome {}", id.0),
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

    fn is_synced(&self) -> bool {
        self.synced
    }

    fn summary(&mut self, _: Now) -> Summary {
        Summary {
            queue_length: 5,
            ..Summary::default()
        }
    }
}

/// Executors that take every effect but those with this id.
struct Sent(mpsc::UnboundedSender<Effect>, Option<EffectId>);

impl Executors for Sent {
    fn send(&self, effect: Effect) -> Option<Event> {
        if self.1 == Some(effect.id) {
            return Some(Event::Outcome {
                id: effect.id,
                outcome: Outcome::NotSent,
            });
        }
        self.0.send(effect).unwrap();
        None
    }
}

fn effect(id: u64) -> Effect {
    Effect {
        id: EffectId(id),
        target: Target::Manager,
        epoch: 0,
        deadline: Duration::from_secs(9),
        request: Request::GetJob {
            key: JobKey::new("a", "b"),
        },
    }
}

fn done(id: u64) -> Event {
    Event::Outcome {
        id: EffectId(id),
        outcome: Outcome::Done(Answer::Accepted),
    }
}

struct Rig {
    driver: Driver<Scripted>,
    executors: Sent,
    sent: mpsc::UnboundedReceiver<Effect>,
    sender: mpsc::Sender<Event>,
    leader: mpsc::UnboundedSender<Event>,
    inlets: Inlets,
    told: Arc<Mutex<Vec<String>>>,
    metrics: Metrics,
    health: Health,
}

impl Rig {
    fn new(core: Scripted) -> Self {
        let (effects, sent) = mpsc::unbounded_channel();
        let (sender, events) = mpsc::channel(1000);
        let (leader, claims) = mpsc::unbounded_channel();
        let (clock, metrics) = (Clock::start(), Metrics::new());
        let health = Health::new(clock, &[CORE]);
        let told = core.told.clone();
        let driver = Driver::new(core, clock, metrics.clone(), health.clone());
        Self {
            driver,
            executors: Sent(effects, None),
            sent,
            sender,
            leader,
            inlets: Inlets { claims, events },
            told,
            metrics,
            health,
        }
    }

    fn tell(&self, event: Event) {
        self.sender.try_send(event).unwrap();
    }

    /// Runs the loop until these many effects were sent, and says which.
    async fn sends(&mut self, count: usize) -> Vec<u64> {
        let mut ids = Vec::new();
        let sent = &mut self.sent;
        let until = async {
            while ids.len() < count {
                ids.push(sent.recv().await.unwrap().id.0);
            }
        };
        self.driver.run(&self.executors, &mut self.inlets, until).await;
        ids
    }

    /// Runs the loop until it has taken all events, and nobody can send more.
    async fn finish(&mut self) {
        self.sender = mpsc::channel(1).0;
        let ended = self
            .driver
            .run(&self.executors, &mut self.inlets, std::future::pending())
            .await;
        assert_eq!(ended, Ended::Cut);
    }
}

#[tokio::test]
async fn a_burst_of_events_is_one_decision() {
    let mut rig = Rig::new(Scripted::default());
    for id in 0..100 {
        rig.tell(done(id));
    }
    rig.finish().await;
    let told = rig.told.lock().unwrap();
    assert_eq!(told.iter().filter(|name| name.starts_with("outcome")).count(), 100);
    assert_eq!(told.iter().filter(|name| *name == "poll").count(), 1, "{told:?}");
}

#[tokio::test]
async fn an_event_leads_to_effects_and_the_summary_is_shown() {
    let core = Scripted {
        effects: VecDeque::from([vec![effect(1), effect(2)]]),
        ..Scripted::default()
    };
    let mut rig = Rig::new(core);
    rig.tell(Event::ClaimLost);
    assert_eq!(rig.sends(2).await, [1, 2]);
    let text = rig.metrics.encode().unwrap();
    assert!(text.contains("multikueue_queue_length 5"), "{text}");
}

#[tokio::test]
async fn the_core_hears_at_once_of_an_effect_that_nobody_took() {
    let core = Scripted {
        effects: VecDeque::from([vec![effect(1)], vec![effect(2)]]),
        ..Scripted::default()
    };
    let mut rig = Rig::new(core);
    rig.executors.1 = Some(EffectId(1));
    rig.tell(Event::ClaimLost);
    assert_eq!(rig.sends(1).await, [2]);
    assert_eq!(*rig.told.lock().unwrap(), ["lost", "poll", "not sent 1", "poll"]);
    rig.tell(done(2));
    assert!(
        rig.driver.drain(&mut rig.inlets, Duration::from_secs(20)).await,
        "it is not in flight"
    );
}

#[tokio::test]
async fn the_loop_wakes_when_the_core_asks_for_it() {
    let core = Scripted {
        wakeups: VecDeque::from([Duration::ZERO, Duration::from_millis(20)]),
        effects: VecDeque::from([vec![], vec![effect(7)]]),
        ..Scripted::default()
    };
    let mut rig = Rig::new(core);
    assert_eq!(rig.sends(1).await, [7]);
    let now = rig.driver.clock.mono();
    assert!(now >= Duration::from_millis(20) && now < BEAT, "{now:?}");
}

#[tokio::test]
async fn ready_once_the_core_is_synced() {
    let mut rig = Rig::new(Scripted::default());
    rig.tell(Event::ClaimLost);
    rig.finish().await;
    assert_eq!(rig.health.unready(), ["core: not there yet"]);

    let mut rig = Rig::new(Scripted {
        synced: true,
        ..Scripted::default()
    });
    rig.tell(Event::ClaimLost);
    rig.finish().await;
    assert!(rig.health.unready().is_empty());
}

#[tokio::test]
async fn a_stop_comes_before_events() {
    let mut rig = Rig::new(Scripted::default());
    rig.tell(Event::ClaimLost);
    let (stop, stopped) = oneshot::channel::<()>();
    drop(stop);
    let ended = rig
        .driver
        .run(&rig.executors, &mut rig.inlets, async { drop(stopped.await) })
        .await;
    assert_eq!(ended, Ended::Stopped);
    assert!(rig.told.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_drained_loop_waits_for_outcomes_and_sends_nothing() {
    let core = Scripted {
        effects: VecDeque::from([vec![effect(1), effect(2)], vec![effect(3)]]),
        ..Scripted::default()
    };
    let mut rig = Rig::new(core);
    assert_eq!(rig.sends(2).await, [1, 2]);
    rig.tell(done(1));
    assert!(
        !rig.driver.drain(&mut rig.inlets, Duration::from_millis(20)).await,
        "2 is still in flight"
    );
    rig.tell(done(2));
    assert!(rig.driver.drain(&mut rig.inlets, Duration::from_secs(20)).await);
    assert!(rig.sent.try_recv().is_err(), "3 was not asked for");
}

#[tokio::test]
async fn leadership_comes_before_all_else_and_its_end_ends_the_loop() {
    let mut rig = Rig::new(Scripted::default());
    rig.tell(done(1));
    rig.leader.send(Event::ClaimLost).unwrap();
    rig.leader = mpsc::unbounded_channel().0;
    let ended = rig
        .driver
        .run(&rig.executors, &mut rig.inlets, std::future::pending())
        .await;
    assert_eq!(ended, Ended::NoLeadership);
    assert_eq!(*rig.told.lock().unwrap(), ["lost", "poll"]);
}
