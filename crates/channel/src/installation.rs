//! The operator's own installation: its pod and its Deployment, and how both are found.
//!
//! A Deployment is the operator's own if the operator's pod belongs to one of its `ReplicaSet`s, or to the `ReplicaSet`
//! of a trial that names the Deployment as an owner. Must never guess: a pod of anything else is no installation, and
//! the result tells the reason.

mod kept;
mod nodes;
pub mod patching;
pub mod reading;
mod selection;
pub mod trial_set;
pub mod watching;

use std::collections::BTreeSet;
use std::time::Duration;

use channel_core::reference::ImageDigest;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::core::{ApiResource, DynamicObject};
use kube_access::Cluster;
use kube_access::error::RequestError;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use self::reading::WhichContainer;

/// The label of a trial's pod and `ReplicaSet`; its value is the name of the Deployment.
pub const TRIAL_LABEL: &str = "addon-operator/trial";
/// The annotation in which a change by the operator notes the image that it replaced.
pub const FORMER_IMAGE: &str = "addon-operator/former-image";
/// The annotation with the image that the operator wrote, by which it recognises that image as its own.
pub const PATCHED_IMAGE: &str = "addon-operator/patched-image";
/// The annotation with the image that the chart's values named at the time of the operator's last change.
pub const CHART_IMAGE_THEN: &str = "addon-operator/chart-image-then";
/// The annotation in which the chart notes the image of its values.
pub const CHART_IMAGE: &str = "addon-operator/chart-image";

pub(super) const DEPLOYMENTS: &str = "deployments.apps";
pub(super) const REPLICA_SETS: &str = "replicasets.apps";
pub(super) const PODS: &str = "pods";

/// The time to wait for the image in the pod's status: a kubelet reports it shortly after the container's start, and
/// this process may be faster.
const STATUS_PATIENCE: Duration = Duration::from_secs(15);
const STATUS_PAUSE: Duration = Duration::from_millis(500);

/// The result of looking for the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The operator's pod belongs to this installation.
    In(Box<Installation>),
    /// The operator's pod belongs to no Deployment, or this cannot be known; a sentence with the reason.
    Elsewhere(String),
}

/// The Deployment to which the operator's own pod belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The name of the operator's pod.
    pub pod: String,
    /// The image of the operator's container, as its pod names it.
    pub image: String,
    /// The digests of the running version; empty if neither the image's name nor the runtime has one.
    pub digests: BTreeSet<ImageDigest>,
    /// The node of the operator's pod.
    pub node: Option<String>,
    pub deployment: String,
    /// Distinguishes the Deployment from an earlier one with the same name.
    pub deployment_uid: String,
    /// The name of the operator's container, in its pod and in the Deployment's template.
    pub container: String,
    /// Whether the operator's pod is that of a trial.
    pub is_on_trial: bool,
    /// The image pull secrets of the operator's pod.
    pub pull_secrets: Vec<String>,
    /// The service account of the operator's pod.
    pub service_account: Option<String>,
    /// The label selector for the pods of the Deployment and of a trial, in the API server's form.
    pub selector: String,
}

impl Installation {
    /// The name of the `ReplicaSet` of a trial.
    pub fn trial_set(&self) -> String {
        format!("{}-trial", self.deployment)
    }

    /// The value of [`TRIAL_LABEL`]: the name of the Deployment, cut to the length of a label.
    pub fn trial_label(&self) -> &str {
        const LONGEST: usize = 63;
        let fits = self.deployment.len().min(LONGEST);
        self.deployment[..fits].trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
    }

    fn owns(&self, object: &ObjectMeta) -> bool {
        let mut owners = object.owner_references.iter().flatten();
        owners.any(|owner| owner.uid == self.deployment_uid)
    }
}

