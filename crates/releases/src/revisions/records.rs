//! All records of a release as the Secrets hold them, and the writes that repair them.
//!
//! It decides nothing, never touches an object of a release, and keeps the contents that it replaces or takes away.

pub mod made;
pub mod remade;

use std::collections::BTreeMap;
use std::io;

use addon_core::digest::Digest;
use addon_core::release::Status;
use addon_core::release::records::{Finding, Payload, Record, Remedy, Tag, place};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::RequestError;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::whose::Whose;
use super::{CONTENT, Content, OBJECTS, PAGE, decode, encode, fields, text};
use crate::revisions;
use objects::key::ObjectKey;

/// The type of the Secrets with records that were put aside.
const ASIDE: &str = "addon-operator/release-aside";
/// The annotation with the name and the labels that the record had.
const WAS: &str = "addon-operator/was";
/// The number of characters of a digest that tell two Secrets of one name apart.
const SHORT: usize = 8;

/// A record with its Secret.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The facts for the decision.
    pub record: Record,
    /// Whether the operator may change the release.
    pub is_ours: bool,
    secret: Secret,
}

impl Stored {
    fn read(secret: Secret) -> Option<Self> {
        let metadata = &secret.metadata;
        let tag = tag_of(metadata.name.as_deref()?, metadata.labels.as_ref());
        Some(Self {
            record: Record {
                payload: contents(&secret).and_then(|content| payload(&content)),
                is_noted: metadata
                    .annotations
                    .as_ref()
                    .is_some_and(|all| all.contains_key(OBJECTS)),
                tag,
            },
            is_ours: Whose::read(metadata) != Whose::Theirs,
            secret,
        })
    }

    /// The manifest of a record that can be read.
    pub fn manifest(&self) -> Option<String> {
        self.record.payload.as_ref().ok()?;
        contents(&self.secret).ok().map(|content| text(&content, "manifest"))
    }

    /// The objects that are noted on the record.
    pub fn noted(&self) -> Vec<ObjectKey> {
        let annotations = self.secret.metadata.annotations.as_ref();
        let noted = annotations.and_then(|all| all.get(OBJECTS));
        noted
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }
}

pub(super) fn tag_of(secret: &str, labels: Option<&BTreeMap<String, String>>) -> Tag {
    let label = |key: &str| labels.and_then(|all| all.get(key)).cloned();
    Tag {
        secret: secret.to_owned(),
        owner: label("owner"),
        name: label("name"),
        version: label("version"),
        status: label("status"),
    }
}

/// The contradiction between the contents of a record, its name and its labels; `None` if there is none.
pub(super) fn contradiction(secret: &Secret, content: &Content) -> Option<String> {
    let Payload {
        release,
        revision,
        status,
    } = match payload(content) {
        Ok(payload) => payload,
        Err(problem) => return Some(problem),
    };
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    if place(name).is_some_and(|place| place != (&release, revision)) {
        return Some(format!("it holds revision {revision} of release '{release}'"));
    }
    let label = tag_of(name, secret.metadata.labels.as_ref()).status.unwrap_or_default();
    (Status::parse(&label) != status).then(|| format!("its contents say {status}, and its label {label}"))
}

fn contents(secret: &Secret) -> Result<Content, String> {
    let bytes = secret.data.as_ref().and_then(|data| data.get(CONTENT));
    let bytes = bytes.ok_or_else(|| format!("it has no key '{CONTENT}'"))?;
    decode(&bytes.0).map_err(|error| error.to_string())
}

/// The facts in a record's contents. Helm panics if one of them is missing.
fn payload(content: &Content) -> Result<Payload, String> {
    let lacks = |field: &str| format!("it has no field '{field}'");
    let release = text(content, "name");
    if release.is_empty() {
        return Err(lacks("name"));
    }
    let revision = content.get("version").and_then(|raw| raw.get().parse().ok());
    let status = text(&fields(content, "info"), "status");
    if status.is_empty() {
        return Err(lacks("info.status"));
    }
    if !content.contains_key("chart") {
        return Err(lacks("chart"));
    }
    Ok(Payload {
        release,
        revision: revision.ok_or_else(|| lacks("version"))?,
        status: Status::parse(&status),
    })
}

/// Sets the status in a record's contents.
fn restate(content: &mut Content, status: Status) -> io::Result<()> {
    let mut info = fields(content, "info");
    info.insert("status".to_owned(), to_raw_value(status.word())?);
    content.insert("info".to_owned(), to_raw_value(&info)?);
    Ok(())
}

