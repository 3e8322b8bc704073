//! Plans: what an edit of the ConfigMap would do, before it is made.
//!
//! A copy of the core goes through the edit, so that a plan and the deed follow from the same decisions. Helm renders each release that
//! would be touched, and the API server is asked by dry runs. Must never change anything, neither in the cluster nor in the operator.
//!
//! ```text
//!   answers (debug socket) --> planner --> preview (the core)      which modules, in which order, with which values
//!                                   |  ----> hooks, scripts            those jobs that only ask
//!                                   |  ----> foresight (releases)      which objects
//!                                   v
//!                                document --> text
//! ```
//!
//! The same forms show the difference of two revisions of a release, which `command` reads from helm's records: `revisions`.
//!
//! Begin with `document`, then `planner`.

pub mod answers;
pub mod command;
pub mod document;
pub mod fields;
mod objects;
pub mod planner;
mod revisions;
pub mod text;
