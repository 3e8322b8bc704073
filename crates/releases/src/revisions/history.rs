//! The history of a release: all of its records, newest first, as people ask for them.
//!
//! Must never change a record, and never tell a value that its key marks as a secret.

use addon_core::release::Status;
use helm_yaml::yaml;
use jiff::Timestamp;
use kube::api::ListParams;
use kube_access::Cluster;
use kube_access::error::RequestError;
use masking::secret::is_hidden_under;
use masking::secret::known::Known;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::contents::{Content, fields, text};
use super::{PAGE, Revision, content, revisions, unusable, with_hidden};

/// The largest number of records that are read. Helm keeps ten, unless a person asks it for more.
const MOST: usize = 50;
/// The descriptions of helm that repeat the status.
const PLAIN: [&str; 2] = ["Install complete", "Upgrade complete"];

/// A revision, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Past {
    /// The number, from 1.
    pub revision: u32,
    /// The time at which helm made it; without one in the record, that of helm's last write.
    pub updated: Timestamp,
    /// The status in helm's words.
    pub status: String,
    /// Name and version of the chart; empty if the record cannot be read.
    pub chart: String,
    /// The version of the application that the chart names; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    /// The digest of the ConfigMap's values for the module, if they are marked on the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The digest of all inputs, if the operator has found the revision to be up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// Why the revision failed, was taken back or is held, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The revisions of a release, newest first, and the number of older ones that were left out.
