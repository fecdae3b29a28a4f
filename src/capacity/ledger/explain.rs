//! Why members have no room, in one sentence with numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::classes::Standing;
use super::intern::PODS;
use super::plan::by_size;
use super::{Ledger, Shortfall};
use crate::capacity::accelerators::is_device;
use crate::capacity::reason::Reason;
use crate::resources::Shape;
use crate::resources::shape::PodSet;

/// What one resource leaves of the room for a shape.
#[derive(Debug, Clone, Copy, Default)]
struct Room {
    /// Members that would fit if only this resource did not count.
    without: i64,
    /// Free on nodes where the rest suffices for one member, and the most on one of them.
    free: i64,
    largest: i64,
    /// Free on all nodes that pass, and the most on one of them.
    free_anywhere: i64,
    largest_anywhere: i64,
    /// Nodes where the rest suffices for one member.
    nodes: i64,
    /// Allocatable on nodes that pass.
    allocatable: i64,
}

/// What stands in the way.
struct Why {
    reason: Reason,
    message: String,
    /// What the next member lacks on the best node, in thousandths; none when the nodes are not for the shape.
    missing: Option<i64>,
}

impl Why {
    fn unsuitable(reason: Reason, message: String) -> Self {
        Self {
            reason,
            message,
            missing: None,
        }
    }
}

impl Ledger {
    /// Why the pod sets of a job do not fit here now; none when they do.
    pub fn explain(&mut self, sets: &[PodSet]) -> Option<Shortfall> {
        for set in sets {
            let shortfall = self.explain_shape(&set.shape, set.count);
            if shortfall.is_some() {
                return shortfall;
            }
        }
        if self.plan(sets).is_some() {
            return None;
        }
        // Each fits alone: what the largest members leave is too little for the rest.
        let (mut members, mut wanted) = (0, 0);
        let mut first = None;
        for i in by_size(sets) {
            let set = &sets[i];
            first.get_or_insert(&set.shape);
            wanted += set.count;
            members = members.max(set.count);
        }
        let first = first?;
        let device = first.requests.iter().find(|(n, _)| is_device(n));
        let (name, _) = device.or_else(|| first.requests.iter().next())?;
        let needed = sets.iter().map(|s| s.shape.requests.get(name) * s.count).sum();
        let (free, largest) = self.free_of(first, name);
        let [free, largest, needed] = [free, largest, needed].map(|n| amount_text(name, n));
        Some(Shortfall {
            reason: reason_of(name),
            message: format!(
                "{free} {name} free, at most {largest} on one node; {needed} needed by {} pod sets together",
                sets.len()
            ),
            members,
            lacking: wanted - members,
            missing: 0,
            full: true,
        })
    }

    /// Free of one resource on nodes that the shape may use, and the most on one of them.
    fn free_of(&mut self, shape: &Arc<Shape>, name: &Arc<str>) -> (i64, i64) {
        let class = self.class(shape);
        let resource = self.resources.number(name);
        let (mut free, mut largest) = (0, 0);
        for (ix, node) in self.nodes.present() {
            if self.classes.get(class).verdict(&self.nodes, ix).is_ok() {
                let here = (node.free.get(resource) - node.pressed.get(resource)).max(0);
                free += here;
                largest = largest.max(here);
            }
        }
        (free, largest)
    }

