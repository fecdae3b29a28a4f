//! Exact quantities, named amounts, and shapes: what a pod asks of a node.

pub mod amounts;
pub mod quantity;
pub mod requests;
pub mod shape;

pub use amounts::{Amounts, Names, ResourceList};
pub use quantity::Quantity;
pub use shape::{PodSet, Shape};
