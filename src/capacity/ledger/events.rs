//! Nodes, pods and runtime classes as watches and lists tell them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::intern::PODS;
use super::{JobPods, Ledger, OwnPods, PodEntry, Watched};
use crate::capacity::rows::{NodeRow, PodRow, RuntimeClassRow};

impl Ledger {
    /// A node as a watch or a list shows it.
    pub fn upsert_node(&mut self, row: &NodeRow) {
        if self.nodes.upsert(row, &mut self.resources) {
            self.finish();
        }
    }

    /// A node is gone; its pods stay on the books until they are gone too.
    pub fn delete_node(&mut self, name: &str) {
        if let Some(ix) = self.nodes.find(name) {
            self.nodes.delete(ix);
            self.finish();
        }
    }

    /// All nodes: a list is complete. Those not in it are gone.
    pub fn reset_nodes(&mut self, rows: &[NodeRow]) {
        let names: BTreeSet<&str> = rows.iter().map(|r| &*r.name).collect();
        let gone: Vec<_> = self
            .nodes
            .present()
            .filter(|(_, n)| !names.contains(&*n.name))
            .map(|(ix, _)| ix)
            .collect();
        for ix in gone {
            self.nodes.delete(ix);
        }
        for row in rows {
            self.nodes.upsert(row, &mut self.resources);
        }
        self.listed(Watched::Nodes);
    }

    /// A bound, live pod.
    pub fn upsert_pod(&mut self, row: &PodRow) {
        if self.apply_pod(row) {
            self.finish();
        }
    }

    /// A pod is finished or gone.
    pub fn delete_pod(&mut self, namespace: &str, name: &str) {
        if self.remove_pod(&pod_key(namespace, name)) {
            self.finish();
        }
    }

    /// All bound, live pods: a list is complete. Those not in it are gone.
    pub fn reset_pods(&mut self, rows: &[PodRow]) {
        let keys: BTreeSet<String> = rows.iter().map(|r| pod_key(&r.namespace, &r.name)).collect();
        let gone: BTreeSet<Box<str>> = self.pods.keys().filter(|k| !keys.contains(&***k)).cloned().collect();
        for key in gone {
            self.remove_pod(&key);
        }
        for row in rows {
            self.apply_pod(row);
        }
        self.listed(Watched::Pods);
    }

    /// All runtime classes.
    pub fn set_runtime_classes(&mut self, runtimes: BTreeMap<Arc<str>, RuntimeClassRow>) {
        if self.runtimes.as_ref() == Some(&runtimes) {
            return;
        }
        self.runtimes = Some(runtimes);
        // What is held was charged with the old overhead: it leaves with that, and comes back with the new.
        for member in self.promises.all() {
            let Some(held) = self.promises.held(member) else {
                continue;
            };
            let nodes: BTreeSet<_> = held.placed.keys().chain(held.waiting.keys()).copied().collect();
            if self.classes.get(held.class).shape.runtime_class.is_some() {
                for ix in nodes {
                    self.dislodge(member, ix, i64::MAX);
                }
            }
        }
        let context = super::classes::Context {
            nodes: &mut self.nodes,
            resources: &mut self.resources,
            runtimes: self.runtimes.as_ref(),
        };
        self.classes.recompile(context);
        // Members were told apart by what they are charged.
        for id in self.promises.ids() {
            self.promises.touch(&id, None);
        }
        self.generation += 1;
        self.reconsider();
        self.finish();
    }

    /// Nothing of the worker can be believed until nodes and pods are both listed again.
    pub fn set_unknown(&mut self, message: &str) {
        self.unknown = [Some(message.into()), Some(message.into())];
        self.failing = [false; 2];
    }

    /// One watch is not running; capacity is unknown until its list is complete again.
    pub fn watch_lost(&mut self, watched: Watched, message: &str) {
        self.unknown[watched as usize] = Some(message.into());
        self.failing[watched as usize] = true;
    }

    /// A watch that the counting rests on fails; without one, what is not known is still being listed.
    pub fn is_failing(&self) -> bool {
        self.failing.contains(&true)
    }

    /// Nodes and pods are known; else why not, in a sentence.
    pub fn known(&self) -> Result<(), &str> {
        match self.unknown.iter().flatten().next() {
            Some(message) => Err(message),
            None => Ok(()),
        }
    }

    fn listed(&mut self, watched: Watched) {
        let was_known = self.known().is_ok();
        self.unknown[watched as usize] = None;
        self.failing[watched as usize] = false;
        if !was_known && self.known().is_ok() {
            self.generation += 1;
            self.reconsider();
        }
        self.finish();
    }

    fn apply_pod(&mut self, row: &PodRow) -> bool {
        let key = pod_key(&row.namespace, &row.name);
        let mut charge = self.resources.vector(&row.charged);
        charge.add(PODS, 1);
        if let Some(entry) = self.pods.get(key.as_str()) {
            let same_room = self.nodes.find(&row.node) == Some(entry.node)
                && self.charges.get(entry.charge).same(&charge)
                && entry.job == row.job_uid;
            if same_room && (entry.running, entry.deleting) == (row.running, row.deleting) {
                return false;
            }
            self.remove_pod(&key);
        }
        let node = self.nodes.find_or_keep(&row.node);
        let entry = self.nodes.touch(node);
        entry.free.add_times(&charge, -1);
        entry.pods += 1;
        if row.job_uid.is_some() {
            entry.ours.add_times(&charge, 1);
        }
        let charge = self.charges.acquire(charge);
        let mut job = None;
        if let Some(uid) = &row.job_uid {
            let own = self.jobs.entry(uid.clone()).or_insert_with(|| OwnPods {
                id: uid.clone(),
                ..OwnPods::default()
            });
            own.count(charge, row.running, row.deleting, 1);
            job = Some(own.id.clone());
            self.promises.touch(uid, Some(node));
        }
        self.pods.insert(
            key.into(),
            PodEntry {
                node,
                charge,
                job,
                running: row.running,
                deleting: row.deleting,
            },
        );
        true
    }

    fn remove_pod(&mut self, key: &str) -> bool {
        let Some(entry) = self.pods.remove(key) else {
            return false;
        };
        let charge = self.charges.get(entry.charge);
        let node = self.nodes.touch(entry.node);
        node.free.add_times(charge, 1);
        node.pods -= 1;
        if let Some(uid) = &entry.job {
            node.ours.add_times(charge, -1);
            if let Some(own) = self.jobs.get_mut(uid) {
                own.count(entry.charge, entry.running, entry.deleting, -1);
                if own.pods.bound == 0 {
                    self.jobs.remove(uid);
                }
            }
            self.promises.touch(uid, None);
        }
        self.charges.release(entry.charge);
        true
    }
}

impl OwnPods {
    fn count(&mut self, charge: u32, running: bool, deleting: bool, n: i64) {
        let JobPods {
            bound,
            running: r,
            deleting: d,
        } = &mut self.pods;
        *bound += n;
        *r += n * i64::from(running);
        *d += n * i64::from(deleting);
        match self.charges.iter_mut().find(|(c, _)| *c == charge) {
            Some((_, count)) => *count += n,
            None => self.charges.push((charge, n)),
        }
        self.charges.retain(|(_, count)| *count != 0);
    }
}

fn pod_key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}
