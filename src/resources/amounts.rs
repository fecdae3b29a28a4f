//! Amounts by resource name, in the scheduler's integers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::quantity::Quantity;

/// Name of the resource that is counted in milli-units.
pub const CPU: &str = "cpu";
/// Quantities by resource name, as they stand in an object (`ResourceList`).
pub type ResourceList = BTreeMap<String, Quantity>;

/// Resource names that are each kept once: half a million nodes share the text of `nvidia.com/gpu`.
#[derive(Debug, Clone, Default)]
pub struct Names(BTreeSet<Arc<str>>);

impl Names {
    /// The one shared copy of `name`.
    pub fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(name) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = name.into();
        self.0.insert(Arc::clone(&shared));
        shared
    }

    /// How many names are kept.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True before the first name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Amounts by resource name, sorted by name, without zeros.
///
/// The unit is the scheduler's: milli-units of `cpu`, whole units of everything else, rounded up (for requests) as
/// `Resource.Add` in `pkg/scheduler/framework/types.go` does.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amounts {
    entries: Vec<(Arc<str>, i64)>,
}

impl Amounts {
    /// The quantities in the scheduler's units, each rounded up as `MilliValue()` and `Value()` do (allocatable too: so does the scheduler).
    /// Sums must be taken before, on exact quantities: two halves of a unit are one, not two.
    pub fn from_quantities(list: &ResourceList, names: &mut Names) -> Self {
        // A map is sorted and has each name once, as the entries must be.
        let entries = list
            .iter()
            .map(|(name, quantity)| (name, scheduler_units(name, *quantity)))
            .filter(|(_, amount)| *amount != 0)
            .map(|(name, amount)| (names.share(name), amount))
            .collect();
        Self { entries }
    }

    /// The amount of `name`, 0 when absent.
    pub fn get(&self, name: &str) -> i64 {
        self.entries
            .binary_search_by(|(n, _)| (**n).cmp(name))
            .map_or(0, |i| self.entries[i].1)
    }

    /// Sets the amount of `name`; 0 removes it.
    pub fn set(&mut self, name: Arc<str>, amount: i64) {
        match self.entries.binary_search_by(|(n, _)| (**n).cmp(&name)) {
            Ok(i) if amount == 0 => {
                self.entries.remove(i);
            }
            Ok(i) => self.entries[i].1 = amount,
            Err(_) if amount == 0 => {}
            Err(i) => self.entries.insert(i, (name, amount)),
        }
    }

    /// Adds each amount of `other`, capped at what `i64` holds.
    pub fn add_assign(&mut self, other: &Self) {
        self.merge(other, i64::saturating_add);
    }

    /// Takes each amount of `other` away, capped; what was not there goes below zero, and the caller clamps where a negative has no meaning.
    pub fn sub_assign(&mut self, other: &Self) {
        self.merge(other, i64::saturating_sub);
    }

    /// Raises each amount to that of `other` where it is larger.
    pub fn max_assign(&mut self, other: &Self) {
        self.merge(other, i64::max);
    }

    fn merge(&mut self, other: &Self, combine: fn(i64, i64) -> i64) {
        for (name, amount) in &other.entries {
            match self.entries.binary_search_by(|(n, _)| n.cmp(name)) {
                Ok(i) => match combine(self.entries[i].1, *amount) {
                    0 => {
                        self.entries.remove(i);
                    }
                    combined => self.entries[i].1 = combined,
                },
                Err(i) => match combine(0, *amount) {
                    0 => {}
                    combined => self.entries.insert(i, (Arc::clone(name), combined)),
                },
            }
        }
    }

    /// Names and amounts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, i64)> {
        self.entries.iter().map(|(name, amount)| (name, *amount))
    }

    /// True without any amount.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// A quantity in the scheduler's unit of its resource.
pub fn scheduler_units(name: &str, quantity: Quantity) -> i64 {
    if name == CPU {
        quantity.millis_ceil()
    } else {
        quantity.units_ceil()
    }
}

#[cfg(test)]
mod tests;
