//! The rim against real API servers: what a link says, what a watch shows, what each request and each refusal comes back as.

// `cfg(test)` tells clippy that helpers of tests are tests too.
#[cfg(test)]
mod links;
#[cfg(test)]
mod manager;
#[cfg(test)]
mod mirrors;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod world;
