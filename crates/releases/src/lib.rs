//! Helm releases: their records, what is wanted, and the helm child that closes the gap.
//!
//! Never runs two helm children on one release, never starts a child without a stored intent, and never uninstalls
//! except in an explicit removal.
//!
//! ```text
//!   Job::SyncRelease --> sync --> revisions   helm's Secrets: the newest revision, its marks and objects
//!                         |  -->  drift       which of its objects exist, or were altered
//!                         |  the core decides the next step
//!                         |  -->  helm        rendering, upgrade, removal
//!                         |  -->  replacement, withdrawal, adoption   objects that helm itself cannot leave
//!   Job::EnsureCrds --> crds --> crd
//!   command --> answers   charts as they would be released, outdated kinds, held removals
//!   drift/lookout   watches releases and objects between two runs, and reports their state and health to the core
//!   causes          asks why an object is not healthy; health has the words
//! ```
//!
//! Begin with `sync.rs`, which carries out the steps of one run; `revisions.rs` has the records.

pub mod adoption;
pub mod answers;
mod causes;
pub mod command;
pub mod crd;
pub mod crds;
pub mod difference;
pub mod drift;
pub mod events;
mod family;
mod health;
pub mod interception;
pub mod outdated;
pub mod replacement;
pub mod revisions;
pub mod sync;
mod three_way;
pub mod withdrawal;

use std::sync::Arc;

use helm::Helm;
use jobs::Ground;

use self::drift::lookout::Lookout;
use self::sync::holds::Holds;

/// The tools of the jobs on releases. Clones share them.
#[derive(Debug, Clone)]
pub struct Tools {
    /// The ground of all jobs.
    pub ground: Arc<Ground>,
    pub helm: Arc<Helm>,
    pub lookout: Lookout,
    /// The releases that jobs work on right now.
    pub holds: Holds,
}
