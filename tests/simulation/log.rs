//! What a watch cache keeps: every change in order. A watch is a cursor in it, a list is its end.

use std::collections::BTreeMap;
use std::rc::Rc;

/// A change: the object as it is now, or as it was when it was removed.
pub enum Change<'a, V> {
    Set(&'a V),
    Removed(&'a V),
}

pub struct Log<K, V> {
    entries: Vec<(K, Rc<V>, bool)>,
    current: BTreeMap<K, Rc<V>>,
}

impl<K: Ord + Clone, V> Log<K, V> {
    pub fn new() -> Self {
        Self {
            entries: Vec::new(),
            current: BTreeMap::new(),
        }
    }

    pub fn set(&mut self, key: K, value: V) {
        let value = Rc::new(value);
        self.current.insert(key.clone(), Rc::clone(&value));
        self.entries.push((key, value, true));
    }

    pub fn remove(&mut self, key: K) {
        if let Some(last) = self.current.remove(&key) {
            self.entries.push((key, last, false));
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn entry(&self, index: usize) -> (&K, Change<'_, V>) {
        let (key, value, set) = &self.entries[index];
        (
            key,
            if *set {
                Change::Set(value)
            } else {
                Change::Removed(value)
            },
        )
    }

    /// The objects as they are now.
    pub fn current(&self) -> &BTreeMap<K, Rc<V>> {
        &self.current
    }
}
