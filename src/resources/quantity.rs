//! Exact quantities.

/// A Kubernetes quantity in nano-units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

/// A text that is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity: {why}")]
pub struct QuantityError {
    text: String,
    why: &'static str,
}
