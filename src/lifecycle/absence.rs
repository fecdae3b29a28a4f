//! The one proof of absence (design 5.4): of a mirror, and of its pods.

use std::time::Duration;

/// How far the proof is that a mirror and its pods are gone. All times are monotonic.
///
/// "I have not seen it" is never proof: the proof starts with a GET by name that was sent after our last write's outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Absence {
    /// Nothing was asked, or what was answered proves nothing.
    #[default]
    Unproven,
    /// A GET sent at this time answered that the object is not there.
    NotFound {
        /// When the GET was sent.
        asked: Duration,
    },
    /// The worker lease was renewed on the same cluster by a request sent after that GET: the answer was this cluster's.
    Confirmed {
        /// When the pods may be listed next; they were still there the last time.
        list_at: Duration,
    },
    /// A list of its pods, sent after that, held none.
    Proven,
}

/// What the proof needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A GET of the object.
    Get,
    /// A renewal of the worker lease.
    Renewal,
    /// A list of the pods, not before this time.
    Pods(Duration),
    /// Nothing: it is proven.
    Complete,
}

impl Absence {
    /// What the proof needs next.
    pub fn needs(self) -> Evidence {
        match self {
            Self::Unproven => Evidence::Get,
            Self::NotFound { .. } => Evidence::Renewal,
            Self::Confirmed { list_at } => Evidence::Pods(list_at),
            Self::Proven => Evidence::Complete,
        }
    }

    /// A GET sent at `asked` answered that the object is not there, or that another uid has its name.
    pub fn not_found(&mut self, asked: Duration) {
        if *self == Self::Unproven {
            *self = Self::NotFound { asked };
        }
    }

    /// The worker lease was renewed by a request sent at `sent`.
    pub fn renewed(&mut self, sent: Duration) {
        if let Self::NotFound { asked } = *self
            && sent > asked
        {
            *self = Self::Confirmed { list_at: sent };
        }
    }

    /// A list of the pods held `live` unfinished ones; the next may be asked for at `again`.
    pub fn pods(&mut self, live: usize, again: Duration) {
        if let Self::Confirmed { .. } = *self {
            *self = if live == 0 {
                Self::Proven
            } else {
                Self::Confirmed { list_at: again }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_needs_a_get_then_a_later_renewal_then_an_empty_list_of_pods() {
        let at = Duration::from_secs;
        let mut absence = Absence::default();
        absence.renewed(at(9));
        absence.pods(0, at(9));
        assert_eq!(absence, Absence::Unproven, "nothing counts before the GET");
        absence.not_found(at(10));
        absence.renewed(at(10));
        assert_eq!(
            absence.needs(),
            Evidence::Renewal,
            "a renewal sent with the GET proves nothing"
        );
        absence.renewed(at(11));
        absence.pods(2, at(12));
        assert_eq!(absence.needs(), Evidence::Pods(at(12)));
        absence.pods(0, at(13));
        assert_eq!(absence.needs(), Evidence::Complete);
    }
}