/// All records of a release: the Secrets that helm takes for its records, and the Secrets with a name that helm gives
/// to its records.
pub async fn records(cluster: &Cluster, release: &str) -> Result<Vec<Stored>, RequestError> {
    let (api, mut params, mut names) = (cluster.secrets(), ListParams::default().limit(PAGE), Vec::new());
    loop {
        let attempt = cluster.attempt("list", "secrets", "");
        let page = cluster.ask(attempt, api.list_metadata(&params)).await?;
        let found = page.items.into_iter().filter_map(|item| {
            let tag = tag_of(item.metadata.name.as_deref()?, item.metadata.labels.as_ref());
            let is_found = tag.owner.as_deref() == Some("helm") && tag.name.as_deref() == Some(release);
            let is_of = place(&tag.secret).map_or(is_found, |(of, _)| of == release);
            is_of.then_some(tag.secret)
        });
        names.extend(found);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    let mut records = Vec::new();
    for name in names {
        let attempt = cluster.attempt("get", "secrets", &name);
        let secret = cluster.ask(attempt, api.get_opt(&name)).await?;
        records.extend(secret.and_then(Stored::read));
    }
    records.sort_by_key(|stored| stored.record.tag.revision(release));
    Ok(records)
}

/// Carries out the remedy of a finding, unless the Secret was changed since it was read.
pub async fn mend(
    cluster: &Cluster,
    release: &str,
    records: &[Stored],
    finding: &Finding,
    apis: &Apis,
) -> Result<(), RequestError> {
    let Some(stored) = records.iter().find(|stored| stored.record.tag.secret == finding.secret) else {
        return Ok(());
    };
    let revision = finding.revision.unwrap_or_default();
    match finding.remedy {
        Remedy::Relabel(status) => {
            let labels = labels(release, revision, status);
            let version = &stored.secret.metadata.resource_version;
            let metadata = json!({"resourceVersion": version, "labels": labels});
            revisions::patch_revision(cluster, &finding.secret, &metadata)
                .await
                .map(drop)
        }
        Remedy::Restate(status) => {
            let content = contents(&stored.secret).and_then(|mut content| {
                restate(&mut content, status).map_err(|error| error.to_string())?;
                Ok(content)
            });
            let content = content.map_err(|problem| damaged(cluster, &finding.secret, problem))?;
            rewrite_record(cluster, stored, &content, labels(release, revision, status)).await
        }
        Remedy::Remake(status) => {
            keep_aside(cluster, &stored.secret).await?;
            let content = remade::remade(cluster, release, revision, status, records, stored, apis).await?;
            rewrite_record(cluster, stored, &content, labels(release, revision, status)).await
        }
        Remedy::PutAside => {
            keep_aside(cluster, &stored.secret).await?;
            drop_record(cluster, &stored.secret).await
        }
        Remedy::Wait => Ok(()),
    }
}

async fn rewrite_record(
    cluster: &Cluster,
    stored: &Stored,
    content: &Content,
    labels: Value,
) -> Result<(), RequestError> {
    let (mut secret, name) = (stored.secret.clone(), &stored.record.tag.secret);
    let encoded = encode(content).map_err(|error| damaged(cluster, name, error.to_string()))?;
    let data = secret.data.get_or_insert_default();
    data.insert(CONTENT.to_owned(), ByteString(encoded));
    let set = secret.metadata.labels.get_or_insert_default();
    set.extend(serde_json::from_value::<BTreeMap<String, String>>(labels).unwrap_or_default());
    let (attempt, api) = (cluster.attempt("update", "secrets", name), cluster.secrets());
    let params = PostParams::default();
    let replaced = api.replace(name, &params, &secret);
    cluster.ask(attempt, replaced).await.map(drop)
}

/// Keeps a copy under a name and with labels that helm does not look for. A copy with the same contents exists already
/// if the operator was killed before it deleted the record.
async fn keep_aside(cluster: &Cluster, secret: &Secret) -> Result<(), RequestError> {
    let of = &secret.metadata;
    let data = secret.data.iter().flatten();
    let digest = data.fold(Digest::builder(), |digest, (key, bytes)| {
        digest.part(key).part(Digest::of_bytes(&bytes.0).to_string())
    });
    let digest = digest.finish().to_string();
    let was = of.name.clone().unwrap_or_default();
    let name = format!("{was}.aside-{}", &digest[..digest.len().min(SHORT)]);
    let mut annotations = of.annotations.clone().unwrap_or_default();
    let note = json!({"name": was, "labels": of.labels, "type": secret.type_});
    annotations.insert(WAS.to_owned(), note.to_string());
    let aside = Secret {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        type_: Some(ASIDE.to_owned()),
        data: secret.data.clone(),
        ..Secret::default()
    };
    let (attempt, api) = (cluster.attempt("create", "secrets", &name), cluster.secrets());
    match cluster.ask(attempt, api.create(&PostParams::default(), &aside)).await {
        Err(error) if error.is_conflict() => Ok(()),
        created => created.map(drop),
    }
}

/// Deletes a record of which a copy is kept, unless the record has changed. If it was amended, its record of before
/// stays.
async fn drop_record(cluster: &Cluster, secret: &Secret) -> Result<(), RequestError> {
    let name = secret.metadata.name.clone().unwrap_or_default();
    let ownerless = json!({"ownerReferences": null});
    match revisions::patch_revision(cluster, &format!("{name}.before"), &ownerless).await {
        Err(error) if !error.is_not_found() => return Err(error),
        Ok(_) | Err(_) => {}
    }
    let params = DeleteParams::default().preconditions(Preconditions {
        resource_version: secret.metadata.resource_version.clone(),
        uid: secret.metadata.uid.clone(),
    });
    let (attempt, api) = (cluster.attempt("delete", "secrets", &name), cluster.secrets());
    match cluster.ask(attempt, api.delete(&name, &params)).await {
        Err(error) if error.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}

fn damaged(cluster: &Cluster, secret: &str, problem: String) -> RequestError {
    RequestError::Damaged {
        attempt: cluster.attempt("get", "secrets", secret),
        problem,
    }
}

/// Helm's labels of a record.
fn labels(release: &str, revision: u32, status: Status) -> Value {
    json!({"owner": "helm", "name": release, "version": revision.to_string(), "status": status.word()})
}
