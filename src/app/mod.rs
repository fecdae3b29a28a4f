//! The process: flags, leader election, the administrative endpoints, logs and metrics, and the wiring of the core to the rim.
//!
//! Everything else in the crate is usable without this module; nothing else uses it.

pub mod admin;
pub mod args;
pub mod crds;
pub mod driver;
pub mod error;
pub mod health;
pub mod identity;
pub mod leader;
pub mod manager;
pub mod metrics;
pub mod run;
pub mod shutdown;
pub mod telemetry;

pub use args::{Args, Command, RunArgs};
pub use error::Error;
pub use run::run;
