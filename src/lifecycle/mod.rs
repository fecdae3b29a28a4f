//! One job's state machine: (job, mirror seen, worker's state, now) → the next single effect and status.

pub mod view;
