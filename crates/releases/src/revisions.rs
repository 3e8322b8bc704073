//! Helm's releases, read with the operator's own client from the Secrets in which helm keeps them.
//!
//! Most questions are answered from labels; the large content is read only when it is needed. It writes only the
//! operator's marks on a revision, the status of a revision that a killed helm left unfinished, and the record of a
//! revision that names kinds that are no longer served, or too few objects for its removal. Never deletes a revision.

pub mod before;
pub mod contents;
pub mod history;
pub mod hook_run;
pub mod marks;
pub mod missed;
pub mod records;
pub mod returning;
pub mod unserved;
pub mod upgrades;
pub mod vanishing;
pub mod vigil;
pub mod whose;

use std::collections::BTreeMap;

use addon_core::digest::Digest;
use addon_core::release::brake::Asked;
use addon_core::release::records::{Tag, is_doubtful, place};
use addon_core::release::refusal::Refused;
use addon_core::release::{ApplyMethod, Newest, Status};
use kube_access::Cluster;
use kube_access::error::RequestError;
use names::replaceable::Replaceable;

use self::contents::{Content, decode, encode, fields, note_failure, text};
use self::whose::Whose;
use futures::future::try_join;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use upgrades::{CONFIRMED, GLOBAL, GOOD, HELD, REFUSED, REPLACEABLE, RETURNED, SECTION, replaceable};

/// The label with the rendering's checksum, by its name in the original: each program recognises the releases of the other.
pub const CHECKSUM: &str = "moduleChecksum";
/// The key in the values of a release under which old versions of the original kept the checksum.
const OLD_CHECKSUM: &str = "_addonOperatorModuleChecksum";
/// Another label that the original writes on every release.
pub const MAINTENANCE: &str = "maintenance.deckhouse.io/no-resource-reconciliation";
/// The label with the digest of the ConfigMap's values for the module. Helm writes it together with the revision, so no
/// revision lacks it.
pub const CONFIG: &str = "addon-operator/config";
/// The label with the start time of the helm child that made the revision. It exists from helm's first write on.
const BEGUN: &str = "addon-operator/begun";
/// The annotation with the digest of all inputs of the revision. Helm copies labels to the next revision, and never annotations.
pub const INPUTS: &str = "addon-operator/inputs";
/// The annotation with the objects of the revision.
pub const OBJECTS: &str = "addon-operator/objects";
/// The annotation with warnings about the objects.
const REMARKS: &str = "addon-operator/remarks";

pub(super) const SECRET_TYPE: &str = "helm.sh/release.v1";
const CONTENT: &str = "release";
const PAGE: u32 = 500;

/// A revision of a release, from its Secret's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The release's name.
    pub release: String,
    /// The facts that decisions need.
    pub newest: Newest,
    /// The objects of the release, if they are marked on this revision.
    pub objects: Option<String>,
    /// The digests of the ConfigMap's sections when the revision was made, if they are marked on it.
    pub asked: Option<Asked>,
    /// The digest of the ConfigMap's values for the release's module.
    pub config: Option<String>,
    /// The note about an upgrade from this revision. The upgrade is held because of a field that nobody can change.
    pub refused: Option<Refused>,
    /// The objects that the next upgrade may replace, because a person permits it.
    pub allowed: Vec<Replaceable>,
    /// Warnings about webhooks of the chart, as `why` prints them.
    pub remarks: Vec<String>,
    /// The time of helm's last write, by the clock of helm's machine, in seconds since 1970. For people only, because
    /// clocks differ.
    pub written: u64,
    /// The resource version, which changes with every write.
    pub version: String,
    /// Whether the operator has not worked yet on a release that a person has handed over.
    pub is_handed_over: bool,
    /// Whether the names or labels of the release's records show damage.
    pub is_doubtful: bool,
    tag: Tag,
    secret: String,
}

/// All releases of the namespace by name: the newest revision of each, with the objects of the newest marked one.
pub async fn list_releases(cluster: &Cluster) -> Result<Vec<Revision>, RequestError> {
    let mut revisions = revisions(cluster, ListParams::default().labels("owner=helm").limit(PAGE)).await?;
    revisions.sort_by_key(|revision| revision.newest.revision);
    let mut newest: BTreeMap<String, Revision> = BTreeMap::new();
    for mut revision in revisions {
        let older = newest.remove(&revision.release);
        revision.objects = revision.objects.or(older.and_then(|older| older.objects));
        newest.insert(revision.release.clone(), revision);
    }
    Ok(newest.into_values().collect())
}

