//! Objects in a stored revision whose kinds the API server no longer serves. Helm can then neither upgrade nor remove
//! the release. A kind without any served version has no objects any more; objects of other kinds exist under another
//! version.
//!
//! It rewrites only the record, never an object, and keeps the record of before beside it. A kind that may be served
//! counts as served.

use std::collections::{BTreeMap, BTreeSet};
use std::{fmt, io};

use addon_core::release::kinds::{self, KindName};
use helm_yaml::yaml;
use kube_access::Cluster;
use kube_access::apis::Apis;
use kube_access::error::RequestError;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::super::outdated::{self, Uses};
use super::{Content, Revision, text};
use crate::revisions;
use crate::revisions::before::keep_before;
use objects::key::flat;

/// The fate of an object in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is served under this API version, and is recorded so.
    Moves(String),
    /// Its kind is not served at all, so there are no objects of it.
    Goes,
}

/// The fates of kinds that are not served, by kind.
pub(super) type Fates = BTreeMap<KindName, Fate>;

/// An object of a record whose kind the API server does not serve in the recorded version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    kind: KindName,
    name: String,
    fate: Fate,
}

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, fate } = self;
        write!(f, "{}/{name} of {}", kind.kind, kind.api_version)?;
        match fate {
            Fate::Moves(to) => write!(f, " (now {to})"),
            Fate::Goes => f.write_str(" (no longer served)"),
        }
    }
}

/// The objects of a manifest whose kinds are not served in their version.
pub(super) async fn unserved(cluster: &Cluster, manifest: &str, apis: &Apis) -> Vec<Unserved> {
    let fates = fates(cluster, [manifest], apis).await;
    // A manifest that cannot be read names no objects.
    amended(manifest, &fates).map_or_else(|_| Vec::new(), |(_, unserved)| unserved)
}

/// Rewrites the record of a revision so that it names only kinds that are served, and names the missed objects, too.
/// Returns the objects that were not served as the record named them. Without such objects and without missed objects,
/// nothing is written.
pub async fn amend(
    cluster: &Cluster,
    revision: &Revision,
    missed: &[Value],
    apis: &Apis,
) -> Result<Vec<Unserved>, RequestError> {
    let (secret, mut content) = revisions::content(cluster, revision).await?;
    let manifests = manifests(&content);
    let fates = fates(cluster, manifests.iter().map(String::as_str), apis).await;
    // Helm may read a manifest that the operator cannot.
    if fates.is_empty() && missed.is_empty() {
        return Ok(Vec::new());
    }
    let unserved = amend_content(&mut content, &fates).and_then(|unserved| {
        add(&mut content, missed)?;
        Ok(unserved)
    });
    let unserved = unserved.map_err(|error| revisions::unusable(cluster, revision, &error.to_string()))?;
    if !unserved.is_empty() {
        keep_before(cluster, &secret, &unserved).await?;
    }
    revisions::store(cluster, revision, secret, &content).await?;
    Ok(unserved)
}

/// The kinds in the record of a revision, helm hooks included.
pub async fn uses(cluster: &Cluster, revision: &Revision) -> Result<Uses, RequestError> {
    let (_, content) = revisions::content(cluster, revision).await?;
    let mut uses = Uses::new();
    for manifest in manifests(&content) {
        let documents = yaml::documents_v2(&manifest)
            .map_err(|error| revisions::unusable(cluster, revision, &error.to_string()))?;
        outdated::add(&mut uses, documents.into_iter().flat_map(flat));
    }
    Ok(uses)
}

/// The fates of all kinds in these manifests that are not served.
pub(super) async fn fates(cluster: &Cluster, manifests: impl IntoIterator<Item = &str>, apis: &Apis) -> Fates {
    let objects = manifests
        .into_iter()
        .filter_map(|manifest| yaml::documents_v2(manifest).ok());
    let kinds = objects
        .flatten()
        .flat_map(flat)
        .filter_map(|object| kind_of(&object))
        .collect();
    let gone = gone(cluster, kinds, apis).await;
    gone.into_iter()
        .map(|kind| {
            let fate = fate(apis, &kind);
            (kind, fate)
        })
        .collect()
}

/// The kinds that are not served. If a group version is not listed at all, the API server is asked for it: a server
/// that has just started leaves out the group versions that it does not know yet.
pub async fn gone(cluster: &Cluster, kinds: BTreeSet<KindName>, apis: &Apis) -> BTreeSet<KindName> {
    let missing = kinds
        .into_iter()
        .filter(|kind| apis.lacks(&kind.api_version, &kind.kind));
    let (mut gone, unlisted): (BTreeSet<_>, BTreeSet<_>) =
        missing.partition(|kind| apis.names.contains(&kind.api_version));
    let versions: BTreeSet<_> = unlisted.iter().map(|kind| kind.api_version.clone()).collect();
    if !versions.is_empty() {
        let not_found = cluster.not_found(versions.into_iter().collect()).await;
        gone.extend(
            unlisted
                .into_iter()
                .filter(|kind| not_found.contains(&kind.api_version)),
        );
    }
    gone
}

