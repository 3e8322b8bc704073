//! The `ReplicaSet` of a trial: creates and deletes it.
//!
//! The Deployment owns the set but does not control it: the set is deleted with the Deployment, which neither scales
//! nor adopts it. The set must never have labels by which the Deployment would adopt it. Another set of the same name
//! must never be deleted.

use std::collections::BTreeMap;

use channel_core::reference::{ImageDigest, Reference};
use channel_core::trial::record::Trial;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Api;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject};
use kube_access::Cluster;
use kube_access::error::{Attempt, RequestError};
use saved_state::trial::Kept;
use saved_state::trial::channel_records;
use serde_json::{Map, Value, json};

use super::patching::Outcome;
use super::{Installation, REPLICA_SETS, TRIAL_LABEL, reading, selection};
use crate::installation::raw_deployment;

/// The termination grace period of a trial's pod, because other replicas wait for the lease.
const GRACE_SECONDS: u32 = 20;
/// The environment variable in the pod of a trial.
pub const ON_TRIAL: &str = "ADDON_OPERATOR_ON_TRIAL";
/// The label that the controller of Deployments adds to its own sets and pods.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Creates the `ReplicaSet` of a trial: the Deployment's template with the image of the trial. Nothing is done if
/// the record of the trial or the template has changed, or if the `ReplicaSet` already exists.
pub async fn make_trial_set(
    cluster: &Cluster,
    installation: &Installation,
    trial: &Trial,
    image: &str,
) -> Result<Outcome, RequestError> {
    if !is_recorded(cluster, Some(trial)).await? {
        return Ok(other_record());
    }
    let digest = &trial.to.digest;
    let found = raw_deployment(cluster, &installation.deployment).await?;
    if found.metadata.uid.as_ref() != Some(&installation.deployment_uid) {
        let now = "another Deployment of the same name".to_owned();
        return Ok(Outcome::Changed { now });
    }
    let now = reading::template_hash(reading::template(&found));
    if now != trial.template {
        return Ok(Outcome::Changed { now });
    }
    let attempt = set_attempt(cluster, "create", installation);
    let set = set(installation, &found, image).map_err(|problem| RequestError::Unusable {
        attempt: attempt.clone(),
        problem,
    })?;
    let resource = ApiResource::erase::<ReplicaSet>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.unpaced(), cluster.namespace(), &resource);
    let params = PostParams::default();
    match cluster.ask(attempt, api.create(&params, &set)).await {
        Ok(_) => Ok(Outcome::Done),
        Err(error) if error.is_conflict() => judge_existing(cluster, installation, digest).await,
        Err(error) => Err(error),
    }
}

/// Judges an existing object of that name: it is the trial's own, or an obstacle.
async fn judge_existing(
    cluster: &Cluster,
    installation: &Installation,
    digest: &ImageDigest,
) -> Result<Outcome, RequestError> {
    let Some(found) = trial_replica_set(cluster, installation).await? else {
        let now = "it was there, and is gone".to_owned();
        return Ok(Outcome::Changed { now });
    };
    let name = installation.trial_set();
    if found.metadata.deletion_timestamp.is_some() {
        let now = format!("the ReplicaSet '{name}' of an earlier trial is still being deleted");
        return Ok(Outcome::Changed { now });
    }
    match known_digest(cluster, installation, &found)? {
        other if other == *digest => Ok(Outcome::Done),
        other => Err(RequestError::Unusable {
            attempt: set_attempt(cluster, "create", installation),
            problem: format!("the ReplicaSet '{name}' is there already and runs another version, {other}"),
        }),
    }
}

/// Whether the record of the trial equals `trial`; `None` stands for no record.
async fn is_recorded(cluster: &Cluster, trial: Option<&Trial>) -> Result<bool, RequestError> {
    Ok(match channel_records(cluster).await?.trial {
        Kept::Is(standing) => trial.is_some_and(|trial| json!(standing) == json!(trial)),
        Kept::Absent => trial.is_none(),
        Kept::Unreadable(_) => false,
    })
}

/// Deletes the `ReplicaSet` of a trial together with its pod, if the set has this UID. The set exists until the pod has
/// ended. Nothing is done if the record of the trial has changed, because the set may belong to the next trial.
pub async fn drop_trial_set(
    cluster: &Cluster,
    installation: &Installation,
    over: Option<&Trial>,
    uid: &str,
) -> Result<Outcome, RequestError> {
    if !is_recorded(cluster, over).await? {
        return Ok(other_record());
    }
    let Some(found) = trial_replica_set(cluster, installation).await? else {
        return Ok(Outcome::Done);
    };
    known_digest(cluster, installation, &found)?;
    if found.metadata.uid.as_deref() != Some(uid) {
        let now = format!("another ReplicaSet '{}'", installation.trial_set());
        return Ok(Outcome::Changed { now });
    }
    if found.metadata.deletion_timestamp.is_some() {
        return Ok(Outcome::Done);
    }
    let api: Api<ReplicaSet> = Api::namespaced(cluster.unpaced(), cluster.namespace());
    let params = DeleteParams::foreground().preconditions(Preconditions {
        uid: found.metadata.uid,
        resource_version: None,
    });
    let name = installation.trial_set();
    let attempt = set_attempt(cluster, "delete", installation);
    match cluster.ask(attempt, api.delete(&name, &params)).await {
        Ok(_) => Ok(Outcome::Done),
        Err(error) if error.is_not_found() => Ok(Outcome::Done),
        Err(error) if error.is_conflict() => Ok(Outcome::Changed {
            now: format!("another ReplicaSet '{name}'"),
        }),
        Err(error) => Err(error),
    }
}

