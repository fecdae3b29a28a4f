//! One job's state machine: (job, mirror seen, worker's state, now) → the next single effect and status. No client, no clock.
//!
//! The protocol has four mechanisms, and each is one file here:
//!
//! | Mechanism | File |
//! |---|---|
//! | the intent on the manager, `status.assignment` | [`mod@intent`] writes it, [`mod@step`] decides when |
//! | the table of what to do with a mirror | [`mod@judge`] |
//! | the one way to remove | [`mod@removal`] |
//! | the one proof of absence | [`mod@absence`] |
//!
//! Everything that acts on a worker is decided from the job *as the manager returned it*, never from an intent that is still on its way: a crash between
//! the two finds the same job and decides the same.

pub mod absence;
mod ending;
pub mod intent;
pub mod judge;
pub mod news;
pub mod nonce;
pub mod removal;
pub mod step;
pub mod view;

pub use absence::Absence;
pub use judge::{Verdict, judge};
pub use nonce::Nonces;
pub use removal::{Removal, removal};
pub use step::{ManagerStep, Situation, Step, WorkerSide, WorkerStep, step};

#[cfg(test)]
mod tests;