/// The newest revision of one release.
pub async fn newest_revision(cluster: &Cluster, release: &str) -> Result<Option<Revision>, RequestError> {
    let history = ListParams::default().labels(&format!("owner=helm,name={release}"));
    // The list is not split into pages, which the API server's cache cannot serve. There are at most ten revisions.
    let cached = revisions(cluster, history.clone().match_any()).await?;
    let revisions = match Box::pin(confirm(cluster, release, cached)).await? {
        Some(revisions) => revisions,
        None => with_hidden(cluster, release, revisions(cluster, history.limit(PAGE)).await?).await?,
    };
    let tags: Vec<Tag> = revisions.iter().map(|revision| revision.tag.clone()).collect();
    let returned = returning::note_of(revisions.iter().map(|revision| &revision.newest));
    let mut newest = revisions.into_iter().max_by_key(|revision| revision.newest.revision);
    if let Some(newest) = &mut newest {
        newest.is_doubtful = is_doubtful(release, &tags);
        newest.newest.returned = returned;
    }
    if let Some(revision) = newest.as_mut().filter(|revision| !revision.newest.ours)
        && let Some(checksum) = old_checksum(cluster, revision).await?
    {
        revision.newest.ours = true;
        revision.newest.checksum = Digest::try_from(checksum).ok().map(|checksum| checksum.to_string());
    }
    Ok(newest)
}

/// Combines a history from the API server's cache with the present newest revision; `None` if the cache is
/// outdated. A consistent list would wait until the cache has caught up with all writes to the cluster, which takes
/// longer than all other requests for a release. So only the newest revision and its possible successor are read
/// directly from the store.
async fn confirm(
    cluster: &Cluster,
    release: &str,
    mut cached: Vec<Revision>,
) -> Result<Option<Vec<Revision>>, RequestError> {
    // A copy under another name has the same number as its original. The original must come last.
    cached.sort_by_key(|revision| (revision.newest.revision, place(&revision.secret).is_some()));
    let last = cached.pop().map_or(0, |revision| revision.newest.revision);
    let following = revision(cluster, release, last.saturating_add(1));
    if last == 0 {
        return Ok(following.await?.is_none().then_some(cached));
    }
    match try_join(revision(cluster, release, last), following).await? {
        (Some(newest), None) => {
            cached.push(newest);
            Ok(Some(cached))
        }
        (None, _) | (_, Some(_)) => Ok(None),
    }
}

/// Adds newer revisions that lack the labels by which helm finds them.
async fn with_hidden(
    cluster: &Cluster,
    release: &str,
    mut found: Vec<Revision>,
) -> Result<Vec<Revision>, RequestError> {
    let mut last = found.iter().map(|found| found.newest.revision).max().unwrap_or(0);
    while let Some(hidden) = revision(cluster, release, last.saturating_add(1)).await? {
        last = hidden.newest.revision;
        found.push(hidden);
    }
    Ok(found)
}

async fn revision(cluster: &Cluster, release: &str, number: u32) -> Result<Option<Revision>, RequestError> {
    let (name, api) = (secret_name(release, number), cluster.secrets());
    let secret = cluster
        .ask(cluster.attempt("get", "secrets", &name), api.get_metadata_opt(&name))
        .await?;
    Ok(secret.as_ref().and_then(Revision::read))
}

