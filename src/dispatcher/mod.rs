//! The world, events in, effects out: a plain value with one owner.
//!
//! `handle(Event, now)` applies an event, `poll(now)` hands out the effects that are due, `next_wakeup()` says when to poll next although no event came.

pub mod config;
pub mod effect;
pub mod event;
pub mod summary;

pub use config::Config;
pub use effect::{Effect, EffectId, Request, Target};
pub use event::{Answer, Event, LinkEvent, Outcome, Refusal, RefusalKind, WorkerEvent};
