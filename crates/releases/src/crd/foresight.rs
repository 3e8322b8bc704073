//! Foresight of CRDs: what ensuring one would change. Must never write, and rewrites no objects.

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use kube::api::PostParams;
use kube_access::Cluster;
use kube_access::substitutes::lay;
use serde_json::Value;

use super::difference::difference;
use super::{CrdError, about_crd, labelled, spoken, stored_versions, try_to_change};
use crate::sync::foresight::Act;

/// A kind that a CRD brings, in one of its versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Brought {
    /// Group and version, as objects name them.
    pub api_version: String,
    pub kind: String,
}

impl Brought {
    /// The kind of a CRD in all versions that it serves; none for any other object.
    pub fn by(object: &Value) -> Vec<Self> {
        if object["kind"] != "CustomResourceDefinition" {
            return Vec::new();
        }
        let spec = &object["spec"];
        let (Some(group), Some(kind)) = (spec["group"].as_str(), spec["names"]["kind"].as_str()) else {
            return Vec::new();
        };
        let versions = spec["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] == true);
        let named = served.filter_map(|version| version["name"].as_str());
        let brought = named.map(|version| Self {
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
        });
        brought.collect()
    }
}

/// The change that `ensure_crd` would make, or the refusal that it would get; none if the CRD stays as it is.
pub async fn foresee_crd(
    cluster: &Cluster,
    name: &str,
    manifest: &Value,
    labels: &BTreeMap<String, String>,
) -> Result<Option<Act>, Failure> {
    match changed(cluster, &labelled(manifest, labels), name)
        .await
        .map_err(Failure::from)
    {
        Err(failure) if matches!(failure.class, Class::Refused | Class::Invalid) => Ok(Some(Act::Refused(failure))),
        foreseen => foreseen,
    }
}

async fn changed(cluster: &Cluster, wanted: &Value, name: &str) -> Result<Option<Act>, CrdError> {
    let api = cluster.crds();
    let Some(found) = cluster.find(&api, about_crd(cluster, "get", name)).await? else {
        let object = serde_json::from_value(wanted.clone()).map_err(|source| CrdError::Malformed {
            name: name.to_owned(),
            source,
        })?;
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let attempt = about_crd(cluster, "create", name);
        cluster.ask(attempt, api.create(&params, &object)).await?;
        return Ok(Some(Act::Create));
    };
    let Some(patch) = difference(wanted, &found) else {
        return Ok(None);
    };
    let live = spoken(&found);
    let (kept, dropped) = stored_versions(wanted, &found);
    let applied = if dropped.is_empty() || kept.is_empty() {
        spoken(&try_to_change(cluster, name, &patch).await?)
    } else {
        // The API server accepts the patch only after objects are rewritten.
        let mut applied = live.clone();
        lay(&mut applied, &patch);
        applied
    };
    Ok((live != applied).then_some(Act::Change { live, applied }))
}
