//! One copy of every text that many rows repeat: namespaces, node names, label keys, resource names.

use std::collections::HashSet;
use std::sync::Arc;

/// One copy of every text. Each watch has its own, so that none waits for another.
#[derive(Debug, Default)]
pub struct Interner {
    // Only looked up, never iterated for a result: order does not matter.
    texts: HashSet<Arc<str>>,
    sweep_at: usize,
}

impl Interner {
    /// The copy of `text`.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        if self.texts.len() >= self.sweep_at {
            // What only we still hold is of objects that are gone.
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.sweep_at = (self.texts.len() * 2).max(1_024);
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_unused_ones_are_forgotten() {
        let mut interner = Interner::default();
        let kept = interner.intern("kept");
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")));
        for i in 0..10_000 {
            interner.intern(&format!("node-{i}"));
        }
        assert!(interner.texts.len() < 2_100, "{}", interner.texts.len());
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")));
    }
}
