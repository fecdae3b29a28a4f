//! What a worker can take: rows of its nodes and pods, the ledger of what is free, used and promised, and `fit`.

pub mod rows;

pub use rows::{NodeRow, PodRow, RuntimeClassRow};
