//! Helm's releases, read from the Secrets in which helm keeps them, with our own client.
//!
//! Labels answer most questions, so the large content is fetched only when it is needed. Writes two things only: our own
//! marks on a revision, and the state of a revision that a killed helm left unfinished. Never deletes a revision.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};

use addon_core::operator::event::ReleaseSummary;
use addon_core::release::{Newest, Status};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

use super::Cluster;
use super::error::RequestError;

/// The label that says that a release is ours.
pub const OURS: (&str, &str) = ("app.kubernetes.io/managed-by", "addon-operator");
/// The checksum of the rendering, under the original's name, so that it recognises our releases as we do its.
pub const CHECKSUM: &str = "moduleChecksum";
/// The original's other label on every release.
pub const MAINTENANCE: &str = "maintenance.deckhouse.io/no-resource-reconciliation";
/// The digest of everything that the revision was made of.
pub const INPUTS: &str = "addon-operator/inputs";
/// The revision that our other marks belong to: helm copies labels from revision to revision, also when a person
/// upgrades or rolls back by hand.
pub const MARKED: &str = "addon-operator/revision";
/// The objects of the revision, an annotation.
pub const OBJECTS: &str = "addon-operator/objects";

const SECRET_TYPE: &str = "helm.sh/release.v1";
const CONTENT: &str = "release";
const PAGE: u32 = 500;
/// Far above what fits into a Secret, so that a crafted one cannot fill our memory.
const CONTENT_LIMIT: u64 = 64 << 20;

/// One revision of a release, as far as its Secret's metadata tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The release's name.
    pub release: String,
    /// What decisions need.
    pub newest: Newest,
    /// The objects it consists of, if this very revision was marked with them.
    pub objects: Option<String>,
    secret: String,
}

/// What we write on the Secret of a deployed revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// The digest of the inputs.
    pub inputs: String,
    /// The checksum of the rendering.
    pub checksum: String,
    /// The objects, as [`super::drift`] writes them; `None` if they are too many for a mark.
    pub objects: Option<String>,
}

