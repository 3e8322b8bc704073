//! The module bundles with an operator, on a real API server, with charts in a real registry and with helm.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

#[path = "bundles/deploys.rs"]
mod deploys;
#[path = "bundles/endings.rs"]
mod endings;
#[path = "bundles/faults.rs"]
mod faults;
#[path = "bundles/health.rs"]
mod health;
#[path = "bundles/jobs.rs"]
mod jobs;
#[path = "copier/life.rs"]
mod life;
#[path = "bundles/rights.rs"]
mod rights;
#[path = "bundles/world.rs"]
mod world;
