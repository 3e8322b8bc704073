//! All that the program tells of its work: the log, metrics, and Events in the cluster.
//!
//! Must never decide anything, and never tell a value, a patch, or other input and output of a hook.
//!
//! ```text
//!            notices of the core
//!                    |
//!                 notices ------------> announcements --> Events (others send them)
//!                 |     |
//!                 v     v
//!         telemetry     meters <------- requests, processes, hooks
//!              |          |
//!           stdout     /metrics
//! ```
//!
//! Begin with `notices`: one function turns each notice into a record, a meter and an Event. `parameters` changes the
//! log at run time.

pub mod meters;
pub mod notices;
pub mod parameters;
pub mod telemetry;
