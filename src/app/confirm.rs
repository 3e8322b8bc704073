//! Confirms, for a person, an upgrade that the operator holds. The confirmation is stored on the release, where the
//! operator finds it at the module's next run; nothing else is changed.

use addon_core::failure::Failure;
use addon_core::release::brake::Held;
use tokio::runtime::Runtime;

use super::switch::{SwitchError, reach};
use crate::cluster::Cluster;
use crate::cluster::releases::Revision;
use crate::settings::{Environment, StartArgs};

/// An upgrade that waits for a confirmation.
#[derive(Debug)]
pub struct HeldUpgrade {
    /// The objects that the upgrade would delete.
    pub held: Held,
    revision: Revision,
    cluster: Cluster,
    runtime: Runtime,
}

impl HeldUpgrade {
    /// Finds the held upgrade of a module, if there is one. Changes nothing.
    pub fn find(args: &StartArgs, environment: &Environment, module: &str) -> Result<Option<Self>, SwitchError> {
        let (module, _, runtime, cluster) = reach(args, environment, module)?;
        let newest = runtime.block_on(cluster.newest_revision(module.as_str()));
        let Some(revision) = newest.map_err(|error| SwitchError::Cluster(Failure::from(error)))? else {
            return Ok(None);
        };
        Ok(revision.newest.held.clone().map(|held| Self {
            held,
            revision,
            cluster,
            runtime,
        }))
    }

    /// Confirms the shown deletions.
    pub fn confirm(&self) -> Result<(), SwitchError> {
        let confirmed = self.runtime.block_on(self.cluster.allow(&self.revision, &self.held));
        confirmed.map_err(|error| SwitchError::Cluster(Failure::from(error)))
    }
}
