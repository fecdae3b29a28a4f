//! The `multikueue` program.

fn main() {}
