//! Real Kubernetes control planes on one machine, for tests, benches and the demo.