/// Why no installation was found.
#[derive(Debug, Error)]
enum Lost {
    #[error("{0}")]
    Elsewhere(String),
    #[error("cannot find our own installation")]
    Request(#[from] RequestError),
}

/// Finds the installation of the pod with this name. After an error a later call may find it.
pub async fn installation(cluster: &Cluster, pod: &str) -> Result<Found, RequestError> {
    match search_installation(cluster, pod).await {
        Ok(found) => Ok(Found::In(Box::new(found))),
        Err(Lost::Elsewhere(why)) => Ok(Found::Elsewhere(why)),
        Err(Lost::Request(error)) => Err(error),
    }
}

async fn search_installation(cluster: &Cluster, name: &str) -> Result<Installation, Lost> {
    let pod = started_pod(cluster, name).await?;
    let (set, is_on_trial) = set_of(cluster, &pod).await?;
    let owner = deployment_of(&set, is_on_trial)?;
    let api: Api<Deployment> = Api::namespaced(cluster.open(), cluster.namespace());
    let attempt = cluster.attempt("get", DEPLOYMENTS, &owner.name);
    let found = cluster.ask(attempt, api.get_opt(&owner.name)).await?;
    let deployment = found.filter(|found| found.metadata.uid.as_ref() == Some(&owner.uid));
    let gone = || Lost::Elsewhere(format!("the Deployment '{}' of our pod is gone", owner.name));
    let spec = deployment.and_then(|found| found.spec).ok_or_else(gone)?;
    let selector = selection::read(&spec.selector).map_err(Lost::Elsewhere)?;
    let container = match reading::container_of(&pod) {
        WhichContainer::Named(container) => container,
        WhichContainer::Unclear(names) => return Err(Lost::Elsewhere(no_container(name, &names))),
    };
    let is_in_template = spec
        .template
        .spec
        .is_some_and(|spec| spec.containers.iter().any(|known| known.name == container));
    if !is_in_template {
        let why = format!("the Deployment '{}' has no container '{container}'", owner.name);
        return Err(Lost::Elsewhere(why));
    }
    let spec = pod.spec.as_ref();
    let secrets = spec.and_then(|spec| spec.image_pull_secrets.as_ref());
    Ok(Installation {
        pod: name.to_owned(),
        image: reading::image_in(&pod, &container).unwrap_or_default().to_owned(),
        digests: reading::digests(&pod, &container),
        node: spec.and_then(|spec| spec.node_name.clone()),
        deployment: owner.name,
        deployment_uid: owner.uid,
        container,
        is_on_trial,
        pull_secrets: secrets
            .into_iter()
            .flatten()
            .map(|secret| secret.name.clone())
            .collect(),
        service_account: spec.and_then(|spec| spec.service_account_name.clone()),
        selector,
    })
}

/// The operator's pod. Waits until its status has the image, but not for ever.
async fn started_pod(cluster: &Cluster, name: &str) -> Result<Pod, Lost> {
    let deadline = Instant::now() + STATUS_PATIENCE;
    let api: Api<Pod> = Api::namespaced(cluster.open(), cluster.namespace());
    loop {
        let pod = cluster
            .ask(cluster.attempt("get", PODS, name), api.get_opt(name))
            .await?;
        let Some(pod) = pod else {
            let place = cluster.namespace();
            let why =
                format!("there is no pod '{name}' in namespace '{place}', which ADDON_OPERATOR_POD names as ours");
            return Err(Lost::Elsewhere(why));
        };
        let is_told = match reading::container_of(&pod) {
            WhichContainer::Named(container) => reading::has_image_id(&pod, &container),
            WhichContainer::Unclear(_) => true,
        };
        if is_told || Instant::now() >= deadline {
            return Ok(pod);
        }
        sleep(STATUS_PAUSE).await;
    }
}

/// The `ReplicaSet` of a pod, and whether it is the `ReplicaSet` of a trial.
async fn set_of(cluster: &Cluster, pod: &Pod) -> Result<(ReplicaSet, bool), Lost> {
    let controller = controller(&pod.metadata);
    let Some(owner) = controller.filter(|owner| owner.kind == "ReplicaSet") else {
        return Err(Lost::Elsewhere(not_of_deployment("our pod", controller)));
    };
    let api: Api<ReplicaSet> = Api::namespaced(cluster.open(), cluster.namespace());
    let attempt = cluster.attempt("get", REPLICA_SETS, &owner.name);
    let set = cluster.ask(attempt, api.get_opt(&owner.name)).await?;
    let gone = || Lost::Elsewhere(format!("the ReplicaSet '{}' of our pod is gone", owner.name));
    let set = set.ok_or_else(gone)?;
    let labels = set.metadata.labels.as_ref();
    let is_on_trial = labels.is_some_and(|labels| labels.contains_key(TRIAL_LABEL));
    Ok((set, is_on_trial))
}

/// The Deployment with all fields, including those that this program does not know.
async fn raw_deployment(cluster: &Cluster, name: &str) -> Result<DynamicObject, RequestError> {
    let attempt = cluster.attempt("get", DEPLOYMENTS, name);
    cluster.ask(attempt, raw_deployments(cluster).get(name)).await
}

fn raw_deployments(cluster: &Cluster) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<Deployment>(&());
    Api::namespaced_with(cluster.open(), cluster.namespace(), &resource)
}

#[expect(
    clippy::result_large_err,
    reason = "as large as the errors of the requests beside it"
)]
fn deployment_of(set: &ReplicaSet, is_on_trial: bool) -> Result<OwnerReference, Lost> {
    let mut owners = set.metadata.owner_references.iter().flatten();
    let owner = if is_on_trial {
        owners.find(|owner| owner.kind == "Deployment")
    } else {
        controller(&set.metadata).filter(|owner| owner.kind == "Deployment")
    };
    owner.cloned().ok_or_else(|| {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let subject = format!("the ReplicaSet '{name}' of our pod");
        Lost::Elsewhere(not_of_deployment(&subject, controller(&set.metadata)))
    })
}

fn controller(object: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = object.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

fn not_of_deployment(subject: &str, controller: Option<&OwnerReference>) -> String {
    match controller {
        Some(OwnerReference { kind, name, .. }) => {
            format!("{subject} belongs to {kind} '{name}', and not to a Deployment")
        }
        None => format!("{subject} belongs to nothing, and so to no Deployment"),
    }
}

fn no_container(pod: &str, names: &[String]) -> String {
    format!(
        "the pod '{pod}' has the containers {}, and it is not clear which of them is ours: name it in the annotation {}",
        names.join(", "),
        reading::DEFAULT_CONTAINER
    )
}
