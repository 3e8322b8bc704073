//! Answers about releases: charts as they would be released now, outdated kinds, held removals, lost configurations.
//!
//! Must never count a removal as confirmed that was not named.

pub mod apis;
pub mod charts;
pub mod history;
pub mod lost;
pub mod purge;
pub mod render;
