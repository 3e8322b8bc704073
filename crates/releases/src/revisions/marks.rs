//! The operator's marks on the Secrets of revisions that are up to date, and the labels that helm writes there.

use std::collections::BTreeMap;

use addon_core::release::brake::Asked;
use addon_core::release::returned::Returned;
use addon_core::release::{ConfigTrace, Status};
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde_json::json;

use super::upgrades::{GLOBAL, GOOD, RETURNED, SECTION, holding};
use super::{BEGUN, CHECKSUM, CONFIG, INPUTS, MAINTENANCE, OBJECTS, REMARKS, Revision, secret_name};
use crate::revisions;

/// The marks on the Secret of a deployed revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// The digest of the inputs.
    pub inputs: String,
    /// The checksum of the rendering.
    pub checksum: String,
    /// The digests of the sections.
    pub asked: Asked,
    /// The objects, as [`crate::drift`] writes them; `None` if they are too many for a mark.
    pub objects: Option<String>,
    /// Warnings about webhooks of the chart, as `why` prints them.
    pub remarks: Vec<String>,
    /// Whether the release is in maintenance, so that only people change it.
    pub unmanaged: bool,
    /// The digest of the ConfigMap's values for the release's module.
    pub config: ConfigTrace,
    /// The last revision before this one whose objects did their work, if the module may return to it.
    pub good: Option<u32>,
    /// The note about the upgrade that this revision took back.
    pub returned: Option<Returned>,
}

/// The labels of a release.
pub fn labels(checksum: Option<&str>, asked: &Asked, unmanaged: bool, config: ConfigTrace) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        (MAINTENANCE.to_owned(), unmanaged.to_string()),
        (CONFIG.to_owned(), config.to_string()),
        (SECTION.to_owned(), asked.section.clone()),
        (GLOBAL.to_owned(), asked.global.clone()),
    ]);
    if let Some(checksum) = checksum {
        labels.insert(CHECKSUM.to_owned(), checksum.to_owned());
    }
    labels
}

/// The labels of a new revision.
pub fn labels_of_new(
    checksum: Option<&str>,
    asked: &Asked,
    unmanaged: bool,
    config: ConfigTrace,
    started: u64,
) -> BTreeMap<String, String> {
    let mut labels = labels(checksum, asked, unmanaged, config);
    labels.insert(BEGUN.to_owned(), started.to_string());
    labels
}

/// Writes the marks on a deployed revision, without a new revision. Returns the status that helm wrote there.
pub async fn mark(cluster: &Cluster, release: &str, revision: u32, marks: &Marks) -> Result<Status, RequestError> {
    let Marks {
        inputs,
        checksum,
        asked,
        objects,
        remarks,
        unmanaged,
        config,
        good,
        returned,
    } = marks;
    let labels = labels(Some(checksum), asked, *unmanaged, *config);
    // The revision is up to date, so no upgrade is held.
    let mut annotations = holding(json!({}));
    annotations[INPUTS] = json!(inputs);
    annotations[OBJECTS] = json!(objects);
    annotations[GOOD] = json!(good.map(|good| good.to_string()));
    annotations[RETURNED] = json!(returned.as_ref().map(|note| json!(note).to_string()));
    let remarks = Some(remarks).filter(|remarks| !remarks.is_empty());
    annotations[REMARKS] = json!(remarks.map(|remarks| json!(remarks).to_string()));
    let metadata = json!({"labels": labels, "annotations": annotations});
    revisions::patch_revision(cluster, &secret_name(release, revision), &metadata).await
}

/// Writes the digest of the ConfigMap's values for its module on the Secret of a deployed revision.
pub async fn note_config(cluster: &Cluster, revision: &Revision, config: ConfigTrace) -> Result<(), RequestError> {
    let metadata = json!({"labels": {CONFIG: config.to_string()}});
    revisions::patch_revision(cluster, &revision.secret, &metadata)
        .await
        .map(drop)
}
