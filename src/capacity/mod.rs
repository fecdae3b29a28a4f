//! What a worker can take: rows of its nodes and pods, the ledger of what is free, used and promised, and `fit`.

pub mod accelerators;
pub mod filters;
pub mod ledger;
pub mod reason;
pub mod rows;

pub use accelerators::DeviceReport;
pub use ledger::{Cost, Fit, JobPods, Ledger, ModelTotal, Shortfall, Watched};
pub use reason::Reason;
pub use rows::{NodeRow, PodRow, RuntimeClassRow};
