//! Writes to the state Secrets: on exactly the version that was read, or not at all.
//!
//! A leader that was frozen, or whose request was delayed, may have been replaced by another. Its write then meets
//! another version and is refused, and before the next attempt the check in front of all writes shows whether it still
//! leads. The next write knows the version of the last one (see `known`). After a refusal the Secret is read, so a
//! restored store is accepted as it is.

use std::collections::BTreeMap;

use addon_core::release::tenure::Holder;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use kube_access::Cluster;
use kube_access::error::RequestError;
use kube_access::known::Last;
use serde_json::{Value, json};
use tracing::warn;

use super::{
    Changes, Data, LEADER_KEY, NAME, UNREADABLE, Unreadable, VERSION, VERSION_KEY, packed, plain,
    remembers_nothing_but, trial,
};

/// The number of attempts if other writers are faster. Each refusal means that one of the others succeeded, and there
/// are few: helm children and people.
const ROUNDS: usize = 20;

/// Reads the state and writes the leader's name into it. This changes the Secret's version, so a delayed write of
/// an earlier leader is refused.
pub(super) async fn take_over(cluster: &Cluster, us: &Holder) -> Result<Data, RequestError> {
    // The time makes the text differ from that of an earlier process with the same name.
    let leader = json!({"identity": us.identity, "transitions": us.transitions, "since": Timestamp::now()});
    let change = (LEADER_KEY.to_owned(), Some(leader.to_string().into_bytes()));
    let secret = remember(cluster, NAME, &[change].into()).await?;
    Ok(secret.and_then(|secret| secret.data).unwrap_or_default())
}

pub(super) async fn remembered(cluster: &Cluster, name: &str) -> Result<Data, RequestError> {
    let secret = read(cluster, name).await?;
    Ok(secret.and_then(|secret| secret.data).unwrap_or_default())
}

async fn read(cluster: &Cluster, name: &str) -> Result<Option<Secret>, RequestError> {
    cluster
        .ask(cluster.attempt("get", "secrets", name), cluster.secrets().get_opt(name))
        .await
}

/// Makes the changes, unless they are already made. Returns the Secret afterwards; it is not created if there is
/// nothing to store.
pub(super) async fn remember(cluster: &Cluster, name: &str, changes: &Changes) -> Result<Option<Secret>, RequestError> {
    Box::pin(change(cluster, name, |_| changes.clone())).await
}

/// Makes changes that depend on the Secret's contents. They are computed anew whenever another writer was faster.
pub(super) async fn revise(
    cluster: &Cluster,
    name: &str,
    changes: impl Fn(&Data) -> Changes,
) -> Result<(), RequestError> {
    Box::pin(change(cluster, name, changes)).await.map(|_| ())
}

pub(super) async fn change(
    cluster: &Cluster,
    name: &str,
    changes: impl Fn(&Data) -> Changes,
) -> Result<Option<Secret>, RequestError> {
    let none = Data::new();
    let mut known = cluster.known().take(name);
    for _ in 0..ROUNDS {
        let is_read = known.is_none();
        let found = match known.take() {
            Some(Last::Is(secret)) => Some(*secret),
            Some(Last::Absent) => None,
            None => read(cluster, name).await?,
        };
        let data = found.as_ref().and_then(|found| found.data.as_ref());
        let changes = &changes(data.unwrap_or(&none));
        if is_as_wanted(found.as_ref(), changes) {
            if !is_read {
                continue;
            }
            cluster.known().note(name, found.as_ref());
            return Ok(found);
        }
        let written = match &found {
            Some(found) => {
                put_aside(cluster, found, changes).await?;
                merge(cluster, name, &found.metadata, changes).await
            }
            None => create(cluster, name, changes).await,
        };
        match written {
            // The Secret was changed, created or deleted since it was read.
            Err(error) if error.is_conflict() || found.is_some() && error.is_not_found() => {}
            Err(error) => return Err(error),
            Ok(written) => {
                cluster.known().note(name, Some(&written));
                return Ok(Some(written));
            }
        }
    }
    Err(RequestError::Unusable {
        attempt: cluster.attempt("patch", "secrets", name),
        problem: "other writers change the Secret again and again".to_owned(),
    })
}

/// Removes a key. The Secret is deleted if nothing else is in it.
pub(super) async fn forget(cluster: &Cluster, name: &str, key: &str) -> Result<(), RequestError> {
    match remember(cluster, name, &[(key.to_owned(), None)].into()).await? {
        Some(secret) if remembers_nothing_but(key, &secret) => {
            drop_secret(cluster, name, secret.metadata).await.map(|_| ())
        }
        Some(_) | None => Ok(()),
    }
}

