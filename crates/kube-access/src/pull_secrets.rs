//! The Secrets with which the image of a pod is pulled.
//!
//! The pod lists their names, for the kubelet, too. The names from its service account were copied into the pod when it
//! was created. Must never show any part of the Secrets.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use crate::Cluster;
use crate::error::RequestError;

const CONFIG: &str = ".dockerconfigjson";
const OLD_CONFIG: &str = ".dockercfg";

/// The form of logins in a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The present form of `docker login`.
    Config,
    /// The older form of `docker login`.
    OldConfig,
}

#[derive(Clone, PartialEq, Eq)]
pub struct PullSecret {
    /// The name of the Secret.
    pub name: String,
    /// The form of the text.
    pub form: Form,
    /// The text of the Secret, which is never shown.
    pub text: Vec<u8>,
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullSecret")
            .field("name", &self.name)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// The pull secrets of a pod, in the order of the pod's list. A Secret that does not exist is left out, as by the
    /// kubelet.
    pub async fn pull_secrets(&self, pod: &str) -> Result<Vec<PullSecret>, RequestError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let found = self.ask(self.attempt("get", "pods", pod), pods.get(pod)).await?;
        let listed = found.spec.and_then(|spec| spec.image_pull_secrets).unwrap_or_default();
        let mut names = BTreeSet::new();
        let mut secrets = Vec::new();
        for name in listed.into_iter().map(|listed| listed.name) {
            if name.is_empty() || !names.insert(name.clone()) {
                continue;
            }
            let attempt = self.attempt("get", "secrets", &name);
            let secret = self.ask(attempt, self.secrets().get_opt(&name)).await?;
            let mut data = secret.and_then(|secret| secret.data).unwrap_or_default();
            for (key, form) in [(CONFIG, Form::Config), (OLD_CONFIG, Form::OldConfig)] {
                secrets.extend(data.remove(key).map(|text| PullSecret {
                    name: name.clone(),
                    form,
                    text: text.0,
                }));
            }
        }
        Ok(secrets)
    }
}
