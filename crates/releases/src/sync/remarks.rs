//! Warnings about webhooks of a release that would intercept the operator's own writes. Must never change the release.

use addon_core::operator::event::SyncAction;
use addon_core::release::interception;
use addon_core::release::returned::Returned;
use tracing::warn;

use super::Sync;
use super::brake::objects_of;

impl Sync<'_> {
    /// The warnings about the objects of a manifest.
    pub(super) fn remarks_on(&self, manifest: &str) -> Vec<String> {
        // A manifest that is no YAML fails elsewhere.
        let objects = objects_of(&self.facts.release, manifest).unwrap_or_default();
        interception::warnings(&objects, Some(self.tools.ground.cluster.namespace()))
    }

    /// Logs warnings, once for each revision.
    pub(super) fn warn_of(&self, remarks: &[String]) {
        let release = self.facts.release.as_str();
        for remark in remarks {
            warn!(
                release,
                remark, "a webhook of the release keeps the operator from its own objects when it fails"
            );
        }
    }

    /// The warnings about the release after this work. Without a rendering they are the warnings that are marked on the
    /// revision.
    pub(super) fn remarks(&self, action: SyncAction) -> Vec<String> {
        match (action, &self.revision) {
            (SyncAction::Unchanged, Some(revision)) => {
                let kept = revision.newest.returned.as_ref().and_then(Returned::remark);
                revision.remarks.iter().cloned().chain(kept).collect()
            }
            (SyncAction::Unchanged, None) => Vec::new(),
            (SyncAction::Recorded | SyncAction::Upgraded, _) => self.remarks_on(&self.manifest),
        }
    }
}
