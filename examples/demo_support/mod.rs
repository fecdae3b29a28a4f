//! Parts of the demo.

pub mod expect;
pub mod table;
pub mod world;
