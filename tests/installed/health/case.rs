//! One case: a module, the trouble that it has, the sentence for it, and its end.

use serde_json::Value;

use super::Places;
use super::look::Look;

/// A module with one trouble. Its objects and its pods have its name.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The module's description, if it has one.
    pub(super) description: &'static str,
    /// The custom resource definitions.
    pub(super) kinds: Vec<Value>,
    /// The objects with the trouble.
    pub(super) ill: Vec<Value>,
    /// The objects without it, after an edit.
    pub(super) well: Vec<Value>,
    /// How the cluster shows the trouble.
    pub(super) sign: Sign,
    /// The sentences of the operator, one after the other.
    pub(super) steps: Vec<Step>,
    pub(super) cure: Cure,
}

/// A sign of a trouble in the cluster.
pub(super) enum Sign {
    /// A container waits for one of these reasons.
    Waits(&'static [&'static str]),
    /// A container has crashed and is not ready.
    Crash,
    /// An init container runs.
    Init,
    /// An Event with this reason.
    Event(&'static str),
    /// A pod was refused by the scheduler.
    Unplaced,
    /// A pod was given to a node.
    Placed,
    /// A Job has started, or has failed.
    Job(&'static str),
    /// There is nothing to see.
    Nothing,
}

impl Sign {
    pub(super) fn is_in(&self, look: &Look, name: &str) -> bool {
        let containers = |list: &str, is: &dyn Fn(&Value) -> bool| {
            look.pods(name).any(|pod| {
                let statuses = pod["status"][list].as_array();
                statuses.is_some_and(|statuses| statuses.iter().any(is))
            })
        };
        let waits = |reasons: &[&str]| {
            let is = |status: &Value| {
                let reason = status["state"]["waiting"]["reason"].as_str();
                reason.is_some_and(|reason| reasons.contains(&reason))
            };
            containers("containerStatuses", &is)
        };
        let scheduled = |status: &str| {
            look.pods(name).any(|pod| {
                let conditions = pod["status"]["conditions"].as_array();
                let is = |condition: &Value| condition["type"] == "PodScheduled" && condition["status"] == status;
                conditions.is_some_and(|conditions| conditions.iter().any(is))
            })
        };
        match self {
            Self::Waits(reasons) => waits(reasons),
            Self::Crash => containers("containerStatuses", &|status| {
                let has_ended = |state: &str| !status[state]["terminated"].is_null();
                status["ready"] == false && (has_ended("lastState") || has_ended("state"))
            }),
            Self::Init => containers("initContainerStatuses", &|status| !status["state"]["running"].is_null()),
            Self::Event(reason) => look.has_event(name, reason),
            Self::Unplaced => scheduled("False"),
            Self::Placed => scheduled("True"),
            Self::Job(path) => look.workload(name).is_some_and(|job| !job["status"][path].is_null()),
            Self::Nothing => false,
        }
    }
}

/// A sentence of the operator, or the words in it.
pub(super) struct Step {
    /// The health; empty if it is not asked for.
    pub(super) health: &'static str,
    /// Texts in the sentence.
    pub(super) words: Vec<String>,
}

impl Step {
    /// The difference from the expected sentence.
    pub(super) fn lacks(&self, look: &Look, name: &str) -> Option<String> {
        let (health, sentence) = (look.health(name), look.sentence(name));
        let is_told = self.words.iter().all(|word| sentence.contains(word));
        let is_so = self.health.is_empty() || self.health == health;
        (!is_told || !is_so).then(|| format!("{} {:?} instead of {health}: {sentence}", self.health, self.words))
    }
}

/// The end of a trouble.
pub(super) enum Cure {
    /// An edit of the module's values.
    Edit,
    /// A file in a container of the pod whose name begins with this.
    File(String, &'static str),
    /// A command of kubectl.
    Kubectl(Vec<String>),
    /// An object that is missing.
    Object(Value),
    /// The trouble needs no end.
    None,
}

impl Cure {
    pub(super) fn apply(&self, places: &Places<'_>) {
        match self {
            Self::Edit | Self::None => {}
            Self::File(begin, container) => {
                let pods = places.own.objects("pods", testbed::reader::Only::All).unwrap();
                let names = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str());
                let pod = names.into_iter().find(|name| name.starts_with(begin)).unwrap();
                let words = ["exec", pod, "-c", container, "--", "touch", "/tmp/go"];
                places.own.kubectl(words).unwrap();
            }
            Self::Kubectl(words) => drop(places.own.kubectl(words).unwrap()),
            Self::Object(object) => {
                let admin = places.own.kubectl_as(testbed::plane::User::Admin);
                admin.feed(["create", "--filename=-"], &object.to_string()).unwrap();
            }
        }
    }
}
