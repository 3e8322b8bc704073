//! Our own installation: the pod that we are, the Deployment that wants it, and how both are found.
//!
//! A Deployment is ours if our pod belongs to a `ReplicaSet` of it, or to the `ReplicaSet` of a trial that names it as
//! an owner. Must never guess: a pod that belongs to anything else is no installation, and the answer tells the reason.

mod kept;
mod nodes;
pub mod patching;
mod reading;
mod selection;
pub mod trial_set;
pub mod watching;

use std::collections::BTreeSet;
use std::time::Duration;

use addon_core::artifact::reference::ImageDigest;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::core::{ApiResource, DynamicObject};
use thiserror::Error;
use tokio::time::{Instant, sleep};

use self::reading::WhichContainer;
use super::Cluster;
use super::error::RequestError;

/// Marks the pod of a trial and its `ReplicaSet`; the value is the name of the Deployment.
pub const TRIAL_LABEL: &str = "addon-operator/trial";
/// The annotation in which a patch of ours notes the image that it replaced.
pub const FORMER_IMAGE: &str = "addon-operator/former-image";
/// The annotation with the image that the operator wrote: that one counts as ours.
pub const PATCHED_IMAGE: &str = "addon-operator/patched-image";
/// The annotation in which it notes the image that the chart's values named by then.
pub const CHART_IMAGE_THEN: &str = "addon-operator/chart-image-then";
/// The annotation in which the chart notes the image that its values name.
pub const CHART_IMAGE: &str = "addon-operator/chart-image";

pub(super) const DEPLOYMENTS: &str = "deployments.apps";
pub(super) const REPLICA_SETS: &str = "replicasets.apps";
pub(super) const PODS: &str = "pods";

/// A kubelet tells which image a container runs shortly after it has started it, and our process may be faster.
const STATUS_PATIENCE: Duration = Duration::from_secs(15);
const STATUS_PAUSE: Duration = Duration::from_millis(500);

/// The outcome of a look for our own installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// We are a pod of this one.
    In(Box<Installation>),
    /// We are not in a Deployment, or cannot know: a sentence with the reason.
    Elsewhere(String),
}

/// A Deployment that our own pod belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Our pod.
    pub pod: String,
    /// The image of our container as our pod names it.
    pub image: String,
    /// The digests of our version; none if neither the name of the image nor the runtime has one.
    pub digests: BTreeSet<ImageDigest>,
    /// The node that our pod is on.
    pub node: Option<String>,
    /// The Deployment.
    pub deployment: String,
    /// Tells it from one of the same name that was there before.
    pub deployment_uid: String,
    /// Our container, in our pod and in the template of the Deployment.
    pub container: String,
    /// Our pod is that of a trial.
    pub is_on_trial: bool,
    /// The Secrets with credentials for registries that our pod names.
    pub pull_secrets: Vec<String>,
    /// The service account of our pod.
    pub service_account: Option<String>,
    /// Finds the pods of the Deployment and that of a trial, written as the API server takes it.
    pub selector: String,
}

impl Installation {
    /// The `ReplicaSet` of a trial.
    pub fn trial_set(&self) -> String {
        format!("{}-trial", self.deployment)
    }

    /// The value of [`TRIAL_LABEL`]: the name of the Deployment, as much of it as a label takes.
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

impl Cluster {
    /// Finds the installation that the pod of this name belongs to. After an error it may be found later.
    pub async fn installation(&self, pod: &str) -> Result<Found, RequestError> {
        match self.search_installation(pod).await {
            Ok(found) => Ok(Found::In(Box::new(found))),
            Err(Lost::Elsewhere(why)) => Ok(Found::Elsewhere(why)),
            Err(Lost::Request(error)) => Err(error),
        }
    }

    async fn search_installation(&self, name: &str) -> Result<Installation, Lost> {
        let pod = self.started_pod(name).await?;
        let (set, is_on_trial) = self.set_of(&pod).await?;
        let owner = deployment_of(&set, is_on_trial)?;
        let api: Api<Deployment> = Api::namespaced(self.open.clone(), &self.namespace);
        let attempt = self.attempt("get", DEPLOYMENTS, &owner.name);
        let found = self.ask(attempt, api.get_opt(&owner.name)).await?;
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

    /// Our pod, once its status names its image; after a time also without that.
    async fn started_pod(&self, name: &str) -> Result<Pod, Lost> {
        let deadline = Instant::now() + STATUS_PATIENCE;
        let api: Api<Pod> = Api::namespaced(self.open.clone(), &self.namespace);
        loop {
            let pod = self.ask(self.attempt("get", PODS, name), api.get_opt(name)).await?;
            let Some(pod) = pod else {
                let place = &self.namespace;
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

    /// The `ReplicaSet` that a pod belongs to, and whether it is that of a trial.
    async fn set_of(&self, pod: &Pod) -> Result<(ReplicaSet, bool), Lost> {
        let controller = controller(&pod.metadata);
        let Some(owner) = controller.filter(|owner| owner.kind == "ReplicaSet") else {
            return Err(Lost::Elsewhere(not_of_deployment("our pod", controller)));
        };
        let api: Api<ReplicaSet> = Api::namespaced(self.open.clone(), &self.namespace);
        let attempt = self.attempt("get", REPLICA_SETS, &owner.name);
        let set = self.ask(attempt, api.get_opt(&owner.name)).await?;
        let gone = || Lost::Elsewhere(format!("the ReplicaSet '{}' of our pod is gone", owner.name));
        let set = set.ok_or_else(gone)?;
        let labels = set.metadata.labels.as_ref();
        let is_on_trial = labels.is_some_and(|labels| labels.contains_key(TRIAL_LABEL));
        Ok((set, is_on_trial))
    }

    /// A Deployment as it stands there, with all that this program does not know.
    async fn raw_deployment(&self, name: &str) -> Result<DynamicObject, RequestError> {
        let attempt = self.attempt("get", DEPLOYMENTS, name);
        self.ask(attempt, self.raw_deployments().get(name)).await
    }

    fn raw_deployments(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<Deployment>(&());
        Api::namespaced_with(self.open.clone(), &self.namespace, &resource)
    }
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