/// The checksum in the values of a release from a version of the original without labels. A value that cannot be
/// parsed is not the original's.
async fn old_checksum(cluster: &Cluster, revision: &Revision) -> Result<Option<String>, RequestError> {
    match content(cluster, revision).await {
        Ok((_, content)) => {
            let values = fields(&content, "config");
            Ok(values.contains_key(OLD_CHECKSUM).then(|| text(&values, OLD_CHECKSUM)))
        }
        Err(RequestError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The revision of every deployed release, and the time of helm's write in seconds since 1970.
pub async fn deployed_releases(cluster: &Cluster) -> Result<BTreeMap<String, (u32, u64)>, RequestError> {
    let revisions = deployed_revisions(cluster).await?;
    Ok(revisions
        .into_iter()
        .map(|revision| (revision.release, (revision.newest.revision, revision.written)))
        .collect())
}

/// The deployed revision of every release.
pub async fn deployed_revisions(cluster: &Cluster) -> Result<Vec<Revision>, RequestError> {
    let deployed = ListParams::default().labels("owner=helm,status=deployed").limit(PAGE);
    revisions(cluster, deployed).await
}

/// The revisions of a release that helm keeps, in no order. The list may be a moment old.
pub async fn history(cluster: &Cluster, release: &str) -> Result<Vec<Revision>, RequestError> {
    let kept = ListParams::default().labels(&format!("owner=helm,name={release}"));
    revisions(cluster, kept.match_any()).await
}

async fn revisions(cluster: &Cluster, wanted: ListParams) -> Result<Vec<Revision>, RequestError> {
    let api = cluster.secrets();
    // Helm selects its Secrets by labels only, so their type does not count.
    let mut params = wanted;
    let mut revisions = Vec::new();
    loop {
        let page = cluster
            .ask(cluster.attempt("list", "secrets", ""), api.list_metadata(&params))
            .await?;
        revisions.extend(page.items.iter().filter_map(Revision::read));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(revisions),
        }
    }
}

/// The manifest of a revision, without helm hooks.
pub async fn manifest(cluster: &Cluster, revision: &Revision) -> Result<String, RequestError> {
    let (_, content) = content(cluster, revision).await?;
    Ok(text(&content, "manifest"))
}

/// How the objects of a revision were applied: by the client or by the server.
pub async fn apply_method(cluster: &Cluster, revision: &Revision) -> Result<ApplyMethod, RequestError> {
    let (_, content) = content(cluster, revision).await?;
    Ok(ApplyMethod::parse(&text(&content, "apply_method")))
}

/// Patches the metadata of a revision's Secret. Returns the status that helm wrote there.
async fn patch_revision(cluster: &Cluster, name: &str, metadata: &Value) -> Result<Status, RequestError> {
    let (patch, api) = (json!({"metadata": metadata}), cluster.secrets());
    let (params, merge) = (PatchParams::default(), Patch::Merge(&patch));
    let attempt = cluster.attempt("patch", "secrets", name);
    let metadata = match cluster.ask(attempt, api.patch_metadata(name, &params, &merge)).await {
        // Helm itself does not need the verb `patch`.
        Err(error) if error.is_forbidden() => {
            let replaced: Secret = Box::pin(cluster.replace_instead(&api, error, &patch)).await?;
            replaced.metadata
        }
        patched => patched?.metadata,
    };
    Ok(Status::parse(
        metadata
            .labels
            .unwrap_or_default()
            .get("status")
            .map_or("", String::as_str),
    ))
}

/// Marks an unfinished revision as failed. Helm then upgrades over it, and nothing is uninstalled.
pub async fn fail_revision(cluster: &Cluster, revision: &Revision) -> Result<(), RequestError> {
    let (mut secret, mut content) = content(cluster, revision).await?;
    let left = revision.newest.status;
    let noted = note_failure(&mut content, left);
    noted.map_err(|error| unusable(cluster, revision, &error.to_string()))?;
    let labels = secret.metadata.labels.get_or_insert_default();
    labels.insert("status".to_owned(), Status::Failed.word().to_owned());
    store(cluster, revision, secret, &content).await
}

/// Stores the contents of a revision in its Secret, unless the Secret was changed since it was read.
async fn store(
    cluster: &Cluster,
    revision: &Revision,
    mut secret: Secret,
    content: &Content,
) -> Result<(), RequestError> {
    let encoded = encode(content).map_err(|error| unusable(cluster, revision, &error.to_string()))?;
    let data = secret.data.get_or_insert_default();
    data.insert(CONTENT.to_owned(), ByteString(encoded));
    let attempt = cluster.attempt("update", "secrets", &revision.secret);
    let (api, params) = (cluster.secrets(), PostParams::default());
    let replaced = api.replace(&revision.secret, &params, &secret);
    cluster.ask(attempt, replaced).await.map(drop)
}

async fn content(cluster: &Cluster, revision: &Revision) -> Result<(Secret, Content), RequestError> {
    let api = cluster.secrets();
    let secret = cluster
        .ask(
            cluster.attempt("get", "secrets", &revision.secret),
            api.get(&revision.secret),
        )
        .await?;
    let bytes = secret
        .data
        .as_ref()
        .and_then(|data| data.get(CONTENT))
        .map_or(&[][..], |bytes| &bytes.0);
    let content = decode(bytes).map_err(|error| unusable(cluster, revision, &error.to_string()))?;
    match records::contradiction(&secret, &content) {
        Some(problem) => Err(unusable(cluster, revision, &problem)),
        None => Ok((secret, content)),
    }
}

fn unusable(cluster: &Cluster, revision: &Revision, problem: &str) -> RequestError {
    let attempt = cluster.attempt("get", "secrets", &revision.secret);
    RequestError::Damaged {
        attempt,
        problem: problem.to_owned(),
    }
}

impl Revision {
    /// Whether a note says that an upgrade is held, or that a person permits it.
    pub fn is_held(&self) -> bool {
        let Newest { held, confirmed, .. } = &self.newest;
        held.is_some() || confirmed.is_some() || self.refused.is_some() || !self.allowed.is_empty()
    }

    /// The name and the labels of the Secret with the revision.
    pub(super) fn tag(&self) -> &Tag {
        &self.tag
    }

    /// The name of the Secret with the revision.
    pub(super) fn secret(&self) -> &str {
        &self.secret
    }

    pub(super) fn read(secret: &PartialObjectMeta<Secret>) -> Option<Self> {
        let metadata = &secret.metadata;
        let label = |key: &str| metadata.labels.as_ref()?.get(key).map(String::as_str);
        let secret = metadata.name.clone()?;
        // Helm never changes the name; labels may have been edited.
        let (release, number) = match place(&secret) {
            Some((release, number)) => (release.to_owned(), number),
            None => (label("name")?.to_owned(), label("version")?.parse().ok()?),
        };
        let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        let whose = Whose::read(metadata);
        let created = metadata
            .creation_timestamp
            .as_ref()
            .map_or(0, |time| time.0.as_second());
        let seconds = |key| label(key).and_then(|text| text.parse().ok()).unwrap_or(0);
        let written = seconds("modifiedAt")
            .max(seconds("createdAt"))
            .max(u64::try_from(created).unwrap_or(0));
        let newest = Newest {
            revision: number,
            status: Status::parse(label("status").unwrap_or_default()),
            ours: whose != Whose::Theirs,
            unmanaged: label(MAINTENANCE) == Some("true"),
            inputs: annotation(INPUTS),
            checksum: label(CHECKSUM).map(str::to_owned),
            begun: label(BEGUN).and_then(|text| text.parse().ok()),
            held: annotation(HELD).and_then(|text| serde_json::from_str(&text).ok()),
            confirmed: annotation(CONFIRMED),
            good: annotation(GOOD).and_then(|text| text.parse().ok()),
            returned: annotation(RETURNED).and_then(|text| serde_json::from_str(&text).ok()),
        };
        let (objects, config) = (annotation(OBJECTS), label(CONFIG).map(str::to_owned));
        let asked = label(SECTION).zip(label(GLOBAL)).map(|(section, global)| Asked {
            section: section.to_owned(),
            global: global.to_owned(),
        });
        Some(Self {
            release,
            newest,
            objects,
            asked,
            config,
            refused: annotation(REFUSED).and_then(|text| serde_json::from_str(&text).ok()),
            allowed: annotation(REPLACEABLE).map_or_else(Vec::new, |text| replaceable(&text)),
            remarks: annotation(REMARKS).map_or_else(Vec::new, |text| serde_json::from_str(&text).unwrap_or_default()),
            written,
            version: metadata.resource_version.clone().unwrap_or_default(),
            is_handed_over: whose == Whose::HandedOver,
            is_doubtful: false,
            tag: records::tag_of(&secret, metadata.labels.as_ref()),
            secret,
        })
    }
}

/// The name of the Secret with a revision.
fn secret_name(release: &str, revision: u32) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

#[cfg(test)]
mod tests;
