//! The contents of a record that is made again: the objects that are noted on it, as the next older record describes them,
//! or by their names alone.
//!
//! An object that is not there, or that belongs to another release, is never named: helm would delete it.

use std::collections::BTreeMap;

use addon_core::release::Status;
use addon_core::release::{KEEP, POLICY};
use helm_yaml::yaml;
use jiff::Timestamp;
use kube::Api;
use kube::core::{DynamicObject, ObjectMeta};
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::{Attempt, RequestError};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::super::super::adoption::{is_kept, is_of};
use super::super::{Content, text};
use super::{Stored, contents};
use objects::key::{ObjectKey, flat, key_of};

/// The contents of a broken record.
pub(super) async fn remade(
    cluster: &Cluster,
    release: &str,
    revision: u32,
    status: Status,
    records: &[Stored],
    broken: &Stored,
    apis: &Apis,
) -> Result<Content, RequestError> {
    let older = older(release, revision, records);
    let known = older.as_ref().map(documents).unwrap_or_default();
    let mut manifest = String::new();
    for key in broken.noted() {
        let Some(live) = metadata_of(cluster, &key, apis).await? else {
            continue;
        };
        if !is_of(&live, release, cluster.namespace()) {
            continue;
        }
        let document = known.get(&identity(&key)).cloned();
        let document = document.unwrap_or_else(|| bare(&key, &live));
        manifest.extend(["---\n", &document.to_string(), "\n"]);
    }
    let content = remake(older, release, cluster.namespace(), revision, status, &manifest);
    content.map_err(|error| crate::revisions::records::damaged(cluster, &broken.record.tag.secret, error.to_string()))
}

pub(crate) async fn metadata_of(
    cluster: &Cluster,
    key: &ObjectKey,
    apis: &Apis,
) -> Result<Option<ObjectMeta>, RequestError> {
    let Some(kind) = apis.kind(&key.api_version, &key.kind) else {
        return Ok(None);
    };
    let namespace = kind
        .namespaced
        .then(|| key.namespace.as_deref().unwrap_or(cluster.namespace()));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &kind.resource),
        None => Api::all_with(cluster.client(), &kind.resource),
    };
    let attempt = Attempt {
        resource: kind.resource.plural.clone(),
        namespace: namespace.map(str::to_owned),
        ..cluster.attempt("get", "", &key.name)
    };
    let found = cluster.ask(attempt, api.get_metadata_opt(&key.name)).await?;
    Ok(found.map(|found| found.metadata))
}

/// The contents of the next older record that can be read.
fn older(release: &str, revision: u32, records: &[Stored]) -> Option<Content> {
    let is_older = |stored: &&Stored| {
        let payload = stored.record.payload.as_ref().ok();
        payload.is_some_and(|found| {
            found.release == release
                && found.revision < revision
                && stored.record.tag.revision(release) == Some(found.revision)
        })
    };
    let older = records.iter().filter(is_older);
    let older = older.max_by_key(|stored| stored.record.tag.revision(release))?;
    contents(&older.secret).ok()
}

/// The identity of an object in all versions of its kind.
fn identity(key: &ObjectKey) -> (String, String, Option<String>, String) {
    let group = key.api_version.split_once('/').map_or("", |(group, _)| group);
    (
        group.to_owned(),
        key.kind.clone(),
        key.namespace.clone(),
        key.name.clone(),
    )
}

fn documents(content: &Content) -> BTreeMap<(String, String, Option<String>, String), Value> {
    let documents = yaml::documents_v2(&text(content, "manifest")).unwrap_or_default();
    let objects = documents.into_iter().flat_map(flat);
    objects
        .filter_map(|object| Some((identity(&key_of(&object)?), object)))
        .collect()
}

/// An object of which only the name is known. Helm reads from the record whether it must stay.
fn bare(key: &ObjectKey, live: &ObjectMeta) -> Value {
    let mut metadata = json!({"name": key.name});
    if let Some(namespace) = &key.namespace {
        metadata["namespace"] = json!(namespace);
    }
    if is_kept(live) {
        metadata["annotations"] = json!({POLICY: KEEP});
    }
    json!({"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata})
}

/// The older contents with another revision, status and manifest. Without older contents, contents with only these.
fn remake(
    older: Option<Content>,
    release: &str,
    namespace: &str,
    revision: u32,
    status: Status,
    manifest: &str,
) -> serde_json::Result<Content> {
    let raw = |value: &Value| to_raw_value(value);
    let mut content = older.unwrap_or_default();
    let now = Timestamp::now().to_string();
    let mut info: BTreeMap<String, Box<RawValue>> = super::fields(&content, "info");
    if !info.contains_key("first_deployed") {
        info.insert("first_deployed".to_owned(), raw(&json!(now))?);
    }
    for (field, value) in [
        ("last_deployed", now.as_str()),
        ("deleted", ""),
        ("status", status.word()),
        (
            "description",
            "made again by addon-operator, because the record was damaged",
        ),
    ] {
        info.insert(field.to_owned(), raw(&json!(value))?);
    }
    if !content.contains_key("chart") {
        // The chart has no version, so that the version of the next chart does not count as a request of people.
        let chart = json!({"metadata": {"apiVersion": "v2", "name": release}});
        content.insert("chart".to_owned(), raw(&chart)?);
    }
    for (field, value) in [
        ("name", json!(release)),
        ("namespace", json!(namespace)),
        ("version", json!(revision)),
        ("manifest", json!(manifest)),
    ] {
        content.insert(field.to_owned(), raw(&value)?);
    }
    content.insert("info".to_owned(), to_raw_value(&info)?);
    Ok(content)
}
