//! Amounts by resource name, in the scheduler's integers.

use std::sync::Arc;

/// Amounts by resource name, sorted by name, without zeros.
///
/// The unit is the scheduler's: milli-units of `cpu`, whole units of everything else, rounded up (for requests) as
/// `Resource.Add` in `pkg/scheduler/framework/types.go` does.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amounts {
    entries: Vec<(Arc<str>, i64)>,
}

impl Amounts {
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

    /// Names and amounts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, i64)> {
        self.entries.iter().map(|(name, amount)| (name, *amount))
    }

    /// True without any amount.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