/// Our labels for a release Secret. The revision they belong to is among them.
pub fn labels(revision: u32, inputs: &str, checksum: Option<&str>) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<_, _> = [
        (OURS.0, OURS.1),
        (MAINTENANCE, "false"),
        (INPUTS, inputs),
        (MARKED, &revision.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    if let Some(checksum) = checksum {
        labels.insert(CHECKSUM.to_owned(), checksum.to_owned());
    }
    labels
}

impl Cluster {
    /// All releases of the namespace, by name.
    pub async fn list_releases(&self) -> Result<Vec<ReleaseSummary>, RequestError> {
        let mut newest: BTreeMap<String, Revision> = BTreeMap::new();
        for revision in self.revisions("owner=helm").await? {
            match newest.get(&revision.release) {
                Some(known) if known.newest.revision >= revision.newest.revision => {}
                _ => {
                    newest.insert(revision.release.clone(), revision);
                }
            }
        }
        Ok(newest
            .into_iter()
            .map(|(name, revision)| ReleaseSummary {
                name,
                ours: revision.newest.ours,
            })
            .collect())
    }

    /// The newest revision of one release.
    pub async fn newest_revision(&self, release: &str) -> Result<Option<Revision>, RequestError> {
        let revisions = self.revisions(&format!("owner=helm,name={release}")).await?;
        Ok(revisions.into_iter().max_by_key(|revision| revision.newest.revision))
    }

    async fn revisions(&self, selector: &str) -> Result<Vec<Revision>, RequestError> {
        let api = self.secrets();
        let mut params = ListParams::default()
            .labels(selector)
            .fields(&format!("type={SECRET_TYPE}"))
            .limit(PAGE);
        let mut revisions = Vec::new();
        loop {
            let page = self
                .ask(self.attempt("list", "secrets", ""), api.list_metadata(&params))
                .await?;
            revisions.extend(page.items.iter().filter_map(Revision::read));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(revisions),
            }
        }
    }

    /// The manifest of a revision, without helm hooks.
    pub async fn manifest(&self, revision: &Revision) -> Result<String, RequestError> {
        let (_, content) = self.content(revision).await?;
        Ok(content
            .get("manifest")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned())
    }

    /// Writes our marks on a deployed revision; helm makes no new one for that.
    pub async fn mark(&self, release: &str, revision: u32, marks: &Marks) -> Result<(), RequestError> {
        let Marks {
            inputs,
            checksum,
            objects,
        } = marks;
        let labels = labels(revision, inputs, Some(checksum));
        let patch = Patch::Merge(json!({"metadata": {"labels": labels, "annotations": {OBJECTS: objects}}}));
        let (name, api) = (format!("sh.helm.release.v1.{release}.v{revision}"), self.secrets());
        let attempt = self.attempt("patch", "secrets", &name);
        self.ask(attempt, api.patch_metadata(&name, &PatchParams::default(), &patch))
            .await?;
        Ok(())
    }

    /// Tells helm that an unfinished revision failed: it then upgrades over it, and nothing is uninstalled.
    pub async fn fail_revision(&self, revision: &Revision) -> Result<(), RequestError> {
        let (mut secret, mut content) = self.content(revision).await?;
        if let Some(info) = content.get_mut("info").and_then(Value::as_object_mut) {
            let left = revision.newest.status;
            info.insert("status".to_owned(), json!(Status::Failed.word()));
            info.insert(
                "description".to_owned(),
                json!(format!("helm was ended while this was {left}")),
            );
        }
        let encoded = encode(&content).map_err(|error| self.unusable(revision, &error.to_string()))?;
        secret
            .data
            .get_or_insert_default()
            .insert(CONTENT.to_owned(), ByteString(encoded));
        let labels = secret.metadata.labels.get_or_insert_default();
        labels.insert("status".to_owned(), Status::Failed.word().to_owned());
        let attempt = self.attempt("update", "secrets", &revision.secret);
        let api = self.secrets();
        self.ask(attempt, api.replace(&revision.secret, &PostParams::default(), &secret))
            .await?;
        Ok(())
    }

    async fn content(&self, revision: &Revision) -> Result<(Secret, Value), RequestError> {
        let api = self.secrets();
        let secret = self
            .ask(
                self.attempt("get", "secrets", &revision.secret),
                api.get(&revision.secret),
            )
            .await?;
        let bytes = secret
            .data
            .as_ref()
            .and_then(|data| data.get(CONTENT))
            .map_or(&[][..], |bytes| &bytes.0);
        let content = decode(bytes).map_err(|error| self.unusable(revision, &error.to_string()))?;
        Ok((secret, content))
    }

    fn unusable(&self, revision: &Revision, problem: &str) -> RequestError {
        let attempt = self.attempt("get", "secrets", &revision.secret);
        RequestError::Unusable {
            attempt,
            problem: format!("it holds no release that we can read: {problem}"),
        }
    }
}

impl Revision {
    fn read(secret: &PartialObjectMeta<Secret>) -> Option<Self> {
        let metadata = &secret.metadata;
        let labels = metadata.labels.as_ref()?;
        let label = |key: &str| labels.get(key).map(String::as_str);
        let release = label("name")?.to_owned();
        let number: u32 = label("version")?.parse().ok()?;
        let marked = label(MARKED).map(|revision| revision.parse() == Ok(number));
        let ours = label(OURS.0) == Some(OURS.1) || labels.contains_key(CHECKSUM) || labels.contains_key(MAINTENANCE);
        let created = metadata
            .creation_timestamp
            .as_ref()
            .map_or(0, |time| time.0.as_second());
        let seconds = |key| label(key).and_then(|text| text.parse().ok()).unwrap_or(0);
        let written = seconds("modifiedAt")
            .max(seconds("createdAt"))
            .max(u64::try_from(created).unwrap_or(0));
        let trusted = |value: Option<&str>| value.map(str::to_owned);
        let newest = Newest {
            revision: number,
            status: Status::parse(label("status").unwrap_or_default()),
            ours,
            inputs: trusted(label(INPUTS).filter(|_| marked == Some(true))),
            // The original knows no mark of the revision; its checksum is as good as its own rules made it.
            checksum: trusted(label(CHECKSUM).filter(|_| marked != Some(false))),
            written,
        };
        let annotation = metadata.annotations.as_ref().and_then(|all| all.get(OBJECTS));
        let objects = annotation.filter(|_| marked == Some(true)).cloned();
        Some(Self {
            release,
            newest,
            objects,
            secret: metadata.name.clone()?,
        })
    }
}

