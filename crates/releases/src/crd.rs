//! CRDs of modules: creates and updates them, and waits until they are served. Never deletes one, and never writes
//! without a difference.
//!
//! In an existing CRD, the webhook that converts its versions is not changed, nor are labels and annotations that the
//! manifest does not name.

mod difference;
pub mod foresight;
mod rewriting;

use std::collections::BTreeMap;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::operator::policy::OnTrial;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::wait::{self, await_condition};
use kube_access::Cluster;
use kube_access::error::{Attempt, RequestError};
use objects::ensure::Ensured;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::{sleep, timeout};
use tracing::info;
use watches::unwatched;

use self::difference::difference;

const RESOURCE: &str = "customresourcedefinitions";

/// The time that an API server may need to serve a CRD after it has accepted its names.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(15);
/// The interval of reads if a watch is forbidden.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

const TAKEN: &str = "a name belongs to another CRD of the group: rename the kind, or delete that CRD with all of its objects; \
                     `kubectl get crds` lists both";

/// Why a CRD cannot be used.
#[derive(Debug, Error)]
pub enum CrdError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("CRD '{name}' is no object that could be created")]
    Malformed { name: String, source: serde_json::Error },
    #[error(
        "CRD '{name}' cannot lose version {}: objects that are stored in it cannot be rewritten",
        dropped.join(", ")
    )]
    Stored {
        name: String,
        dropped: Vec<String>,
        kept: Vec<String>,
        source: RequestError,
    },
    #[error("CRD '{name}' would have to be changed, and a version on trial leaves it as it is")]
    Held { name: String },
    #[error("CRD '{name}' was deleted before it could be used")]
    Gone { name: String },
    #[error("the API server does not accept the names of CRD '{name}': {message}")]
    NamesRefused { name: String, message: String },
    #[error("CRD '{name}' is not established after {waited:?}: {message}")]
    NotEstablished {
        name: String,
        waited: Duration,
        message: String,
    },
}

impl From<CrdError> for Failure {
    fn from(error: CrdError) -> Self {
        let class = match error {
            CrdError::Request(error) => return error.into(),
            CrdError::Stored { ref name, ref kept, .. } => {
                let hint = by_hand(name, kept);
                return Self::of(Class::Refused, &error).hint(hint);
            }
            CrdError::NamesRefused { .. } => return Self::of(Class::Refused, &error).hint(TAKEN),
            CrdError::Malformed { .. } => Class::Invalid,
            CrdError::Held { .. } => Class::Held,
            CrdError::Gone { .. } | CrdError::NotEstablished { .. } => Class::Unavailable,
        };
        Self::new(class, report::Chain(&error).to_string())
    }
}

/// Creates the CRD or changes it to its manifest, with these labels added. Its kind may not be served yet
/// afterwards. During a trial an existing CRD is not changed.
pub async fn ensure_crd(
    cluster: &Cluster,
    name: &str,
    manifest: &Value,
    labels: &BTreeMap<String, String>,
    on_trial: OnTrial,
) -> Result<Ensured, CrdError> {
    let api = cluster.crds();
    let found = cluster.find(&api, about_crd(cluster, "get", name)).await?;
    let wanted = labelled(manifest, labels);
    let Some(found) = found else {
        let object = serde_json::from_value(wanted).map_err(|source| CrdError::Malformed {
            name: name.to_owned(),
            source,
        })?;
        let params = PostParams::default();
        cluster
            .ask(about_crd(cluster, "create", name), api.create(&params, &object))
            .await?;
        return Ok(Ensured::Created);
    };
    let Some(patch) = difference(&wanted, &found) else {
        return Ok(Ensured::Unchanged);
    };
    match on_trial {
        OnTrial::Yes => return would_change(cluster, &wanted, &found, name, patch).await,
        OnTrial::No => {}
    }
    forget_versions(cluster, &wanted, &found, name).await?;
    let attempt = about_crd(cluster, "patch", name);
    let patched = cluster.patch_or_replace(&api, attempt, &patch).await?;
    // Fields that the API server drops or fills in are no change.
    let is_same = patched.metadata.resource_version == found.metadata.resource_version;
    Ok(if is_same { Ensured::Unchanged } else { Ensured::Updated })
}

fn labelled(manifest: &Value, labels: &BTreeMap<String, String>) -> Value {
    let mut wanted = manifest.clone();
    for (label, value) in labels {
        wanted["metadata"]["labels"][label] = json!(value);
    }
    wanted
}

/// Prepares the removal of versions: a version may be removed only if no object is stored in it, so all objects are
/// rewritten first.
async fn forget_versions(cluster: &Cluster, wanted: &Value, found: &DynamicObject, name: &str) -> Result<(), CrdError> {
    let (kept, dropped) = stored_versions(wanted, found);
    // The API server itself refuses a CRD that would lose all of its versions.
    if dropped.is_empty() || kept.is_empty() {
        return Ok(());
    }
    info!(
        crd = name,
        ?dropped,
        "rewriting all objects, so that the CRD can drop the versions"
    );
    rewriting::rewrite_objects(cluster, found)
        .await
        .map_err(|source| CrdError::Stored {
            name: name.to_owned(),
            dropped: texts(&dropped),
            kept: texts(&kept),
            source,
        })?;
    let seen = &found.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": seen}, "status": {"storedVersions": kept}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let api = cluster.crds();
    let attempt = Attempt {
        resource: format!("{RESOURCE}/status"),
        ..about_crd(cluster, "patch", name)
    };
    cluster.ask(attempt, api.patch_status(name, &params, &patch)).await?;
    Ok(())
}

