//! Texts and amounts that repeat thousands of times are kept once.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::vector::Vector;
use crate::resources::Amounts;

/// Texts by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    /// Hash and number, in order: nodes carry dozens of labels, and texts with common beginnings are slow to compare.
    numbers: BTreeSet<(u64, u32)>,
    texts: Vec<Arc<str>>,
}

impl Texts {
    pub(super) fn intern(&mut self, text: &Arc<str>) -> u32 {
        let hash = hash(text);
        self.find(hash, text).unwrap_or_else(|| self.add(hash, text.clone()))
    }

    pub(super) fn intern_str(&mut self, text: &str) -> u32 {
        let hash = hash(text);
        self.find(hash, text).unwrap_or_else(|| self.add(hash, text.into()))
    }

    fn find(&self, hash: u64, text: &str) -> Option<u32> {
        let alike = self.numbers.range((hash, 0)..=(hash, u32::MAX));
        alike.map(|(_, n)| *n).find(|n| *self.texts[*n as usize] == *text)
    }

    fn add(&mut self, hash: u64, text: Arc<str>) -> u32 {
        // More than u32::MAX distinct texts would need hundreds of gigabytes first.
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text);
        self.numbers.insert((hash, number));
        number
    }

    pub(super) fn text(&self, number: u32) -> &Arc<str> {
        &self.texts[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// The same in every process: the hasher has no key of its own.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Number of the resource `pods`: every pod takes one.
pub(super) const PODS: u32 = 0;

/// Resource names by number. A cluster has a few dozen, so none is ever forgotten.
#[derive(Debug, Clone)]
pub(super) struct Resources(Texts);

impl Default for Resources {
    fn default() -> Self {
        let mut texts = Texts::default();
        texts.intern(&"pods".into());
        Self(texts)
    }
}

impl Resources {
    pub(super) fn vector(&mut self, amounts: &Amounts) -> Vector {
        let mut vector = Vector::default();
        for (name, amount) in amounts.iter() {
            vector.add(self.0.intern(name), amount);
        }
        vector
    }

    pub(super) fn number(&mut self, name: &Arc<str>) -> u32 {
        self.0.intern(name)
    }

    pub(super) fn name(&self, number: u32) -> &Arc<str> {
        self.0.text(number)
    }
}

/// What pods are charged, by number, counted: members of one job share one entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Charges {
    numbers: BTreeMap<Vector, u32>,
    entries: Vec<(Vector, u32)>,
    vacant: Vec<u32>,
}

impl Charges {
    pub(super) fn acquire(&mut self, charge: Vector) -> u32 {
        if let Some(number) = self.numbers.get(&charge) {
            self.entries[*number as usize].1 += 1;
            return *number;
        }
        let number = if let Some(number) = self.vacant.pop() {
            self.entries[number as usize] = (charge.clone(), 1);
            number
        } else {
            self.entries.push((charge.clone(), 1));
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        };
        self.numbers.insert(charge, number);
        number
    }

    pub(super) fn get(&self, number: u32) -> &Vector {
        &self.entries[number as usize].0
    }

    pub(super) fn release(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        entry.1 -= 1;
        if entry.1 == 0 {
            self.numbers.remove(&entry.0);
            entry.0 = Vector::default();
            self.vacant.push(number);
        }
    }
}
