//! The bed itself, live: what tests of the operator take for granted.

// `cfg(test)` tells clippy that helpers of tests are tests too.
#[cfg(test)]
mod access;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod links;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod world;