    /// Why `wanted` members of a shape do not fit here now; none when they do.
    fn explain_shape(&mut self, shape: &Arc<Shape>, wanted: i64) -> Option<Shortfall> {
        let all = |reason, message| {
            Some(Shortfall {
                reason,
                message,
                members: 0,
                lacking: wanted,
                missing: 1000,
                full: false,
            })
        };
        let ix = self.class(shape);
        match &self.classes.get(ix).standing {
            Standing::Broken(message) => return all(Reason::InvalidTemplate, message.clone()),
            Standing::Unknown(reason, message) | Standing::Nowhere(reason, message) => {
                return all(*reason, message.clone());
            }
            Standing::Counted => {}
        }
        if let Err(message) = self.known() {
            return all(Reason::CapacityUnknown, message.to_owned());
        }
        self.sync(ix);
        let members = self.classes.get(ix).total;
        if members >= wanted {
            return None;
        }
        let why = self.why(ix, wanted, members);
        Some(Shortfall {
            reason: why.reason,
            message: why.message,
            members,
            lacking: wanted - members,
            missing: why.missing.unwrap_or(1000),
            full: why.missing.is_some(),
        })
    }

    fn why(&mut self, ix: u32, wanted: i64, members: i64) -> Why {
        let class = self.classes.get(ix);
        let mut rooms: Vec<(u32, i64, Room)> = class
            .request
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(r, n)| (r, n, Room::default()))
            .collect();
        // By what each node says, nodes that have the devices asked for (and all, when none are asked for or none has them).
        let devices: Vec<u32> = (rooms.iter().map(|(r, ..)| *r))
            .filter(|r| is_device(self.resources.name(*r)))
            .collect();
        let mut refused: BTreeMap<(bool, Reason), i64> = BTreeMap::new();
        let (mut nodes, mut passing) = (0, 0);
        for (at, node) in self.nodes.present() {
            nodes += 1;
            if let Err(reason) = class.verdict(&self.nodes, at) {
                let equipped = !devices.is_empty()
                    && devices
                        .iter()
                        .all(|r| node.allocatable.get(*r).max(node.capacity().get(*r)) > 0);
                *refused.entry((equipped, reason)).or_default() += 1;
                continue;
            }
            passing += 1;
            let free: Vec<i64> = (rooms.iter())
                .map(|(r, ..)| (node.free.get(*r) - node.pressed.get(*r)).max(0))
                .collect();
            for i in 0..rooms.len() {
                let others = (0..rooms.len()).filter(|j| *j != i).map(|j| free[j] / rooms[j].1);
                let without = others.min().unwrap_or(i64::from(u16::MAX));
                let (resource, _, room) = &mut rooms[i];
                room.without += without;
                room.free_anywhere += free[i];
                room.largest_anywhere = room.largest_anywhere.max(free[i]);
                room.allocatable += node.allocatable.get(*resource);
                if without > 0 {
                    room.nodes += 1;
                    room.free += free[i];
                    room.largest = room.largest.max(free[i]);
                }
            }
        }
        self.work += nodes;
        if nodes == 0 {
            return Why::unsuitable(Reason::NoNodes, "the worker has no nodes".into());
        }
        // Nodes that pass but have none of the devices are not what stands in the way.
        let bare = rooms
            .iter()
            .any(|(r, _, room)| devices.contains(r) && room.allocatable == 0);
        let equipped = refused.keys().any(|(equipped, _)| *equipped);
        if passing == 0 || (bare && equipped) {
            let (reason, message) = refusals(&refused, equipped, &devices, |r| self.resources.name(r).to_string());
            return Why::unsuitable(reason, message);
        }
        if let Some((resource, amount, _)) = rooms.iter().find(|(r, _, room)| room.allocatable == 0 && *r != PODS) {
            let name = self.resources.name(*resource);
            return Why::unsuitable(
                reason_of(name),
                format!(
                    "no node that it may use has {name}; {} needed",
                    amount_text(name, *amount)
                ),
            );
        }
        // The resource that stands most in the way is the one without which most members would fit; devices before others.
        let order = |(r, _, room): &(u32, i64, Room)| (room.without, devices.contains(r));
        let Some((resource, amount, room)) = rooms.iter().max_by_key(|r| order(r)) else {
            return Why::unsuitable(Reason::InsufficientResource, format!("{members} of {wanted} pods fit"));
        };
        let name = self.resources.name(*resource);
        let largest = if room.nodes > 0 {
            room.largest
        } else {
            room.largest_anywhere
        };
        Why {
            reason: reason_of(name),
            message: shortage(name, *amount, room, wanted, members),
            missing: Some(((amount - largest).max(0).saturating_mul(1000)) / amount),
        }
    }
}

