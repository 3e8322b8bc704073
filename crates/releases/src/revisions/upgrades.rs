//! The facts for the next upgrade of a release: the revision that helm would upgrade from, a held upgrade, and its
//! confirmation.
//!
//! They are stored on the Secrets of revisions, so they survive a restart. The next revision begins without them.

use addon_core::release::Status;
use addon_core::release::brake::{Asked, Held};
use addon_core::release::refusal::Refused;
use addon_core::release::returned::Returned;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::ListParams;
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::RequestError;
use names::replaceable::Replaceable;
use serde::Deserialize;
use serde_json::{Value, json};

use super::unserved::{self, Unserved};
use super::{Revision, fields, text};
use crate::revisions;

/// The label with the digest of the module's section of the `ConfigMap`. It is a label so that it exists as soon as the
/// revision does.
pub const SECTION: &str = "addon-operator/section";
/// The label with the digest of the global section.
pub const GLOBAL: &str = "addon-operator/global";
/// The annotation with an upgrade that waits for a person.
pub const HELD: &str = "addon-operator/held";
/// The annotation with a person's confirmation.
pub const CONFIRMED: &str = "addon-operator/confirmed";
/// The annotation with an upgrade that waits because of a field that nobody can change.
pub const REFUSED: &str = "addon-operator/refused";
/// The annotation with the objects that the next upgrade may replace, because a person permits it; joined by commas.
pub const REPLACEABLE: &str = "addon-operator/replaceable";

/// The annotation with the last revision whose objects did their work.
pub const GOOD: &str = "addon-operator/good";
/// The annotation with the note about an upgrade that was taken back.
pub const RETURNED: &str = "addon-operator/returned";

/// The revision that helm would upgrade from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The digests of the sections at the creation of the revision.
    pub asked: Option<Asked>,
    /// The digest of the held upgrade that a person confirmed after the creation of the revision.
    pub confirmed: Option<String>,
    /// The version of the revision's chart.
    pub version: Option<String>,
    /// The objects of the revision, without helm hooks.
    pub manifest: String,
    /// The templates of the revision's chart, each with its path in the chart.
    pub templates: Vec<Template>,
    /// The objects of the revision whose kinds are no longer served as it names them.
    pub unserved: Vec<Unserved>,
}

/// A file of a chart, as helm stores it with the release.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Template {
    /// The path of the file in the chart.
    pub name: String,
    /// The content of the file in base64.
    #[serde(default)]
    data: Option<String>,
}

/// A helm hook, as helm stores it with the release.
#[derive(Debug, Deserialize)]
struct Hook {
    #[serde(default)]
    manifest: String,
}

impl Template {
    /// Whether the template has the content `bytes`. Helm removes the byte order mark with which some editors begin a file.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        self.data.as_deref().unwrap_or_default() == STANDARD.encode(bytes)
    }
}

/// Reads the revision that helm would upgrade from: the deployed one, or the newest if none is deployed.
pub async fn base_of(cluster: &Cluster, newest: &Revision, apis: &Apis) -> Result<Base, RequestError> {
    let base = base_revision(cluster, newest).await?;
    let (_, content) = revisions::content(cluster, &base).await?;
    let manifest = text(&content, "manifest");
    let chart = fields(&content, "chart");
    let version = text(&fields(&chart, "metadata"), "version");
    let templates = chart.get("templates").map(|raw| serde_json::from_str(raw.get()));
    Ok(Base {
        asked: base.asked.clone(),
        confirmed: base.newest.confirmed.clone(),
        version: (!version.is_empty()).then_some(version),
        unserved: unserved::unserved(cluster, &manifest, apis).await,
        manifest,
        templates: templates.and_then(Result::ok).unwrap_or_default(),
    })
}

/// The manifests of a revision's helm hooks.
pub async fn hooks_of(cluster: &Cluster, revision: &Revision) -> Result<Vec<String>, RequestError> {
    let (_, content) = revisions::content(cluster, revision).await?;
    let hooks = content.get("hooks").map(|raw| serde_json::from_str(raw.get()));
    let hooks: Vec<Hook> = hooks.and_then(Result::ok).unwrap_or_default();
    Ok(hooks.into_iter().map(|hook| hook.manifest).collect())
}

