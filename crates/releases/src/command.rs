//! The commands about releases: a held upgrade that goes on, records that are repaired, past revisions, Events, logs,
//! and the health of objects.
//!
//! Must never change a release in another way than it has shown.

mod confirm;
pub mod events;
pub mod history;
pub mod logs;
pub mod object;
mod records;
pub mod repair;
pub mod upgrade;
