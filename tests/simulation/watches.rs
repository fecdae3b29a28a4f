//! Watches of a process of the operator: lists first, then changes in order, all of it with delays.

use std::collections::VecDeque;
use std::sync::Arc;

use multikueue::capacity::Watched;
use multikueue::dispatcher::{Event, Target, WorkerEvent};

use crate::worker::Road;
use crate::world::{Occurrence, SECOND, World};

/// What a watch is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Jobs,
    Clusters,
    Nodes(usize),
    Pods(usize),
    Mirrors(usize),
}

impl Source {
    pub fn worker(self) -> Option<usize> {
        match self {
            Self::Jobs | Self::Clusters => None,
            Self::Nodes(worker) | Self::Pods(worker) | Self::Mirrors(worker) => Some(worker),
        }
    }
}

/// A watch: the rest of its list, then a cursor in the log of its server.
pub struct Channel {
    id: u64,
    pub source: Source,
    pub epoch: u64,
    pub list: VecDeque<Event>,
    pub cursor: usize,
    scheduled: bool,
}

impl World {
    /// Begins a watch with a list: as fresh as any when it is asked for, and perhaps old when it is read.
    pub fn open(&mut self, source: Source, epoch: u64) {
        let cursor = self.length(source);
        let list = self.list(source, epoch);
        let Some(operator) = &mut self.operator else { return };
        operator.next_channel += 1;
        let id = operator.next_channel;
        operator.channels.push(Channel {
            id,
            source,
            epoch,
            list,
            cursor,
            scheduled: false,
        });
    }

    /// A watch breaks and is begun anew.
    pub fn relist(&mut self, choice: usize) {
        let Some(operator) = &mut self.operator else { return };
        if operator.channels.is_empty() {
            return;
        }
        let index = choice % operator.channels.len();
        let Channel { source, epoch, .. } = operator.channels.remove(index);
        self.trace.note(self.now, || format!("watch of {source:?} breaks"));
        let watched = match source {
            Source::Nodes(worker) => Some((worker, Watched::Nodes)),
            Source::Pods(worker) => Some((worker, Watched::Pods)),
            _ => None,
        };
        if let Some((worker, watched)) = watched {
            let message = "the watch ended".to_owned();
            self.tell_worker(worker, epoch, WorkerEvent::CapacityLost { watched, message });
        }
        self.open(source, epoch);
    }

    /// Gives every watch that has something to say a time to say it.
    pub fn kick(&mut self) {
        let Some(operator) = &self.operator else { return };
        let generation = operator.generation;
        let ready: Vec<(usize, u64)> = operator
            .channels
            .iter()
            .enumerate()
            .filter(|(_, channel)| !channel.scheduled)
            .filter(|(_, channel)| !channel.list.is_empty() || channel.cursor < self.length(channel.source))
            .map(|(index, channel)| (index, channel.id))
            .collect();
        for (index, channel) in ready {
            let delay = self.lag(self.weather.watch_lag);
            self.after(delay, Occurrence::Watch { generation, channel });
            if let Some(operator) = &mut self.operator {
                operator.channels[index].scheduled = true;
            }
        }
    }

    pub fn watch(&mut self, id: u64) {
        let Some(operator) = &mut self.operator else { return };
        let Some(channel) = operator.channels.iter_mut().find(|channel| channel.id == id) else {
            return;
        };
        channel.scheduled = false;
        let (source, epoch, cursor) = (channel.source, channel.epoch, channel.cursor);
        // Nothing comes through a road that is not open, and later it is another connection.
        if let Some(worker) = source.worker()
            && self.workers[worker].road != Road::Open
        {
            channel.scheduled = true;
            let generation = operator.generation;
            self.after(
                SECOND,
                Occurrence::Watch {
                    generation,
                    channel: id,
                },
            );
            return;
        }
        let event = if let Some(event) = channel.list.pop_front() {
            event
        } else if cursor < self.length(source) {
            let event = self.change(source, cursor, epoch);
            if let Some(operator) = &mut self.operator
                && let Some(channel) = operator.channels.iter_mut().find(|channel| channel.id == id)
            {
                channel.cursor += 1;
            }
            event
        } else {
            return;
        };
        self.learn(&event);
        self.tell(event);
    }

    /// The rim connects to the workers that it hears of.
    fn learn(&mut self, event: &Event) {
        let (name, known) = match event {
            Event::WorkerCluster(cluster) => (&cluster.name, true),
            Event::WorkerClusterDeleted(name) => (name, false),
            _ => return,
        };
        let Some(worker) = self.workers.iter().position(|worker| worker.name == *name) else {
            return;
        };
        let Some(operator) = &mut self.operator else { return };
        let generation = operator.generation;
        let link = &mut operator.links[worker];
        if known && !link.known {
            link.known = true;
            let delay = self.rng.between(1, 50);
            self.after(delay, Occurrence::Link { generation, worker });
        } else if !known && link.known {
            link.known = false;
            link.up = false;
            self.close(worker);
            let target = Target::Worker(Arc::clone(&self.workers[worker].name));
            self.break_all(&target);
        }
    }
}
