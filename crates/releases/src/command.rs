//! The commands about releases: a held upgrade that goes on, and records that are repaired.
//!
//! Must never change a release in another way than it has shown.

mod confirm;
mod records;
pub mod repair;
pub mod upgrade;
