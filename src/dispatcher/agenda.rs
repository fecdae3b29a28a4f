//! What must be looked at: now, when an executor has room, or at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::lifecycle::view::JobKey;

use super::effect::Target;

/// Something that can need an effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// A job of the manager.
    Job(JobKey),
    /// An object on a worker that is not the current mirror of its job.
    Stray(Arc<str>, JobKey),
    /// A worker: its lease, its status, its finalizer.
    Worker(Arc<str>),
}

/// What must be looked at, each item once however often it was touched.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    order: VecDeque<Item>,
    queued: BTreeSet<Item>,
    parked: BTreeMap<Target, (VecDeque<Item>, BTreeSet<Item>)>,
    timers: BTreeSet<(Duration, Item)>,
    due: BTreeMap<Item, Duration>,
}

impl Agenda {
    /// `item` must be looked at.
    pub fn touch(&mut self, item: Item) {
        if self.queued.insert(item.clone()) {
            self.order.push_back(item);
        }
    }

    /// `item` needs `target`, which has no room: it is looked at again when it has.
    pub fn park(&mut self, target: &Target, item: Item) {
        let (order, set) = self.parked.entry(target.clone()).or_default();
        if set.insert(item.clone()) {
            order.push_back(item);
        }
    }

    /// `target` has room for `free` requests: as many parked items are looked at. False when none was parked.
    pub fn unpark(&mut self, target: &Target, free: usize) -> bool {
        let Some((order, set)) = self.parked.get_mut(target) else {
            return false;
        };
        let count = free.min(order.len());
        let items: Vec<Item> = order.drain(..count).collect();
        for item in &items {
            set.remove(item);
        }
        let any = !items.is_empty();
        for item in items {
            self.touch(item);
        }
        any
    }

    /// `item` must be looked at by `at` at the latest. The earlier of two times counts.
    pub fn wake(&mut self, at: Duration, item: Item) {
        match self.due.get(&item) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => {
                self.timers.remove(&(*later, item.clone()));
            }
            None => {}
        }
        self.due.insert(item.clone(), at);
        self.timers.insert((at, item));
    }

    /// The next item to look at.
    pub fn next(&mut self) -> Option<Item> {
        let item = self.order.pop_front()?;
        self.queued.remove(&item);
        Some(item)
    }

    /// Moves what is due at `now` to what must be looked at.
    pub fn tick(&mut self, now: Duration) {
        while let Some((at, item)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.timers.remove(&(at, item.clone()));
            self.due.remove(&item);
            self.touch(item);
        }
    }

    /// When something is due next; zero when something must be looked at now.
    pub fn next_due(&self) -> Option<Duration> {
        if self.order.is_empty() {
            self.timers.first().map(|(at, _)| *at)
        } else {
            Some(Duration::ZERO)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str) -> Item {
        Item::Job(JobKey::new("team", name))
    }

    #[test]
    fn an_item_touched_twice_is_looked_at_once_and_in_order() {
        let mut agenda = Agenda::default();
        for name in ["b", "a", "b"] {
            agenda.touch(job(name));
        }
        assert_eq!(
            [agenda.next(), agenda.next(), agenda.next()],
            [Some(job("b")), Some(job("a")), None]
        );
    }

    #[test]
    fn the_earlier_of_two_times_counts() {
        let mut agenda = Agenda::default();
        let at = Duration::from_secs;
        agenda.wake(at(9), job("a"));
        agenda.wake(at(5), job("a"));
        agenda.wake(at(7), job("a"));
        assert_eq!(agenda.next_due(), Some(at(5)));
        agenda.tick(at(5));
        assert_eq!(agenda.next(), Some(job("a")));
        assert_eq!(agenda.next_due(), None);
    }

    #[test]
    fn as_many_parked_items_come_back_as_there_is_room() {
        let mut agenda = Agenda::default();
        for name in ["a", "b", "c"] {
            agenda.park(&Target::Manager, job(name));
        }
        agenda.unpark(&Target::Manager, 2);
        assert_eq!(
            [agenda.next(), agenda.next(), agenda.next()],
            [Some(job("a")), Some(job("b")), None]
        );
    }
}