async fn trial_replica_set(cluster: &Cluster, installation: &Installation) -> Result<Option<ReplicaSet>, RequestError> {
    let api: Api<ReplicaSet> = Api::namespaced(cluster.open(), cluster.namespace());
    let (name, attempt) = (installation.trial_set(), set_attempt(cluster, "get", installation));
    cluster.ask(attempt, api.get_opt(&name)).await
}

/// The digest that the set runs; an error if it is no set of a trial.
#[expect(
    clippy::result_large_err,
    reason = "as large as the errors of the requests beside it"
)]
fn known_digest(
    cluster: &Cluster,
    installation: &Installation,
    found: &ReplicaSet,
) -> Result<ImageDigest, RequestError> {
    let labels = found.metadata.labels.as_ref();
    let is_marked = labels.is_some_and(|labels| labels.contains_key(TRIAL_LABEL));
    let is_ours = is_marked && installation.owns(&found.metadata);
    let sight = reading::trial_set(found, &installation.container, std::iter::empty());
    match sight {
        Ok(sight) if is_ours => Ok(sight.digest),
        Ok(_) | Err(_) => Err(RequestError::Unusable {
            attempt: set_attempt(cluster, "get", installation),
            problem: "it was not made by us for this Deployment: delete it or rename it".to_owned(),
        }),
    }
}

fn set_attempt(cluster: &Cluster, verb: &'static str, installation: &Installation) -> Attempt {
    cluster.attempt(verb, REPLICA_SETS, &installation.trial_set())
}

fn other_record() -> Outcome {
    let now = "another record of a trial, or none".to_owned();
    Outcome::Changed { now }
}

/// The `ReplicaSet` for the trial of a version; a sentence if it cannot be made.
fn set(installation: &Installation, deployment: &DynamicObject, image: &str) -> Result<DynamicObject, String> {
    let mark = installation.trial_label();
    let selector: LabelSelector = serde_json::from_value(deployment.data["spec"]["selector"].clone())
        .map_err(|error| format!("the selector of the Deployment cannot be read: {error}"))?;
    let own = BTreeMap::from([(TRIAL_LABEL.to_owned(), mark.to_owned())]);
    if selection::selects(&selector, &own)? {
        return Err("the selector of the Deployment would select it, and the Deployment would take it over".to_owned());
    }
    let mut template = reading::template(deployment).clone();
    mark_pod(&mut template, mark)?;
    prepare_container(&mut template, &installation.container, image)?;
    let mut narrower = selector;
    narrower
        .match_labels
        .get_or_insert_default()
        .insert(TRIAL_LABEL.to_owned(), mark.to_owned());
    let Installation {
        deployment: name,
        deployment_uid: uid,
        ..
    } = installation;
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": installation.trial_set(),
            "labels": own,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid,
                "controller": false, "blockOwnerDeletion": false,
            }],
        },
        "spec": {"replicas": 1, "minReadySeconds": 0, "selector": narrower, "template": template},
    });
    serde_json::from_value(set).map_err(|error| format!("it cannot be made of the Deployment's template: {error}"))
}

fn mark_pod(template: &mut Value, mark: &str) -> Result<(), String> {
    let labels = object_in(template, "metadata").map(|metadata| metadata.entry("labels").or_insert_with(|| json!({})));
    let labels = labels.and_then(Value::as_object_mut);
    let labels = labels.ok_or("the pod template of the Deployment has no labels")?;
    labels.remove(TEMPLATE_HASH);
    labels.insert(TRIAL_LABEL.to_owned(), json!(mark));
    Ok(())
}

fn prepare_container(template: &mut Value, container: &str, image: &str) -> Result<(), String> {
    let reference = Reference::parse(image).map_err(|error| error.to_string())?;
    if reference.digest.is_none() {
        return Err(format!("'{image}' names no digest"));
    }
    let spec = object_in(template, "spec").ok_or("the pod template of the Deployment has no spec")?;
    spec.insert("terminationGracePeriodSeconds".to_owned(), json!(GRACE_SECONDS));
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    let ours = containers
        .into_iter()
        .flatten()
        .find(|known| known["name"] == container)
        .and_then(Value::as_object_mut)
        .ok_or_else(|| format!("the Deployment has no container '{container}'"))?;
    ours.insert("image".to_owned(), json!(image));
    ours.insert("imagePullPolicy".to_owned(), json!("IfNotPresent"));
    let variables = ours.entry("env").or_insert_with(|| json!([]));
    let variables = variables.as_array_mut();
    let variables = variables.ok_or("the environment of the Deployment's container is no list")?;
    variables.retain(|variable| variable["name"] != ON_TRIAL);
    variables.push(json!({"name": ON_TRIAL, "value": "true"}));
    Ok(())
}

fn object_in<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    value.get_mut(key)?.as_object_mut()
}

#[cfg(test)]
mod tests;