/// Whether the patch would change anything: tries it in a dry run. Fields that the API server drops or fills in are
/// no change.
async fn would_change(
    cluster: &Cluster,
    wanted: &Value,
    found: &DynamicObject,
    name: &str,
    patch: Value,
) -> Result<Ensured, CrdError> {
    let (_, dropped) = stored_versions(wanted, found);
    if !dropped.is_empty() {
        // Refused before the objects are rewritten for nothing.
        return Err(CrdError::Held { name: name.to_owned() });
    }
    let patched = try_to_change(cluster, name, &patch).await?;
    if spoken(&patched) == spoken(found) {
        Ok(Ensured::Unchanged)
    } else {
        Err(CrdError::Held { name: name.to_owned() })
    }
}

/// The CRD after the patch, in a dry run.
async fn try_to_change(cluster: &Cluster, name: &str, patch: &Value) -> Result<DynamicObject, RequestError> {
    let attempt = about_crd(cluster, "patch", name);
    cluster.try_patch_or_replace(&cluster.crds(), attempt, patch).await
}

/// The parts of a CRD that its manifest speaks of.
fn spoken(crd: &DynamicObject) -> Value {
    let metadata = &crd.metadata;
    json!({
        "metadata": {"labels": metadata.labels, "annotations": metadata.annotations},
        "spec": crd.data["spec"],
    })
}

/// Waits until the API server serves the kind of the CRD.
pub async fn await_crd(cluster: &Cluster, name: &str) -> Result<(), CrdError> {
    let waited = timeout(ESTABLISHED_WITHIN, decided_crd(cluster, name)).await;
    let found = match waited {
        Ok(found) => found?,
        Err(_) => cluster.find(&cluster.crds(), about_crd(cluster, "get", name)).await?,
    };
    let name = name.to_owned();
    let Some(crd) = found else {
        return Err(CrdError::Gone { name });
    };
    if is_true(&crd, "Established") {
        return Ok(());
    }
    Err(match refusal(&crd) {
        Some(message) => CrdError::NamesRefused { name, message },
        None => CrdError::NotEstablished {
            name,
            waited: ESTABLISHED_WITHIN,
            message: conditions(&crd),
        },
    })
}

/// Waits until the CRD is served, or is known never to be served; `None` if it does not exist.
async fn decided_crd(cluster: &Cluster, name: &str) -> Result<Option<DynamicObject>, CrdError> {
    let decided =
        |found: Option<&DynamicObject>| found.is_none_or(|crd| is_true(crd, "Established") || refusal(crd).is_some());
    let error = match await_condition(cluster.crds(), name, decided).await {
        Ok(found) => return Ok(found),
        Err(wait::Error::ProbeFailed(error)) => error,
    };
    let refusal = unwatched::request_error(&about_crd(cluster, "watch", name), error);
    if !refusal.is_forbidden() {
        return Err(refusal.into());
    }
    cluster.lacking().tell(refusal, "get");
    loop {
        let found = cluster.find(&cluster.crds(), about_crd(cluster, "get", name)).await?;
        if decided(found.as_ref()) {
            return Ok(found);
        }
        sleep(LOOK_AGAIN).await;
    }
}

fn about_crd(cluster: &Cluster, verb: &'static str, name: &str) -> Attempt {
    Attempt {
        namespace: None,
        ..cluster.attempt(verb, RESOURCE, name)
    }
}

/// The stored versions that the manifest keeps, and those that it lacks.
fn stored_versions<'a>(wanted: &Value, found: &'a DynamicObject) -> (Vec<&'a Value>, Vec<&'a Value>) {
    let stored = found.data["status"]["storedVersions"].as_array();
    let versions = wanted["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let is_kept = |stored: &&Value| versions.iter().any(|version| version["name"] == **stored);
    stored.into_iter().flatten().partition(is_kept)
}

fn texts(versions: &[&Value]) -> Vec<String> {
    let texts = versions.iter().filter_map(|version| version.as_str());
    texts.map(str::to_owned).collect()
}

/// The commands with which a person rewrites the objects.
fn by_hand(name: &str, kept: &[String]) -> String {
    let status = json!({"status": {"storedVersions": kept}});
    format!(
        "rewrite them: `kubectl get {name} --all-namespaces -o json | kubectl replace -f - && kubectl patch crd {name} \
         --subresource=status --type=merge -p '{status}'`"
    )
}

fn condition<'a>(crd: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let all = crd.data["status"]["conditions"].as_array()?;
    all.iter().find(|condition| condition["type"] == kind)
}

fn is_true(crd: &DynamicObject, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Why the names are not accepted, according to the status.
fn refusal(crd: &DynamicObject) -> Option<String> {
    let accepted = condition(crd, "NamesAccepted").filter(|condition| condition["status"] == "False")?;
    Some(accepted["message"].as_str().unwrap_or("it gives no reason").to_owned())
}

fn conditions(crd: &DynamicObject) -> String {
    let all = crd.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |key: &str, condition: &Value| condition[key].as_str().unwrap_or_default().to_owned();
    let told = all.iter().map(|one| {
        format!(
            "{} is {}: {}",
            text("type", one),
            text("status", one),
            text("message", one)
        )
    });
    let told: Vec<_> = told.collect();
    if told.is_empty() {
        "no condition of it is set".to_owned()
    } else {
        told.join("; ")
    }
}
