//! Restores fields that other writers have altered in the objects of an up-to-date release. Starts no helm.

use addon_core::failure::Failure;
use addon_core::release::Known;
use tracing::info;

use super::Sync;
use crate::drift::lookout::comparison;
use crate::drift::restore;
use jobs::unless;

impl Sync<'_> {
    /// Restores the alterations that the lookout has found, if the release was read. Newer ones are left to its next
    /// check.
    pub(super) async fn put_right(&self) -> Result<(), Failure> {
        let release = self.facts.release.as_str();
        let lookout = &self.tools.lookout;
        if self.facts.known != Known::Read {
            return Ok(());
        }
        let altered = lookout.altered(release);
        if altered.is_empty() {
            return Ok(());
        }
        let cluster = &self.tools.ground.cluster;
        let manifests = unless(self.cancel, comparison::manifests(cluster, self.deployed()?)).await?;
        let acting = unless(self.cancel, self.acting()).await?.cluster();
        for object in altered {
            let Some(manifest) = manifests.get(&object) else {
                continue;
            };
            let is_left = |alteration: &_| lookout.leaves(release, &object, alteration);
            let right = restore::put_right(acting, manifest, &self.apis, is_left);
            let right = unless(self.cancel, right).await?;
            for alteration in &right.tried {
                let (field, by) = (alteration.field(), alteration.by.as_deref());
                info!(release, %object, field, by, "restoring a field that another writer altered");
            }
            lookout.was_put_right(release, &object, &right);
        }
        Ok(())
    }
}
