//! The facts for the return to an earlier revision: the note about it, and the changes that cannot be taken back.
//!
//! Must never let helm roll back what holds data, or what other objects depend on.

use std::collections::BTreeMap;

use addon_core::release::Newest;
use addon_core::release::returned::Returned;
use helm_yaml::yaml;
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde::Deserialize;
use serde_json::Value;

use super::contents::{Content, fields, text};
use super::{Revision, content, revision};
use objects::key::flat;

/// The kinds whose objects hold data, or the kinds of other objects.
const LASTING: [&str; 2] = ["PersistentVolumeClaim", "CustomResourceDefinition"];
/// The folder of a chart's CRDs.
const CRDS: &str = "crds/";

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct File {
    name: String,
    #[serde(default)]
    data: Option<String>,
}

/// The note about a return on the newest revision of a release. A revision that helm has just made, or that it could not
/// finish, has no notes; then that of the revision before counts.
pub(super) fn note_of<'a>(revisions: impl Iterator<Item = &'a Newest>) -> Option<Returned> {
    let mut revisions: Vec<&Newest> = revisions.collect();
    revisions.sort_by_key(|newest| newest.revision);
    let marked = |newest: &&&Newest| newest.returned.is_some() || newest.inputs.is_some();
    let last = revisions.iter().rev().find(marked)?;
    last.returned.clone()
}

/// The reason for which a release cannot return from its newest revision to the revision `to`; `None`: it can.
pub async fn obstacle(cluster: &Cluster, newest: &Revision, to: u32) -> Result<Option<String>, RequestError> {
    let Some(earlier) = revision(cluster, &newest.release, to).await? else {
        return Ok(Some(format!("revision {to} is no longer recorded")));
    };
    let (_, new) = content(cluster, newest).await?;
    let (_, old) = content(cluster, &earlier).await?;
    let (before, now) = (lasting(&old), lasting(&new));
    let differs = |name: &&String| before.get(*name) != now.get(*name);
    if let Some(changed) = before.keys().chain(now.keys()).find(differs) {
        return Ok(Some(format!("the upgrade changed {changed}")));
    }
    Ok((crds(&old) != crds(&new)).then(|| "the upgrade changed CRDs".to_owned()))
}

/// The objects of a revision that cannot be rolled back, by kind and name.
fn lasting(content: &Content) -> BTreeMap<String, Value> {
    let documents = yaml::documents_v2(&text(content, "manifest")).unwrap_or_default();
    let objects = documents.into_iter().flat_map(flat);
    let lasting = objects.filter(|object| object["kind"].as_str().is_some_and(|kind| LASTING.contains(&kind)));
    let named = lasting.map(|object| {
        let word = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = match word("namespace") {
            namespace if namespace.is_empty() => word("name"),
            namespace => format!("{namespace}/{}", word("name")),
        };
        (format!("{kind} {name}"), object["spec"].clone())
    });
    named.collect()
}

/// The files with CRDs in the chart of a revision.
fn crds(content: &Content) -> Vec<File> {
    let chart = fields(content, "chart");
    let files = chart
        .get("files")
        .and_then(|raw| serde_json::from_str::<Option<Vec<File>>>(raw.get()).ok());
    let mut crds = files.flatten().unwrap_or_default();
    crds.retain(|file| file.name.starts_with(CRDS));
    crds.sort();
    crds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::upgrades::RETURNED;
    use super::super::{INPUTS, secret_name};
    use super::*;

    /// A revision as its Secret tells it, with a note about the return from the revision `note`.
    fn newest(revision: u32, inputs: Option<&str>, note: Option<u32>) -> Newest {
        let note =
            note.map(|revision| json!({"inputs": "a", "revision": revision, "to": 1, "sentence": ""}).to_string());
        let marks = [(INPUTS, inputs.map(str::to_owned)), (RETURNED, note)];
        let annotations: BTreeMap<_, _> = marks.into_iter().filter_map(|(key, text)| Some((key, text?))).collect();
        let metadata = json!({"name": secret_name("one", revision), "annotations": annotations});
        let secret = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        Revision::read(&serde_json::from_value(secret).unwrap()).unwrap().newest
    }

    #[test]
    fn a_note_counts_until_the_next_marked_revision() {
        let note = |revisions: &[Newest]| note_of(revisions.iter()).map(|note| note.revision);
        let noted = newest(2, Some("a"), Some(2));
        assert_eq!(note(&[newest(1, Some("b"), None), noted.clone()]), Some(2));
        assert_eq!(note(&[newest(3, None, None), noted.clone()]), Some(2));
        assert_eq!(note(&[noted, newest(3, Some("c"), None)]), None);
        assert_eq!(note(&[]), None);
    }
}
