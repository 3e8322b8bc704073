//! Plans: what a change of the ConfigMap or of modules would do, before it is made.
//!
//! A copy of the core goes through the change, so that a plan and the deed follow from the same decisions. Helm renders each release that
//! would be touched, and the API server is asked by dry runs. Must never change anything, neither in the cluster nor in the operator.
//!
//! ```text
//!   answers (debug socket) --> planner --> preview (the core)      which modules, in which order, with which values
//!                                   |  ----> hooks, scripts            those jobs that only ask
//!                                   |  ----> foresight (releases)      which objects
//!                                   |  ----> files that are not in use
//!                                   v
//!                                writer --> document --> text
//! ```
//!
//! Without an operator `start` does the planner's work: a new core goes through its first converge.
//!
//! The same forms show the difference of two revisions of a release, from helm's records: `revisions`.
//!
//! Begin with `document`, then `planner`.

pub mod answers;
pub mod command;
mod course;
pub mod document;
pub mod fields;
mod moment;
mod news;
mod objects;
mod outcome;
pub mod planner;
pub mod revisions;
pub mod start;
pub mod supply;
pub mod text;
pub mod warnings;
pub mod world;
mod writer;
