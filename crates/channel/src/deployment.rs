//! The operator's Deployment for a person's command: finds it, reads its image, and replaces the image.
//!
//! A change is refused if the Deployment is no longer as it was read. Must never choose between several Deployments.

use std::collections::BTreeSet;

use addon_core::failure::Failure;
use channel_core::reference::{ImageDigest, Reference};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, ResourceExt as _};
use kube_access::Cluster;
use kube_access::error::RequestError;
use thiserror::Error;

use crate::installation::FORMER_IMAGE;
use crate::installation::patching;
use crate::installation::patching::{Unwritten, Writing};
use crate::installation::reading::{RESUMED, RESUMED_AT};

/// Labels of the operator's objects whose value is the program's name; one of them is enough.
const LABELS: [&str; 2] = ["app.kubernetes.io/name", "app"];
/// The annotation that names the default container.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Why the Deployment was not found or not changed.
#[derive(Debug, Error)]
pub enum DeploymentError {
    #[error("{0}")]
    Request(Failure),
    #[error("no Deployment in namespace '{namespace}' is labelled as {program}")]
    None { program: String, namespace: String },
    #[error("several Deployments in namespace '{namespace}' are labelled as {program}: {}", names.join(", "))]
    Several {
        program: String,
        namespace: String,
        names: Vec<String>,
    },
    #[error("it is not clear which container of Deployment '{name}' is the operator's")]
    Container { name: String },
    #[error("Deployment '{name}' was changed by another writer meanwhile: it names {found}")]
    Changed { name: String, found: String },
    #[error("it is not clear which digest Deployment '{name}' runs: {why}")]
    NoDigest { name: String, why: String },
}

impl From<RequestError> for DeploymentError {
    fn from(error: RequestError) -> Self {
        Self::Request(error.into())
    }
}

/// The Deployment as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The name of the Deployment.
    pub name: String,
    /// The image of the operator's container, exactly as written.
    pub image: String,
    /// The image that the last change replaced, if the change has noted it.
    pub former: Option<String>,
    /// The name of the operator's container.
    container: String,
    /// The labels that select the Deployment's pods.
    selector: Vec<(String, String)>,
}

/// Finds the Deployment with this name, or the only one with the program's label.
pub async fn find_deployment(cluster: &Cluster, program: &str, name: Option<&str>) -> Result<Seen, DeploymentError> {
    let api = deployments(cluster);
    if let Some(name) = name {
        let found = cluster
            .ask(cluster.attempt("get", "deployments", name), api.get(name))
            .await?;
        return seen(&found, program);
    }
    let params = ListParams::default();
    let all = cluster.ask(cluster.attempt("list", "deployments", ""), api.list(&params));
    let all = all.await?;
    let is_ours = |found: &&Deployment| {
        let labels = found.labels();
        LABELS
            .iter()
            .any(|key| labels.get(*key).is_some_and(|label| label == program))
    };
    let ours: Vec<&Deployment> = all.items.iter().filter(is_ours).collect();
    match ours[..] {
        [one] => seen(one, program),
        [] => Err(DeploymentError::None {
            program: program.to_owned(),
            namespace: cluster.namespace().to_owned(),
        }),
        _ => Err(DeploymentError::Several {
            program: program.to_owned(),
            namespace: cluster.namespace().to_owned(),
            names: ours.iter().map(|found| found.name_any()).collect(),
        }),
    }
}