/// Rewrites the record of the revision that helm would upgrade from, as [`unserved::amend`] does.
pub async fn amend_base(cluster: &Cluster, newest: &Revision, apis: &Apis) -> Result<Vec<Unserved>, RequestError> {
    let base = base_revision(cluster, newest).await?;
    unserved::amend(cluster, &base, &[], apis).await
}

async fn base_revision(cluster: &Cluster, newest: &Revision) -> Result<Revision, RequestError> {
    let deployed = match newest.newest.status {
        Status::Deployed => None,
        _ => deployed_revision(cluster, &newest.release).await?,
    };
    Ok(deployed.unwrap_or_else(|| newest.clone()))
}

async fn deployed_revision(cluster: &Cluster, release: &str) -> Result<Option<Revision>, RequestError> {
    let deployed = format!("owner=helm,name={release},status=deployed");
    let revisions = super::revisions(cluster, ListParams::default().labels(&deployed)).await?;
    Ok(revisions.into_iter().max_by_key(|revision| revision.newest.revision))
}

/// Notes on the revision that its upgrade is held, or removes the note.
pub async fn note_held(cluster: &Cluster, revision: &Revision, held: Option<&Held>) -> Result<(), RequestError> {
    let note = held.and_then(|held| serde_json::to_string(held).ok());
    annotate(cluster, revision, &holding(json!({HELD: note}))).await
}

/// Notes on the revision that its upgrade is held for a field that nobody can change.
pub async fn note_refused(cluster: &Cluster, revision: &Revision, refused: &Refused) -> Result<(), RequestError> {
    let note = serde_json::to_string(refused).ok();
    annotate(cluster, revision, &holding(json!({REFUSED: note}))).await
}

/// Notes that a person confirmed the held upgrade.
pub async fn allow(cluster: &Cluster, revision: &Revision, held: &Held) -> Result<(), RequestError> {
    annotate(cluster, revision, &json!({CONFIRMED: held.digest})).await
}

/// Notes that a person permits the next upgrade to replace these objects.
pub async fn allow_replacement(
    cluster: &Cluster,
    revision: &Revision,
    named: &[Replaceable],
) -> Result<(), RequestError> {
    let named: Vec<_> = named.iter().map(ToString::to_string).collect();
    annotate(cluster, revision, &json!({REPLACEABLE: named.join(",")})).await
}

/// Notes that the revision is up to date with these sections.
pub async fn note_asked(cluster: &Cluster, revision: &Revision, asked: &Asked) -> Result<(), RequestError> {
    revisions::patch_revision(
        cluster,
        &revision.secret,
        &json!({"labels": {SECTION: asked.section, GLOBAL: asked.global}}),
    )
    .await
    .map(drop)
}

/// Notes on the revision that its upgrade is taken back, or is to be tried again.
pub async fn note_returned(cluster: &Cluster, revision: &Revision, note: &Returned) -> Result<(), RequestError> {
    let note = serde_json::to_string(note).ok();
    annotate(cluster, revision, &json!({RETURNED: note})).await
}

async fn annotate(cluster: &Cluster, revision: &Revision, annotations: &Value) -> Result<(), RequestError> {
    revisions::patch_revision(cluster, &revision.secret, &json!({"annotations": annotations}))
        .await
        .map(drop)
}

/// These annotations about a held upgrade. Other annotations, which are about an earlier one, are removed.
pub(super) fn holding(mut annotations: Value) -> Value {
    for key in [HELD, CONFIRMED, REFUSED, REPLACEABLE] {
        if annotations.get(key).is_none() {
            annotations[key] = Value::Null;
        }
    }
    annotations
}

/// The objects in an annotation. A part of the text that names no object is ignored.
pub(super) fn replaceable(text: &str) -> Vec<Replaceable> {
    text.split(',')
        .filter_map(|text| Replaceable::parse(text).ok())
        .collect()
}