fn shortage(name: &str, amount: i64, room: &Room, wanted: i64, members: i64) -> String {
    let beside = room.nodes > 0 && room.free_anywhere != room.free;
    let (free, largest) = if room.nodes > 0 {
        (room.free, room.largest)
    } else {
        (room.free_anywhere, room.largest_anywhere)
    };
    let place = if beside { " on nodes with room for the rest" } else { "" };
    let (free, largest, amount) = (
        amount_text(name, free),
        amount_text(name, largest),
        amount_text(name, amount),
    );
    let needed = if wanted == 1 {
        format!("{amount} needed")
    } else {
        format!("{wanted} pods of {amount} needed, room for {members}")
    };
    format!("{free} {name} free{place}, at most {largest} on one node; {needed}")
}

/// Nodes were refused by filters: the reason that most of them have, and how many have which.
fn refusals(
    refused: &BTreeMap<(bool, Reason), i64>,
    equipped: bool,
    devices: &[u32],
    name: impl Fn(u32) -> String,
) -> (Reason, String) {
    let mut counts: Vec<(i64, Reason)> = Vec::new();
    for ((has, reason), n) in refused {
        if *has || !equipped {
            match counts.iter_mut().find(|(_, r)| r == reason) {
                Some((count, _)) => *count += n,
                None => counts.push((*n, *reason)),
            }
        }
    }
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let total: i64 = counts.iter().map(|(n, _)| n).sum();
    let of = if equipped {
        let names: Vec<String> = devices.iter().map(|r| name(*r)).collect();
        format!(" with {}", names.join(" and "))
    } else {
        String::new()
    };
    let parts: Vec<String> = counts.iter().map(|(n, r)| format!("{n} {}", phrase(*r))).collect();
    let reason = counts.first().map_or(Reason::NoNodes, |(_, r)| *r);
    (
        reason,
        format!("none of {total} nodes{of} can be used: {}", parts.join(", ")),
    )
}

fn phrase(reason: Reason) -> &'static str {
    match reason {
        Reason::NodeNotReady => "not ready",
        Reason::NodeDeleting => "being deleted",
        Reason::Unschedulable => "cordoned",
        Reason::UntoleratedTaint => "with a taint that is not tolerated",
        Reason::SelectorMismatch => "not matched by the node selector",
        Reason::DriverNotReady => "with a driver being replaced",
        _ => "without room",
    }
}

fn reason_of(resource: &str) -> Reason {
    match resource {
        "cpu" => Reason::InsufficientCpu,
        "memory" => Reason::InsufficientMemory,
        "ephemeral-storage" => Reason::InsufficientEphemeralStorage,
        "pods" => Reason::InsufficientPods,
        name if is_device(name) => Reason::InsufficientDevices,
        _ => Reason::InsufficientResource,
    }
}

/// An amount as people write it: milli-units of cpu only where needed, bytes in the largest binary unit, rounded down to a tenth.
fn amount_text(resource: &str, amount: i64) -> String {
    if resource == "cpu" {
        return if amount % 1000 == 0 {
            (amount / 1000).to_string()
        } else {
            format!("{amount}m")
        };
    }
    let bytes = matches!(resource, "memory" | "ephemeral-storage") || resource.starts_with("hugepages-");
    for (unit, size) in [("Ti", 1i64 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)] {
        if bytes && amount >= size {
            let (whole, tenth) = (amount / size, amount % size * 10 / size);
            return if tenth == 0 {
                format!("{whole}{unit}")
            } else {
                format!("{whole}.{tenth}{unit}")
            };
        }
    }
    amount.to_string()
}
