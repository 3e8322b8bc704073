//! The records of before: helm's records as they were before the operator rewrote them, each in a Secret beside the
//! record. Must never change or delete a record of before: Kubernetes deletes it with its owner, the record.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ListParams, PostParams};
use kube::core::ObjectMeta;
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde::Serialize;

use super::unserved::Unserved;

/// The type of the Secrets with records of before.
const BEFORE: &str = "addon-operator/release-before";
/// The annotation with the objects that the record named by kinds that are no longer served.
const AMENDED: &str = "addon-operator/amended";
/// The number of objects in the annotation.
const TOLD: usize = 50;

/// A record that was rewritten because it named kinds that the API server does not serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Amendment {
    /// The revision of the record.
    pub revision: u32,
    /// The Secret with the record of before.
    pub before: String,
    /// The objects of these kinds, for people. Empty if an older version rewrote the record.
    pub objects: String,
}

/// Keeps the contents of a record in a Secret that is deleted with the record.
pub(super) async fn keep_before(cluster: &Cluster, record: &Secret, unserved: &[Unserved]) -> Result<(), RequestError> {
    let of = &record.metadata;
    let name = format!("{}.before", of.name.clone().unwrap_or_default());
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        name: of.name.clone().unwrap_or_default(),
        uid: of.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let before = Secret {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: Some(vec![owner]),
            annotations: Some(BTreeMap::from([(AMENDED.to_owned(), told(unserved))])),
            ..ObjectMeta::default()
        },
        type_: Some(BEFORE.to_owned()),
        data: record.data.clone(),
        ..Secret::default()
    };
    let (attempt, api) = (cluster.attempt("create", "secrets", &name), cluster.secrets());
    match cluster.ask(attempt, api.create(&PostParams::default(), &before)).await {
        // An earlier change by the operator has kept the contents that helm wrote.
        Err(error) if error.is_conflict() => Ok(()),
        created => created.map(drop),
    }
}

/// The rewritten records whose records of before are kept, by release, the oldest first.
pub async fn amendments(cluster: &Cluster) -> Result<BTreeMap<String, Vec<Amendment>>, RequestError> {
    let params = ListParams::default().fields(&format!("type={BEFORE}"));
    let (attempt, api) = (cluster.attempt("list", "secrets", ""), cluster.secrets());
    let kept = cluster.ask(attempt, api.list_metadata(&params)).await?;
    let mut amendments: BTreeMap<String, Vec<Amendment>> = BTreeMap::new();
    for metadata in kept.items.into_iter().map(|secret| secret.metadata) {
        let Some((before, (release, revision))) =
            metadata.name.and_then(|name| Some((name.clone(), record_of(&name)?)))
        else {
            continue;
        };
        let objects = metadata.annotations.and_then(|mut all| all.remove(AMENDED));
        amendments.entry(release).or_default().push(Amendment {
            revision,
            before,
            objects: objects.unwrap_or_default(),
        });
    }
    for of_release in amendments.values_mut() {
        of_release.sort_by_key(|amendment| amendment.revision);
    }
    Ok(amendments)
}

/// The objects in words, as many as fit.
fn told(unserved: &[Unserved]) -> String {
    let mut words: Vec<String> = unserved.iter().take(TOLD).map(ToString::to_string).collect();
    if unserved.len() > TOLD {
        words.push(format!("and {} more", unserved.len() - TOLD));
    }
    words.join(", ")
}

/// The release and the revision of a record of before, read from the name of its Secret.
fn record_of(name: &str) -> Option<(String, u32)> {
    let name = name.strip_prefix("sh.helm.release.v1.")?.strip_suffix(".before")?;
    let (release, revision) = name.rsplit_once(".v")?;
    Some((release.to_owned(), revision.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_before_is_found_by_its_name() {
        let rows = [
            ("sh.helm.release.v1.one.v3.before", Some(("one", 3))),
            ("sh.helm.release.v1.a.v1.b.v12.before", Some(("a.v1.b", 12))),
            ("sh.helm.release.v1.one.v3", None),
            ("sh.helm.release.v1.one.vx.before", None),
            ("other.before", None),
        ];
        for (name, expected) in rows {
            let expected = expected.map(|(release, revision)| (release.to_owned(), revision));
            assert_eq!(record_of(name), expected, "{name}");
        }
    }
}
