//! From a watch to events: a relist is a reset, a slow reader never blocks the watch, a bad object never ends it.
//!
//! Each watch is one task. It reads its stream whenever there is something to read, and hands over an event whenever the core has room for one; in between,
//! changes wait in a map keyed by object, where a newer state replaces an older one. So a core that is busy costs memory of at most one row per object, the
//! API server never waits for us, and nothing is ever dropped: what is handed over is always the newest. (The alternatives: an unbounded queue grows
//! without limit while the core is away, and a bounded one makes the watch wait, and with it a seat of the API server.)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::backoff::Backoff;
use super::observe::Observe;
use super::reason::{Reason, Trouble};
use super::slim::{Lite, Slim};
use crate::dispatcher::Event;

/// How the objects of a watch are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A list is one event with all rows; a change is one event.
    Bulk,
    /// A list is one event per row and one with all keys; a change is one event.
    Keyed,
    /// Every list and every change is one event with all rows.
    Whole,
}

/// What a feed hands over.
pub enum Output<'a, F: Feed + ?Sized> {
    /// An object, new or changed.
    Row(F::Row),
    /// The object of this key and uid is gone.
    Gone(F::Key, Arc<str>),
    /// All rows: `Bulk` and `Whole`.
    All(&'a mut BTreeMap<F::Key, F::Row>),
    /// All keys, after their rows: `Keyed`.
    Keys(BTreeSet<F::Key>),
    /// The watch does not run.
    Failed(&'a Trouble),
}

/// What a watch is of, and what becomes of its objects.
pub trait Feed: Send + 'static {
    /// What is decoded.
    type Object: Lite;
    /// Key of an object.
    type Key: Ord + Clone + Send;
    /// What is kept of an object until it is handed over.
    type Row: Send;

    /// How objects are handed over.
    const MODE: Mode;
    /// Name for logs.
    const NAME: &'static str;

    /// The key of an object.
    fn key(&self, meta: &ObjectMeta) -> Self::Key;
    /// The row of an object; none when there is nothing to say of it: it counts as gone.
    fn row(&mut self, key: &Self::Key, object: Result<Self::Object, String>) -> Option<Self::Row>;
    /// The event for the core; none when there is none.
    fn event(&mut self, output: Output<'_, Self>) -> Option<Event>;
    /// An event was handed over.
    fn sent(&mut self) {}
}

/// How long a watch may be silent before the API server ends it, in seconds. kube gives up 5 s later: that is how a dead connection is noticed.
pub const WATCH_SECONDS: u32 = 60;
/// A watch that fails this long is started anew with a list, and what it fed is declared lost.
const STALE: Duration = Duration::from_mins(1);

/// The configuration of every watch of ours.
pub fn watch_config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// Runs a watch until the receiver of its events is gone.
pub async fn run<F>(
    feed: F,
    api: Api<Slim<F::Object>>,
    config: watcher::Config,
    events: mpsc::Sender<Event>,
    observe: Observe,
) where
    F: Feed,
{
    let mut outbox = Outbox::new(feed);
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
    loop {
        let stream = watcher(api.clone(), config.clone()).default_backoff();
        if follow(&mut outbox, stream, &mut backoff, &events, &observe)
            .await
            .is_err()
        {
            return;
        }
        let pause = backoff.pause();
        debug!(watch = F::NAME, pause = ?pause, "watch starts anew");
        // What is already decoded is handed over meanwhile.
        let until = tokio::time::Instant::now() + pause;
        loop {
            outbox.prepare();
            tokio::select! {
                () = tokio::time::sleep_until(until) => break,
                permit = events.reserve(), if outbox.ready() => match permit {
                    Ok(permit) => outbox.hand_over(permit),
                    Err(_) => return,
                },
            }
        }
    }
}

struct ReceiverGone;

/// The newest that is known of an object.
enum Change<R> {
    Row(R),
    Gone(Arc<str>),
}

fn uid(meta: &ObjectMeta) -> Arc<str> {
    meta.uid.as_deref().unwrap_or_default().into()
}

/// Follows one stream until it must be started anew.
async fn follow<F: Feed>(
    outbox: &mut Outbox<F>,
    stream: impl futures::Stream<Item = Result<watcher::Event<Slim<F::Object>>, watcher::Error>>,
    backoff: &mut Backoff,
    events: &mpsc::Sender<Event>,
    observe: &Observe,
) -> Result<(), ReceiverGone> {
    let mut stream = std::pin::pin!(stream);
    let mut failing_since = None;
    loop {
        outbox.prepare();
        tokio::select! {
            item = stream.next() => match item {
                Some(Ok(event)) => {
                    failing_since = None;
                    if matches!(event, watcher::Event::InitDone | watcher::Event::Apply(_)) {
                        backoff.reset();
                    }
                    outbox.take(event);
                }
                Some(Err(error)) => {
                    observe.watch_restarted(F::NAME);
                    let trouble = Trouble::of_watch(&error);
                    let now = tokio::time::Instant::now();
                    let since = *failing_since.get_or_insert(now);
                    // A right or a kind that is missing does not come back by itself within seconds.
                    let refused = matches!(trouble.reason, Reason::Forbidden | Reason::NotFound | Reason::Unauthorized);
                    // After a failed list kube lists again by itself; after a failed watch it resumes, which is fine for a while.
                    let unlisted = matches!(error, watcher::Error::InitialListFailed(_) | watcher::Error::NoResourceVersion);
                    if refused || now - since >= STALE {
                        warn!(watch = F::NAME, reason = trouble.reason.as_str(), "{}", trouble.message);
                        outbox.fail(&trouble);
                        return Ok(());
                    }
                    debug!(watch = F::NAME, reason = trouble.reason.as_str(), "{}", trouble.message);
                    if unlisted {
                        outbox.fail(&trouble);
                    }
                }
                // A watcher has no end; if one has after all, it is started anew.
                None => return Ok(()),
            },
            permit = events.reserve(), if outbox.ready() => match permit {
                Ok(permit) => outbox.hand_over(permit),
                Err(_) => return Err(ReceiverGone),
            },
        }
    }
}

/// What was read and not handed over yet.
struct Outbox<F: Feed> {
    feed: F,
    /// The list under way: kube begins again with `Init` after each failed attempt, so it replaces nothing before `InitDone`.
    collecting: BTreeMap<F::Key, F::Row>,
    /// `Bulk`: a list to hand over. `Whole`: everything.
    all: BTreeMap<F::Key, F::Row>,
    /// `all` is to be handed over.
    all_due: bool,
    /// `Keyed`: keys to hand over once `changes` is empty.
    keys: Option<BTreeSet<F::Key>>,
    changes: BTreeMap<F::Key, Change<F::Row>>,
    next: Option<Event>,
    /// What the watch failed of, as long as it has not listed since: said once.
    failed: Option<Trouble>,
}

impl<F: Feed> Outbox<F> {
    fn new(feed: F) -> Self {
        Self {
            feed,
            collecting: BTreeMap::new(),
            all: BTreeMap::new(),
            all_due: false,
            keys: None,
            changes: BTreeMap::new(),
            next: None,
            failed: None,
        }
    }

    fn take(&mut self, event: watcher::Event<Slim<F::Object>>) {
        match event {
            watcher::Event::Init => self.collecting.clear(),
            watcher::Event::InitApply(slim) => {
                let (key, change) = self.read(slim);
                if let Change::Row(row) = change {
                    self.collecting.insert(key, row);
                }
            }
            watcher::Event::InitDone => self.reset(),
            watcher::Event::Apply(slim) => {
                let (key, change) = self.read(slim);
                self.change(key, change);
            }
            watcher::Event::Delete(slim) => {
                let key = self.feed.key(slim.meta());
                self.change(key, Change::Gone(uid(slim.meta())));
            }
        }
    }

    fn read(&mut self, slim: Slim<F::Object>) -> (F::Key, Change<F::Row>) {
        let key = self.feed.key(slim.meta());
        if let Err(message) = &slim.object {
            let meta = slim.meta();
            warn!(
                watch = F::NAME,
                namespace = meta.namespace,
                name = meta.name,
                "object cannot be read: {message}"
            );
        }
        let gone = Change::Gone(uid(slim.meta()));
        let row = self.feed.row(&key, slim.object);
        (key, row.map_or(gone, Change::Row))
    }

    fn reset(&mut self) {
        self.failed = None;
        let collected = std::mem::take(&mut self.collecting);
        self.changes.clear();
        match F::MODE {
            Mode::Bulk | Mode::Whole => {
                self.all = collected;
                self.all_due = true;
            }
            Mode::Keyed => {
                self.keys = Some(collected.keys().cloned().collect());
                self.changes = collected
                    .into_iter()
                    .map(|(key, row)| (key, Change::Row(row)))
                    .collect();
            }
        }
    }

    fn change(&mut self, key: F::Key, change: Change<F::Row>) {
        if F::MODE == Mode::Whole || self.all_due {
            match change {
                Change::Row(row) => self.all.insert(key, row),
                Change::Gone(_) => self.all.remove(&key),
            };
            self.all_due = true;
            return;
        }
        if let Some(keys) = &mut self.keys {
            if matches!(change, Change::Row(_)) {
                keys.insert(key.clone());
            } else {
                keys.remove(&key);
            }
        }
        self.changes.insert(key, change);
    }

    fn fail(&mut self, trouble: &Trouble) {
        if self.failed.as_ref() == Some(trouble) {
            return;
        }
        self.failed = Some(trouble.clone());
        // It stands for what comes after it: nothing of before may follow, or it would look as if the watch ran.
        if let Some(event) = self.feed.event(Output::Failed(trouble)) {
            self.all_due = false;
            self.all.clear();
            self.changes.clear();
            self.keys = None;
            self.next = Some(event);
        }
    }

    /// Chooses the next event, if none is chosen.
    fn prepare(&mut self) {
        while self.next.is_none() {
            let output = if self.all_due {
                self.all_due = false;
                Output::All(&mut self.all)
            } else if let Some((key, change)) = self.changes.pop_first() {
                match change {
                    Change::Row(row) => Output::Row(row),
                    Change::Gone(uid) => Output::Gone(key, uid),
                }
            } else if let Some(keys) = self.keys.take() {
                Output::Keys(keys)
            } else {
                return;
            };
            self.next = self.feed.event(output);
        }
    }

    fn ready(&self) -> bool {
        self.next.is_some()
    }

    fn hand_over(&mut self, permit: mpsc::Permit<'_, Event>) {
        if let Some(event) = self.next.take() {
            permit.send(event);
            self.feed.sent();
        }
    }
}

#[cfg(test)]
mod tests;