/// Reads what helm wrote: base64 of gzip of JSON.
fn decode(bytes: &[u8]) -> io::Result<Value> {
    let packed = STANDARD.decode(bytes).map_err(io::Error::other)?;
    let mut text = Vec::new();
    if packed.starts_with(&[0x1f, 0x8b]) {
        GzDecoder::new(packed.as_slice())
            .take(CONTENT_LIMIT)
            .read_to_end(&mut text)?;
    } else {
        text = packed;
    }
    Ok(serde_json::from_slice(&text)?)
}

fn encode(content: &Value) -> io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&serde_json::to_vec(content)?)?;
    Ok(STANDARD.encode(gzip.finish()?).into_bytes())
}

/// How many bytes these values would take in a release Secret, where they stand beside everything else.
pub fn packed_size(values: &[u8]) -> io::Result<usize> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(values)?;
    Ok(gzip.finish()?.len().div_ceil(3) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(labels: &[(&str, &str)]) -> PartialObjectMeta<Secret> {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        serde_json::from_value(json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": {
                "name": "sh.helm.release.v1.one.v2",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": labels,
                "annotations": {OBJECTS: "[]"},
            }
        }))
        .unwrap()
    }

    const HELM: [(&str, &str); 4] = [
        ("owner", "helm"),
        ("name", "one"),
        ("version", "2"),
        ("status", "deployed"),
    ];

    fn read(more: &[(&str, &str)]) -> Revision {
        let labels = [&HELM[..], more].concat();
        Revision::read(&secret(&labels)).unwrap()
    }

    #[test]
    fn a_release_is_ours_by_our_label_or_by_those_of_the_original() {
        assert!(!read(&[]).newest.ours);
        assert!(!read(&[("app.kubernetes.io/managed-by", "Helm")]).newest.ours);
        for label in [OURS, (CHECKSUM, "x"), (MAINTENANCE, "false")] {
            assert!(read(&[label]).newest.ours, "{label:?}");
        }
    }

    #[test]
    fn marks_of_another_revision_do_not_count() {
        let marked = read(&[(INPUTS, "i"), (CHECKSUM, "c"), (MARKED, "2")]);
        assert_eq!(marked.newest.inputs.as_deref(), Some("i"));
        assert_eq!(marked.newest.checksum.as_deref(), Some("c"));
        assert_eq!(marked.objects.as_deref(), Some("[]"));

        let copied = read(&[(INPUTS, "i"), (CHECKSUM, "c"), (MARKED, "1")]);
        assert_eq!(
            (copied.newest.inputs, copied.newest.checksum, copied.objects),
            (None, None, None)
        );

        let originals = read(&[(CHECKSUM, "c")]);
        assert_eq!((originals.newest.inputs, originals.objects), (None, None));
        assert_eq!(originals.newest.checksum.as_deref(), Some("c"));
    }

    #[test]
    fn a_revision_is_as_old_as_helms_last_write() {
        let created = 1_767_225_600;
        assert_eq!(read(&[]).newest.written, created);
        assert_eq!(read(&[("modifiedAt", "1767225700")]).newest.written, created + 100);
    }

    #[test]
    fn a_release_survives_being_packed() {
        let release = json!({"name": "one", "info": {"status": "pending-upgrade"}, "manifest": "---\na: ü\n"});
        assert_eq!(decode(&encode(&release).unwrap()).unwrap(), release);
        assert!(decode(b"no base64!").is_err());
        assert!(decode(STANDARD.encode("no json").as_bytes()).is_err());
        assert!(decode(b"").is_err());
    }
}