/// Deletes the Secret if it is unchanged; returns whether it was deleted.
pub(super) async fn drop_secret(cluster: &Cluster, name: &str, seen: ObjectMeta) -> Result<bool, RequestError> {
    let params = DeleteParams::default().preconditions(Preconditions {
        resource_version: seen.resource_version,
        uid: seen.uid,
    });
    let secrets = cluster.secrets();
    let deleted = cluster
        .ask(
            cluster.attempt("delete", "secrets", name),
            secrets.delete(name, &params),
        )
        .await;
    match deleted {
        Ok(_) => {
            cluster.known().note(name, None);
            Ok(true)
        }
        Err(error) if error.is_not_found() => Ok(true),
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Copies contents that cannot be read to another Secret, before they are overwritten.
async fn put_aside(cluster: &Cluster, secret: &Secret, changes: &Changes) -> Result<(), RequestError> {
    let none = Data::new();
    let data = secret.data.as_ref().unwrap_or(&none);
    let read = [plain(data), packed(data)].into_iter().flatten();
    let lost = |problem: Unreadable| changes.contains_key(problem.key).then_some(problem.key);
    let unreadable: Data = read
        .filter_map(Result::err)
        .chain(trial::unreadable(data))
        .filter_map(lost)
        .filter_map(|key| Some((key.to_owned(), data.get(key)?.clone())))
        .collect();
    if unreadable.is_empty() {
        return Ok(());
    }
    let keys: Vec<_> = unreadable.keys().cloned().collect();
    let aside = named(UNREADABLE, unreadable.clone());
    let secrets = cluster.secrets();
    let created = cluster
        .ask(
            cluster.attempt("create", "secrets", UNREADABLE),
            secrets.create(&PostParams::default(), &aside),
        )
        .await;
    match created {
        Ok(_) => warn!(
            secret = NAME,
            ?keys,
            kept = UNREADABLE,
            "keys of our own state cannot be read, they are moved to another Secret"
        ),
        Err(error) if error.is_conflict() => put_beside(cluster, unreadable).await?,
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Adds the contents to the existing Secret. A key that it already has keeps its older text, which may not have
/// been examined yet.
async fn put_beside(cluster: &Cluster, unreadable: Data) -> Result<(), RequestError> {
    let Some(aside) = read(cluster, UNREADABLE).await? else {
        return Ok(());
    };
    let known = aside.data.unwrap_or_default();
    let new = unreadable.into_iter().filter(|(key, _)| !known.contains_key(key));
    let changes: Changes = new.map(|(key, text)| (key, Some(text.0))).collect();
    if !changes.is_empty() {
        let keys: Vec<_> = changes.keys().collect();
        warn!(
            secret = NAME,
            ?keys,
            kept = UNREADABLE,
            "more keys of our own state cannot be read, they are moved to another Secret"
        );
        merge(cluster, UNREADABLE, &aside.metadata, &changes).await?;
    }
    Ok(())
}

/// Patches the Secret; the API server refuses if the Secret has changed.
pub(super) async fn merge(
    cluster: &Cluster,
    name: &str,
    seen: &ObjectMeta,
    changes: &Changes,
) -> Result<Secret, RequestError> {
    let encoded = changes.iter().map(|(key, value)| {
        let value = value
            .as_ref()
            .map_or(Value::Null, |value| json!(STANDARD.encode(value)));
        (key.clone(), value)
    });
    let data: serde_json::Map<_, _> = encoded.collect();
    let seen = json!({"uid": seen.uid, "resourceVersion": seen.resource_version});
    let patch = json!({"metadata": seen, "data": data});
    let attempt = cluster.attempt("patch", "secrets", name);
    cluster.patch_or_replace(&cluster.secrets(), attempt, &patch).await
}

/// Creates the Secret; the API server refuses if the Secret exists.
pub(super) async fn create(cluster: &Cluster, name: &str, changes: &Changes) -> Result<Secret, RequestError> {
    let changed = changes
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), ByteString(value.clone()?))));
    let version = (VERSION_KEY.to_owned(), ByteString(VERSION.into()));
    let secret = named(name, changed.chain([version]).collect());
    let secrets = cluster.secrets();
    cluster
        .ask(
            cluster.attempt("create", "secrets", name),
            secrets.create(&PostParams::default(), &secret),
        )
        .await
}

fn named(name: &str, data: BTreeMap<String, ByteString>) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..Secret::default()
    }
}

/// Whether all changes are already made.
fn is_as_wanted(found: Option<&Secret>, changes: &Changes) -> bool {
    let data = found.and_then(|found| found.data.as_ref());
    let is = |key: &String| data.and_then(|data| data.get(key)).map(|value| &value.0);
    changes.iter().all(|(key, wanted)| is(key) == wanted.as_ref())
}
