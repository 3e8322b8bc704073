//! A Deployment in a namespace of its own. The test writes the status of its pods, as a kubelet would.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::digest::Digest;
use channel::installation::{Found, Installation};
use channel_core::choice::Target;
use channel_core::reference::ImageDigest;
use channel_core::trial::record::Trial;
use jiff::Timestamp;
use kube_access::Cluster;
use saved_state::trial::{Changed, Kept};
use saved_state::trial::{change_trial, channel_records};
use serde_json::{Value, json};
use testbed::kubectl::KubectlError;
use testbed::part::Part;
use testbed::wait::wait_until;

use crate::cluster::world::{PATIENCE, World};

pub(super) struct Stage {
    pub(super) world: World,
}

/// The digest of the version with that number.
pub(crate) fn digest(number: u8) -> ImageDigest {
    ImageDigest::parse(&format!("sha256:{number:064x}")).unwrap()
}

/// The image of the version with that number, by tag and digest.
pub(super) fn image(number: u8) -> String {
    format!("registry.example.com:5000/ao:v{number}@{}", digest(number))
}

impl Stage {
    /// A Deployment `ao` with this many pods of the first version, all ready.
    pub(super) async fn new(prefix: &str, replicas: u32) -> Self {
        let stage = Self {
            world: World::with(prefix, Part::Helm4).await,
        };
        if replicas > 0 {
            stage.apply(&deployment(replicas));
            stage.roll_out(replicas, 1);
        }
        stage
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.world.tools.ground.cluster
    }

    pub(super) fn kubectl(&self, arguments: &str) -> String {
        self.world.kubectl(arguments)
    }

    pub(super) fn apply(&self, object: &Value) {
        let namespace = &self.world.namespace;
        let kubectl = namespace.kubectl_as(testbed::plane::User::Admin);
        kubectl.apply(&object.to_string()).unwrap();
    }

    pub(super) fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.kubectl(&format!("{arguments} --output=json"))).unwrap()
    }

    pub(super) fn deployment(&self) -> Value {
        self.json("get deployment ao --show-managed-fields")
    }

    pub(super) fn image(&self) -> String {
        let containers = &self.deployment()["spec"]["template"]["spec"]["containers"];
        containers[0]["image"].as_str().unwrap().to_owned()
    }

    /// All field managers in `managedFields` of the Deployment.
    pub(super) fn managers(&self) -> Vec<String> {
        let made = self.deployment();
        let entries = made["metadata"]["managedFields"].as_array().unwrap().iter();
        entries
            .map(|entry| entry["manager"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The pods of the Deployment that are not being deleted, without that of a trial.
    pub(super) fn pods(&self) -> Vec<String> {
        self.named("app=ao,!addon-operator/trial")
    }

    fn named(&self, selector: &str) -> Vec<String> {
        let pods = self.json(&format!("get pods --selector={selector}"));
        let pods = pods["items"].as_array().unwrap().iter();
        let staying = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        staying
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The only pod with these labels; waits for it.
    pub(super) fn pod_of(&self, selector: &str) -> String {
        let look = || match &self.named(selector)[..] {
            [one] => Ok(Some(one.clone())),
            others => Err(format!("{others:?}")),
        };
        wait_until(PATIENCE, "one pod", look).unwrap()
    }

    /// Writes the status of a pod that runs this version and is ready.
    pub(super) fn tell_running(&self, pod: &str, version: u8) {
        self.tell(pod, &running(version));
    }

    pub(super) fn tell(&self, pod: &str, status: &Value) {
        self.try_to_tell(pod, status).unwrap();
    }

    fn try_to_tell(&self, pod: &str, status: &Value) -> Result<String, KubectlError> {
        let patch = json!({"status": status}).to_string();
        let arguments = [
            "patch",
            "pod",
            pod,
            "--subresource=status",
            "--type=merge",
            "--patch",
            &patch,
        ];
        self.world.namespace.kubectl(arguments)
    }

    /// Writes the status of new pods as ready, until the Deployment has exactly the pods that it wants.
    pub(super) fn roll_out(&self, replicas: u32, version: u8) {
        let look = || {
            for pod in self.pods() {
                // The pod may have been deleted meanwhile.
                let told = self.try_to_tell(&pod, &running(version));
                let told = told.map_err(|error| error.to_string());
                assert!(
                    told.as_ref().map_or_else(|said| said.contains("NotFound"), |_| true),
                    "{told:?}"
                );
            }
            let made = self.deployment();
            let status = &made["status"];
            let is_done = status["observedGeneration"] == made["metadata"]["generation"]
                && status["updatedReplicas"] == replicas
                && status["availableReplicas"] == replicas
                && status["replicas"] == replicas;
            if is_done { Ok(Some(())) } else { Err(status.to_string()) }
        };
        wait_until(PATIENCE, "a rollout", look).unwrap();
    }

    /// The hash of the pod template, as the operator observes it.
    pub(super) fn template(&self) -> String {
        Digest::of(&self.deployment()["spec"]["template"]).to_string()
    }

    /// Writes the record of a trial of this version, in place of any other, and returns it.
    pub(super) async fn record(&self, version: u8) -> Trial {
        let trial = trial(version, &self.template());
        let standing = match channel_records(self.cluster()).await.unwrap().trial {
            Kept::Is(standing) => Some(standing),
            Kept::Absent => None,
            Kept::Unreadable(why) => unreachable!("{why}"),
        };
        let changed = change_trial(self.cluster(), standing.as_ref(), Some(&trial)).await;
        assert_eq!(changed.unwrap(), Changed::Done);
        trial
    }

    pub(super) async fn installation(&self, pod: &str) -> Installation {
        match channel::installation::installation(self.cluster(), pod).await.unwrap() {
            Found::In(found) => *found,
            Found::Elsewhere(why) => unreachable!("{why}"),
        }
    }
}

/// The record of a trial of this version with this pod template.
pub(crate) fn trial(version: u8, template: &str) -> Trial {
    let to = Target {
        tag: None,
        digest: digest(version),
        version: None,
    };
    Trial {
        from: [digest(1)].into(),
        image: image(1),
        to,
        to_digests: [digest(version)].into(),
        template: template.to_owned(),
        failing: BTreeSet::new(),
        unwell: BTreeSet::new(),
        revisions: BTreeMap::new(),
        begun: Timestamp::now(),
        by: "a".to_owned(),
        channel: None,
        is_approved: false,
        limit: Duration::from_mins(15),
        pod: None,
        lost: 0,
        handed: 0,
        verdict: None,
    }
}

/// A `ReplicaSet` without an owner.
pub(super) fn loose_set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "addon-operator", "image": image(1)}]},
        }},
    })
}

/// The status of a pod that runs this version and is ready.
fn running(version: u8) -> Value {
    json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "containerStatuses": [status(version, &json!({"running": {}}), 0)],
    })
}

/// The status of the operator's container.
pub(super) fn status(version: u8, state: &Value, restarts: u32) -> Value {
    json!({
        "name": "addon-operator", "image": "ao", "imageID": format!("registry.example.com:5000/ao@{}", digest(version)),
        "ready": state.get("running").is_some(), "restartCount": restarts, "state": state,
    })
}

pub(super) fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "ao", "labels": {"app": "ao", "helm.sh/chart": "addon-operator-0.3.0"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "ao"}}, "template": {
            "metadata": {"labels": {"app": "ao"}},
            "spec": {
                "imagePullSecrets": [{"name": "mine"}],
                "containers": [{"name": "addon-operator", "image": image(1), "imagePullPolicy": "Always"}],
            },
        }},
    })
}