/// The digest of the running image: the one in the image's name, else the one that all pods report.
pub async fn digest_of(cluster: &Cluster, deployment: &Seen) -> Result<ImageDigest, DeploymentError> {
    let named = Reference::parse(&deployment.image).ok().and_then(|image| image.digest);
    if let Some(digest) = named {
        return Ok(digest);
    }
    let selector: Vec<String> = deployment
        .selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let api: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
    let params = ListParams::default().labels(&selector.join(","));
    let pods = cluster
        .ask(cluster.attempt("list", "pods", ""), api.list(&params))
        .await?;
    let run: BTreeSet<ImageDigest> = pods
        .items
        .iter()
        .filter_map(|pod| digest(pod, &deployment.container))
        .collect();
    let no_digest = |why: &str| DeploymentError::NoDigest {
        name: deployment.name.clone(),
        why: why.to_owned(),
    };
    let mut run = run.into_iter();
    match (run.next(), run.next()) {
        (Some(digest), None) => Ok(digest),
        (Some(_), Some(_)) => Err(no_digest("its pods run several")),
        (None, _) => Err(no_digest("the status of none of its pods names one")),
    }
}

/// Sets another image, if the Deployment still has the one that was read. Notes both images and the cause, so that
/// the operator recognises the change and does not revert it.
pub async fn put_image(cluster: &Cluster, deployment: &Seen, image: &str, why: &str) -> Result<(), DeploymentError> {
    let writing = Writing {
        container: &deployment.container,
        from: &deployment.image,
        to: image,
        cause: why,
    };
    let written = patching::write_image(cluster, &deployment.name, &writing).await;
    leave_fields(cluster, deployment, written).await
}

/// Notes on the Deployment that the operator may replace the image in `deployment`. `at` is the time of the command.
pub async fn note_resumed(cluster: &Cluster, deployment: &Seen, at: &str) -> Result<(), DeploymentError> {
    let Seen {
        name, image, container, ..
    } = deployment;
    let notes = [(RESUMED, image.as_str()), (RESUMED_AT, at)];
    let written = patching::write_notes(cluster, name, container, image, &notes).await;
    leave_fields(cluster, deployment, written).await
}

/// Gives up our ownership of the fields, because helm 4 changes no field that another manager owns. A failure does
/// no harm: the image is already the one that the person wants, and the operator maintains it from now on.
async fn leave_fields(
    cluster: &Cluster,
    deployment: &Seen,
    written: Result<DynamicObject, Unwritten>,
) -> Result<(), DeploymentError> {
    let name = &deployment.name;
    match written {
        Ok(written) => {
            drop(patching::disown(cluster, name, written).await);
            Ok(())
        }
        Err(Unwritten::Changed(found)) => Err(DeploymentError::Changed {
            name: name.clone(),
            found,
        }),
        Err(Unwritten::Request(error)) => Err(error.into()),
    }
}

fn deployments(cluster: &Cluster) -> Api<Deployment> {
    Api::namespaced(cluster.client(), cluster.namespace())
}

fn containers(found: &Deployment) -> &[Container] {
    let spec = found.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    spec.map_or(&[], |spec| &spec.containers)
}

fn seen(found: &Deployment, program: &str) -> Result<Seen, DeploymentError> {
    let name = found.name_any();
    let spec = found.spec.as_ref();
    let of_template = spec.and_then(|spec| spec.template.metadata.as_ref()?.annotations.as_ref());
    let wanted = of_template
        .and_then(|annotations| annotations.get(DEFAULT_CONTAINER))
        .map_or(program, String::as_str);
    let containers = containers(found);
    let named = containers.iter().position(|container| container.name == wanted);
    let at = named.or((containers.len() == 1).then_some(0));
    let unclear = || DeploymentError::Container { name: name.clone() };
    let at = at.ok_or_else(unclear)?;
    let image = containers[at].image.clone().ok_or_else(unclear)?;
    let selector = spec
        .and_then(|spec| spec.selector.match_labels.clone())
        .unwrap_or_default();
    Ok(Seen {
        image,
        former: found.annotations().get(FORMER_IMAGE).cloned(),
        container: containers[at].name.clone(),
        selector: selector.into_iter().collect(),
        name,
    })
}

/// The digest of the image that a pod reports as running, unless it is being deleted.
fn digest(pod: &Pod, container: &str) -> Option<ImageDigest> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let status = statuses.iter().find(|status| status.name == container)?;
    Reference::parse_image_id(&status.image_id).ok()?.digest
}
