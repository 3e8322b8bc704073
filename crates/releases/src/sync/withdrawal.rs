//! The webhook configurations of a release that is removed. They are deleted first. Helm would delete them somewhere
//! among the other objects, and until then a webhook that has lost its server would refuse helm's writes.
//!
//! Must never touch an object of another kind.

use addon_core::failure::Failure;
use report::Chain;
use serde_json::Value;
use tracing::{info, warn};

use super::brake::{goes_with_its_rendering, objects_of};
use crate::Tools;
use crate::revisions::{self, Revision};
use crate::withdrawal;
use jobs::acting::Acting;
use objects::key;

/// Deletes the webhook configurations in the record of a release and among these objects, with the rights of its account.
pub(super) async fn withdraw(
    tools: &Tools,
    acting: &Acting<'_>,
    revision: &Revision,
    missed: &[Value],
) -> Result<(), Failure> {
    let release = revision.release.as_str();
    let manifest = revisions::manifest(&tools.ground.cluster, revision).await?;
    // Helm itself reports a manifest that is no YAML.
    let objects = objects_of(release, &manifest).unwrap_or_default();
    let goes = objects
        .iter()
        .chain(missed)
        .filter(|object| goes_with_its_rendering(object));
    let mut is_any = false;
    for key in goes.filter_map(key::key_of) {
        if !key.api_version.starts_with("admissionregistration.k8s.io/") {
            continue;
        }
        match withdrawal::withdraw(acting.cluster(), release, &key.kind, &key.name).await {
            Ok(true) => {
                is_any = true;
                info!(release, object = %key, "the webhooks of the release are removed first");
            }
            Ok(false) => {}
            // Helm may lack the right, too.
            Err(error) if error.is_forbidden() => {
                warn!(release, object = %key, error = %Chain(&error), "the webhooks of the release cannot be removed first");
            }
            Err(error) => return Err(error.into()),
        }
    }
    if is_any {
        withdrawal::outlast(&tools.ground.cluster, revision).await;
    }
    Ok(())
}