/// The kind of an object.
pub(crate) fn kind_of(object: &Value) -> Option<KindName> {
    Some(KindName::new(object["apiVersion"].as_str()?, object["kind"].as_str()?))
}

/// The fate of the objects of a kind that is not served in its version.
fn fate(apis: &Apis, kind: &KindName) -> Fate {
    let groups = [Some(kind.group().to_owned()), kinds::moved_to(kind)];
    let elsewhere = groups
        .into_iter()
        .flatten()
        .find_map(|group| apis.preferred(&group, &kind.kind));
    elsewhere.map_or(Fate::Goes, |to| Fate::Moves(to.to_owned()))
}

/// The manifests in a record: that of the release, and those of its helm hooks.
pub(super) fn manifests(content: &Content) -> Vec<String> {
    let hooks = hooks(content);
    let of_hooks = hooks.iter().map(|hook| text(hook, "manifest"));
    [text(content, "manifest")].into_iter().chain(of_hooks).collect()
}

fn hooks(content: &Content) -> Vec<Content> {
    let raw = content.get("hooks").map(|raw| serde_json::from_str(raw.get()));
    raw.and_then(Result::ok).unwrap_or_default()
}

/// Rewrites the manifests in a record. Returns the objects that were not served as it named them.
fn amend_content(content: &mut Content, fates: &Fates) -> io::Result<Vec<Unserved>> {
    let (manifest, mut unserved) = amended(&text(content, "manifest"), fates).map_err(io::Error::other)?;
    let mut kept = Vec::new();
    for mut hook in hooks(content) {
        let (manifest, of_hook) = amended(&text(&hook, "manifest"), fates).map_err(io::Error::other)?;
        if !of_hook.is_empty() {
            hook.insert("manifest".to_owned(), to_raw_value(&manifest)?);
        }
        unserved.extend(of_hook);
        if !manifest.trim().is_empty() {
            kept.push(hook);
        }
    }
    if !unserved.is_empty() {
        content.insert("manifest".to_owned(), to_raw_value(&manifest)?);
        content.insert("hooks".to_owned(), to_raw_value(&kept)?);
    }
    Ok(unserved)
}

/// Adds objects to the manifest in a record.
fn add(content: &mut Content, objects: &[Value]) -> io::Result<()> {
    let mut manifest = text(content, "manifest");
    for object in objects {
        manifest.extend(["\n---\n", &object.to_string(), "\n"]);
    }
    content.insert("manifest".to_owned(), to_raw_value(&manifest)?);
    Ok(())
}

/// The objects of a manifest whose kinds are served, each with its present version.
pub(super) fn served(manifest: &str, fates: &Fates) -> Vec<Value> {
    let documents = yaml::documents_v2(manifest).unwrap_or_default();
    let objects = documents.into_iter().flat_map(flat);
    objects
        .filter_map(|object| amended_value(object, fates, &mut Vec::new()))
        .collect()
}

/// A manifest without the objects that are gone, and with the present version of those that have moved. The text of all
/// others stays as it is.
fn amended(manifest: &str, fates: &Fates) -> Result<(String, Vec<Unserved>), yaml::YamlError> {
    let (mut text, mut unserved) = (String::new(), Vec::new());
    for document in documents(manifest) {
        let before = unserved.len();
        let mut kept = Vec::new();
        for value in yaml::documents_v2(document)? {
            kept.extend(amended_value(value, fates, &mut unserved));
        }
        if unserved.len() == before {
            text.push_str(document);
            continue;
        }
        for value in kept {
            text.push_str(&written(document, &unserved[before..], &value));
        }
    }
    Ok((text, unserved))
}

/// The document with another version: as its author wrote it if that can be done in one line, else as JSON.
fn written(document: &str, unserved: &[Unserved], value: &Value) -> String {
    if let [
        Unserved {
            kind,
            fate: Fate::Moves(to),
            ..
        },
    ] = unserved
    {
        let text = document.replacen(
            &format!("apiVersion: {}", kind.api_version),
            &format!("apiVersion: {to}"),
            1,
        );
        if yaml::documents_v2(&text).is_ok_and(|read| read == [value.clone()]) {
            return text;
        }
    }
    format!("---\n{value}\n")
}

