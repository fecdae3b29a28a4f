//! Amounts by resource number: what the hot paths compare.

/// Amounts by resource number, sorted by number. Absent means 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vector(Vec<(u32, i64)>);

impl Vector {
    pub(super) fn get(&self, resource: u32) -> i64 {
        self.0.iter().find(|(r, _)| *r == resource).map_or(0, |(_, n)| *n)
    }

    pub(super) fn add(&mut self, resource: u32, amount: i64) {
        match self.0.binary_search_by_key(&resource, |(r, _)| *r) {
            Ok(i) => self.0[i].1 = self.0[i].1.saturating_add(amount),
            Err(i) => self.0.insert(i, (resource, amount)),
        }
    }

    pub(super) fn add_times(&mut self, other: &Self, times: i64) {
        for (resource, amount) in &other.0 {
            self.add(*resource, amount.saturating_mul(times));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, i64)> + Clone {
        self.0.iter().copied()
    }

    /// How many times `request` goes into what is here less `held`. At most 65,535, far above any node's limit of pods: a class keeps one number
    /// a node, and 500,000 nodes times hundreds of shapes is where memory goes.
    pub(super) fn slots(&self, held: &Self, request: &Self) -> u16 {
        request.times(|r| self.get(r).saturating_sub(held.get(r)))
    }

    /// The same of what is here and in `more` together.
    pub(super) fn slots_with(&self, more: &Self, request: &Self) -> u16 {
        request.times(|r| self.get(r).saturating_add(more.get(r)))
    }

    /// How many times all this goes into what `free` says.
    fn times(&self, free: impl Fn(u32) -> i64) -> u16 {
        let mut times = i64::from(u16::MAX);
        for (resource, amount) in self.iter().filter(|(_, n)| *n > 0) {
            let free = free(resource);
            if free < amount {
                return 0;
            }
            times = times.min(free / amount);
        }
        u16::try_from(times).unwrap_or(u16::MAX)
    }

    /// Is any amount above that in `before`?
    pub(super) fn exceeds(&self, before: &Self) -> bool {
        self.iter().any(|(r, n)| n > before.get(r)) || before.iter().any(|(r, n)| n < 0 && self.get(r) > n)
    }

    /// Are all amounts equal?
    pub(super) fn same(&self, other: &Self) -> bool {
        !self.exceeds(other) && !other.exceeds(self)
    }
}
