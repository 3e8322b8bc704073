//! A look at the cluster and at the operator, at one time.

use std::collections::BTreeMap;

use serde_json::Value;
use testbed::reader::Only;

use super::Places;
use super::outside::Operator;

/// The label with the name of the module on all its pods.
pub(super) const LABEL: &str = "case";

/// The kinds of workloads.
const WORKLOADS: [&str; 4] = ["deployments", "statefulsets", "daemonsets", "jobs"];

pub(super) struct Look {
    pods: Vec<Value>,
    events: Vec<Value>,
    workloads: Vec<(&'static str, Value)>,
    modules: BTreeMap<String, (String, String)>,
}

impl Look {
    pub(super) fn take(places: &Places<'_>, operator: &Operator<'_>) -> Result<Self, String> {
        let (mut pods, mut events, mut workloads) = (Vec::new(), Vec::new(), Vec::new());
        for place in places.all() {
            let list = |kind| place.objects(kind, Only::All).map_err(|error| error.to_string());
            pods.extend(list("pods")?);
            events.extend(list("events")?);
            for kind in WORKLOADS {
                workloads.extend(list(kind)?.into_iter().map(|object| (kind, object)));
            }
        }
        Ok(Self {
            pods,
            events,
            workloads,
            modules: operator.healths()?,
        })
    }

    pub(super) fn pods<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        let is_of = move |pod: &&Value| pod["metadata"]["labels"][LABEL] == name;
        self.pods.iter().filter(is_of)
    }

    /// Whether there is an Event with this reason about an object of the module.
    pub(super) fn has_event(&self, name: &str, reason: &str) -> bool {
        self.events.iter().any(|event| {
            let of = event["involvedObject"]["name"].as_str().unwrap_or_default();
            let rest = of.strip_prefix(name);
            event["reason"] == reason && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    }

    /// The workload of the module's name.
    pub(super) fn workload(&self, name: &str) -> Option<&Value> {
        let mut all = self.workloads.iter();
        all.find(|(_, object)| object["metadata"]["name"] == name)
            .map(|(_, object)| object)
    }

    /// Whether the cluster shows no trouble of the module.
    pub(super) fn is_well(&self, name: &str) -> bool {
        let mut of_module = self
            .workloads
            .iter()
            .filter(|(_, object)| object["spec"]["template"]["metadata"]["labels"][LABEL] == name);
        of_module.all(|(kind, object)| {
            let (spec, status) = (&object["spec"], &object["status"]);
            let is_seen = object["metadata"]["generation"] == status["observedGeneration"];
            match *kind {
                "deployments" => {
                    let all = ["replicas", "updatedReplicas", "availableReplicas"];
                    is_seen && all.iter().all(|count| status[*count] == spec["replicas"])
                }
                "statefulsets" => is_seen && status["readyReplicas"] == spec["replicas"],
                "daemonsets" => is_seen && status["numberReady"] == status["desiredNumberScheduled"],
                _ => status["succeeded"] == 1,
            }
        })
    }

    /// The health of a module.
    pub(super) fn health(&self, name: &str) -> &str {
        self.modules.get(name).map_or("", |(health, _)| health)
    }

    /// The sentence about a module; empty if there is none.
    pub(super) fn sentence(&self, name: &str) -> &str {
        self.modules.get(name).map_or("", |(_, sentence)| sentence)
    }
}