fn amended_value(mut value: Value, fates: &Fates, unserved: &mut Vec<Unserved>) -> Option<Value> {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut).filter(|_| is_list) {
        let all = std::mem::take(items);
        *items = all
            .into_iter()
            .filter_map(|item| amended_value(item, fates, unserved))
            .collect();
        return (!items.is_empty()).then_some(value);
    }
    let Some((key, fate)) = kind_of(&value).and_then(|key| fates.get_key_value(&key)) else {
        return Some(value);
    };
    unserved.push(Unserved {
        kind: key.clone(),
        name: value["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        fate: fate.clone(),
    });
    match fate {
        Fate::Goes => None,
        Fate::Moves(to) => {
            value["apiVersion"] = Value::from(to.as_str());
            Some(value)
        }
    }
}

/// The documents of a manifest, each with the line that begins it. Together they are the manifest.
fn documents(manifest: &str) -> Vec<&str> {
    let mut begins = vec![0];
    let mut at = 0;
    for line in manifest.split_inclusive('\n') {
        let is_marker = line.trim_end() == "---" || line.starts_with("--- ");
        if is_marker && at > 0 {
            begins.push(at);
        }
        at += line.len();
    }
    begins.push(manifest.len());
    begins.windows(2).map(|ends| &manifest[ends[0]..ends[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(fates: &[(&str, &str, Fate)]) -> Fates {
        let one = |(api_version, kind, fate): &(&str, &str, Fate)| (KindName::new(api_version, kind), fate.clone());
        fates.iter().map(one).collect()
    }

    fn all() -> Fates {
        fates(&[
            ("t/v1", "Widget", Fate::Goes),
            (
                "policy/v1beta1",
                "PodDisruptionBudget",
                Fate::Moves("policy/v1".to_owned()),
            ),
        ])
    }

    const STAYS: &str = "---\n# Source: a/templates/c.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  x: |\n    --- no marker\n";

    #[test]
    fn what_is_gone_leaves_the_record_and_others_stay_as_they_are() {
        let gone = "---\n# Source: a/templates/w.yaml\napiVersion: t/v1\nkind: Widget\nmetadata: {name: w}\n";
        for manifest in [
            format!("{gone}{STAYS}"),
            format!("{STAYS}{gone}"),
            format!("{STAYS}{gone}---\n# nothing\n"),
        ] {
            let (text, unserved) = amended(&manifest, &all()).unwrap();
            assert_eq!(text, manifest.replace(gone, ""));
            let told: Vec<_> = unserved.iter().map(ToString::to_string).collect();
            assert_eq!(told, ["Widget/w of t/v1 (no longer served)"]);
        }
        assert_eq!(amended(STAYS, &all()).unwrap(), (STAYS.to_owned(), Vec::new()));
        assert_eq!(amended("", &all()).unwrap(), (String::new(), Vec::new()));
    }

    #[test]
    fn what_has_moved_is_recorded_under_its_present_version() {
        let moved = "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: p # the budget\n";
        let (text, unserved) = amended(&format!("{moved}{STAYS}"), &all()).unwrap();
        assert_eq!(text, format!("{}{STAYS}", moved.replace("v1beta1", "v1")));
        assert_eq!(
            unserved[0].to_string(),
            "PodDisruptionBudget/p of policy/v1beta1 (now policy/v1)"
        );
        // Not in one line.
        let flow = "---\n{\"kind\": \"PodDisruptionBudget\", \"apiVersion\": \"policy/v1beta1\", \"metadata\": {\"name\": \"p\"}}\n";
        let (text, _) = amended(flow, &all()).unwrap();
        assert_eq!(yaml::documents_v2(&text).unwrap()[0]["apiVersion"], "policy/v1");
    }

    #[test]
    fn items_of_lists_are_looked_at_and_an_empty_list_goes() {
        let list = "---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: t/v1, kind: Widget, metadata: {name: w}}\n";
        assert_eq!(amended(list, &all()).unwrap().0, "");
        let both = format!("{list}- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}}}\n");
        let (text, unserved) = amended(&both, &all()).unwrap();
        let value = &yaml::documents_v2(&text).unwrap()[0];
        assert_eq!(
            (value["items"][0]["kind"].as_str(), unserved.len()),
            (Some("ConfigMap"), 1)
        );
        assert_eq!(value["items"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn helm_hooks_of_kinds_that_are_gone_go_too() {
        let hook = |kind: &str, version: &str| serde_json::json!({"name": "h", "manifest": format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: h}}\n"), "weight": 1});
        let record = serde_json::json!({"manifest": STAYS, "name": "a", "hooks": [hook("Widget", "t/v1"), hook("Job", "batch/v1")]});
        let mut content: Content = serde_json::from_value(record.clone()).unwrap();
        let unserved = amend_content(&mut content, &all()).unwrap();
        assert_eq!(unserved.len(), 1);
        let kept: Value = serde_json::from_str(content["hooks"].get()).unwrap();
        assert_eq!(kept, serde_json::json!([record["hooks"][1]]));
        assert_eq!(text(&content, "manifest"), STAYS);
    }
}
