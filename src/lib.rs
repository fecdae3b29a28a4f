//! multikueue: dispatches GPU jobs over many Kubernetes clusters by live free capacity.
//!
//! A manager cluster holds queued `MultiKueueJob` objects. The dispatcher knows the free devices of every worker cluster, places
//! each job on the best one, mirrors it there as an ordinary object, and keeps the job's status on the manager true.
//!
//! ```text
//!  watches ──Event──►  dispatcher (one owner, synchronous)  ──Effect──► executors
//!  manager, workers    applies the event to the world,      ◄──slots──  manager, one per worker:
//!  decode to rows      schedules, steps each touched job                one request, one deadline, one log line
//!      ▲                                                                    │
//!      └──────────────── Outcome: done(object) | refused(reason) | unknown ◄┘
//! ```
//!
//! Everything above `clusters` in the list of modules is pure: data in, data out. Time is an argument, and ids come from the rim.
//! `tests/architecture.rs` holds that line.

pub mod api;
pub mod app;
pub mod capacity;
pub mod clusters;
pub mod dispatcher;
pub mod lifecycle;
pub mod resources;
pub mod scheduling;
pub mod workload;
