//! Nonces: fresh at every write of ours on a mirror, and they say which write it was.

/// What a write did, as the first letter of its nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// The mirror was created, asleep.
    Creation,
    /// It was released.
    Release,
    /// It was stopped.
    Stop,
}

impl Wrote {
    fn letter(self) -> char {
        match self {
            Self::Creation => 'c',
            Self::Release => 'r',
            Self::Stop => 's',
        }
    }

    /// What the last write of ours did, by the nonce that it left.
    pub fn of(nonce: &str) -> Option<Self> {
        let (letter, _) = nonce.split_once('.')?;
        [Self::Creation, Self::Release, Self::Stop]
            .into_iter()
            .find(|w| letter.len() == 1 && letter.starts_with(w.letter()))
    }
}

/// Makes nonces: the id of the claim and a counter, so that no two writes of any leader share one.
#[derive(Debug, Clone, Default)]
pub struct Nonces {
    counter: u64,
}

impl Nonces {
    /// The nonce of the next write under `claim`.
    pub fn next(&mut self, claim: &str, wrote: Wrote) -> String {
        self.counter += 1;
        format!("{}.{claim}.{}", wrote.letter(), self.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_tells_its_write_and_never_repeats() {
        let mut nonces = Nonces::default();
        let first = nonces.next("7f3a", Wrote::Creation);
        let second = nonces.next("7f3a", Wrote::Creation);
        assert_ne!(first, second);
        for wrote in [Wrote::Creation, Wrote::Release, Wrote::Stop] {
            assert_eq!(Wrote::of(&nonces.next("7f3a", wrote)), Some(wrote));
        }
        for foreign in ["", "c", "create.7f3a.1", "x.7f3a.1"] {
            assert_eq!(Wrote::of(foreign), None, "{foreign}");
        }
    }
}
