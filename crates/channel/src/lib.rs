//! The channel: follows the tag of the operator's own image, tries versions, and returns to the one before.
//!
//! Every replica has these parts. Must never judge: `channel-core` decides which version is wanted and whether its
//! trial has passed. Must never delay other parts: the operator works on while a version is tried.
//!
//! ```text
//!   registry <-- inquiry <-- follower --> channel_core::following   which version is wanted
//!                               ^              | Wanted
//!        an announcement --> bell              v
//!                            trial --> channel_core::trial          whether it has passed
//!                               | one request each
//!                               v
//!                            installation   the Deployment, its replica sets, the record of trials
//!
//!   answers   to commands and probes        command   `channel`: edits of the ConfigMap and the Deployment
//! ```
//!
//! Begin with `trial::start`, which starts the follower, too; `Outside` has the ways to the rest of the program.

pub mod answers;
pub mod bell;
pub mod command;
pub mod deployment;
pub mod follower;
pub mod installation;
mod outside;
pub mod stage;
pub mod trial;

pub use outside::Outside;
