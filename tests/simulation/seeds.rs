//! Seeds that once failed, and what they showed.

pub const KEPT: &[(u64, &str)] = &[];