pub async fn history(cluster: &Cluster, release: &str) -> Result<(Vec<Past>, usize), RequestError> {
    let found = all(cluster, release).await?;
    let mut past = Vec::new();
    for revision in found.iter().take(MOST) {
        match content(cluster, revision).await {
            Ok((_, content)) => past.push(Past::read(revision, Ok(&content))),
            Err(RequestError::Damaged { problem, .. }) => past.push(Past::read(revision, Err(problem))),
            // Helm deletes the oldest record when it makes a new one.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok((past, found.len().saturating_sub(MOST)))
}

/// The contents of a revision.
#[derive(Debug)]
pub struct Contents {
    /// The documents of its manifest.
    pub documents: Vec<Value>,
    /// The secrets among its values, for masking.
    pub secrets: Known,
}

/// The contents of the newest revision; `None` if there is no release.
pub async fn newest_contents(cluster: &Cluster, release: &str) -> Result<Option<Contents>, RequestError> {
    let found = all(cluster, release).await?;
    match found.first() {
        Some(newest) => contents(cluster, newest).await.map(Some),
        None => Ok(None),
    }
}

/// The contents of a revision.
pub async fn contents(cluster: &Cluster, revision: &Revision) -> Result<Contents, RequestError> {
    let (_, content) = content(cluster, revision).await?;
    let documents = yaml::documents_v2(&text(&content, "manifest"));
    Ok(Contents {
        documents: documents.map_err(|error| unusable(cluster, revision, &error.to_string()))?,
        secrets: secrets(&content),
    })
}

/// All revisions of a release, newest first.
pub async fn all(cluster: &Cluster, release: &str) -> Result<Vec<Revision>, RequestError> {
    let labels = format!("owner=helm,name={release}");
    let listed = revisions(cluster, ListParams::default().labels(&labels).limit(PAGE)).await?;
    let mut found = with_hidden(cluster, release, listed).await?;
    found.sort_by_key(|revision| std::cmp::Reverse(revision.newest.revision));
    Ok(found)
}

impl Past {
    fn read(revision: &Revision, content: Result<&Content, String>) -> Self {
        let newest = &revision.newest;
        let mut past = Self {
            revision: newest.revision,
            updated: i64::try_from(revision.written)
                .ok()
                .and_then(|seconds| Timestamp::from_second(seconds).ok())
                .unwrap_or_default(),
            status: newest.status.word().to_owned(),
            chart: String::new(),
            app_version: String::new(),
            config: revision.config.clone(),
            inputs: newest.inputs.clone(),
            notes: Vec::new(),
        };
        match content {
            Ok(content) => past.take(content, newest.status),
            Err(problem) => past.notes.push(format!("its record is damaged: {problem}")),
        }
        past.notes.extend(notes(revision));
        past
    }

    /// Takes the facts that only the record's contents have.
    fn take(&mut self, content: &Content, status: Status) {
        let info = fields(content, "info");
        if let Ok(deployed) = text(&info, "last_deployed").parse() {
            self.updated = deployed;
        }
        let chart = fields(&fields(content, "chart"), "metadata");
        self.chart = format!("{}-{}", text(&chart, "name"), text(&chart, "version"));
        self.app_version = text(&chart, "appVersion");
        let description = text(&info, "description");
        let is_plain = PLAIN.contains(&description.as_str()) && status != Status::Failed;
        if !description.is_empty() && !is_plain {
            self.notes.push(secrets(content).masked(&description).into_owned());
        }
    }
}

/// The notes of the operator on a revision, in words.
fn notes(revision: &Revision) -> Vec<String> {
    let newest = &revision.newest;
    let held = newest.held.as_ref().map(|held| {
        let (taken, of) = (held.taken, held.of);
        format!("the upgrade from it is held: it would delete {taken} of {of} objects")
    });
    let refused = revision.refused.as_ref().map(|refused| {
        let (field, kind, name) = (&refused.field, &refused.kind, &refused.name);
        format!("the upgrade from it is held: nobody can change {field} of {kind}/{name}")
    });
    let returned = newest.returned.as_ref().map(|note| match &note.kept {
        None => format!("revision {} was taken back: {}", note.revision, note.sentence),
        Some(reason) => format!("revision {} was not taken back: {reason}", note.revision),
    });
    let unmanaged = newest
        .unmanaged
        .then(|| "people maintain its objects (maintenance mode)".to_owned());
    [held, refused, returned, unmanaged].into_iter().flatten().collect()
}

/// The secrets among the values of a record. An API server may quote one in its error, which helm records.
fn secrets(content: &Content) -> Known {
    let values = content.get("config").map(|raw| serde_json::from_str(raw.get()));
    let values = values.and_then(Result::ok).unwrap_or(Value::Null);
    let mut texts = Vec::new();
    collect(&values, false, &mut texts);
    texts.into_iter().collect()
}

fn collect<'a>(value: &'a Value, is_hidden: bool, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if is_hidden => texts.push(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => items.iter().for_each(|item| collect(item, is_hidden, texts)),
        Value::Object(map) => map
            .iter()
            .for_each(|(key, inner)| collect(inner, is_hidden || is_hidden_under(key, inner), texts)),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use kube::core::PartialObjectMeta;
    use serde_json::json;

    use super::*;

    fn past(status: &str, annotations: &Value, content: &Value) -> Past {
        let secret: PartialObjectMeta<Secret> = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": "sh.helm.release.v1.web.v3", "annotations": annotations,
                "labels": {"owner": "helm", "name": "web", "version": "3", "status": status, "modifiedAt": "60"},
            },
        }))
        .unwrap();
        let revision = Revision::read(&secret).unwrap();
        let content: Content = serde_json::from_value(content.clone()).unwrap();
        Past::read(&revision, Ok(&content))
    }

    #[test]
    fn the_reason_of_a_failure_is_told_without_secrets() {
        let content = json!({
            "info": {"last_deployed": "2026-01-02T03:04:05.678+01:00", "description": "Upgrade \"web\" failed: bad value hunter22"},
            "chart": {"metadata": {"name": "web", "version": "1.2.0", "appVersion": "7"}},
            "config": {"web": {"password": "hunter22", "size": "large"}},
        });
        let past = past("failed", &json!({}), &content);
        assert_eq!(past.notes, ["Upgrade \"web\" failed: bad value <masked>"]);
        assert_eq!(
            (past.revision, past.chart.as_str(), past.app_version.as_str()),
            (3, "web-1.2.0", "7")
        );
        assert_eq!(past.updated.to_string(), "2026-01-02T02:04:05.678Z");
    }

    #[test]
    fn a_plain_description_is_no_note_and_a_note_of_the_operator_is() {
        let content = |words: &str| json!({"info": {"description": words}, "chart": {"metadata": {}}});
        let complete = content("Upgrade complete");
        assert!(past("deployed", &json!({}), &complete).notes.is_empty());
        assert_eq!(
            past("deployed", &json!({}), &content("Rollback to 1")).notes,
            ["Rollback to 1"]
        );
        let note = json!({"inputs": "", "revision": 2, "to": 1, "sentence": "Deployment web: no pod is ready"});
        let returned = json!({"addon-operator/returned": note.to_string()});
        assert_eq!(
            past("deployed", &returned, &complete).notes,
            ["revision 2 was taken back: Deployment web: no pod is ready"]
        );
    }

    #[test]
    fn a_record_without_a_time_has_that_of_its_last_write() {
        let past = past("deployed", &json!({}), &json!({"info": {}, "chart": {}}));
        assert_eq!(past.updated.as_second(), 60);
    }
}
