//! The bindings that a configuration can hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::hook::crontab::Crontab;
use crate::name::{BindingName, QueueName};

/// A time at which a hook runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleBinding {
    /// Name in contexts.
    pub name: BindingName,
    /// When.
    pub crontab: Crontab,
    /// Whether a failed run is let pass.
    pub allow_failure: bool,
    /// How long a run may take; nothing for the limit of all hooks.
    pub timeout: Option<Duration>,
    /// Snapshots that a context brings along, those of the group included.
    pub include_snapshots_from: Vec<BindingName>,
    /// The queue of the runs.
    pub queue: QueueName,
    /// The group, whose bindings share one context.
    pub group: Option<String>,
}

/// A change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WatchEvent {
    /// It is new, or newly matches.
    Added,
    /// It differs.
    Modified,
    /// It is deleted, or no longer matches.
    Deleted,
}

/// Objects that a hook watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesBinding {
    /// Name in contexts and of the snapshot.
    pub name: BindingName,
    /// Group and version; nothing to look the kind up.
    pub api_version: Option<String>,
    /// Kind, plural or short name.
    pub kind: String,
    /// Events that make the hook run; none to keep the snapshot only.
    pub events: BTreeSet<WatchEvent>,
    /// Whether the hook runs for the objects that are there at first.
    pub run_on_synchronization: bool,
    /// Whether others wait for that run.
    pub wait_for_synchronization: bool,
    /// Whether contexts hold whole objects.
    pub keep_full_objects: bool,
    /// The filter that is applied to each object.
    pub jq_filter: Option<String>,
    /// Whether a failed run is let pass.
    pub allow_failure: bool,
    /// How long a run may take; nothing for the limit of all hooks.
    pub timeout: Option<Duration>,
    /// Names of objects; empty for all.
    pub names: Vec<String>,
    /// Labels of objects.
    pub labels: Option<LabelSelector>,
    /// Fields of objects.
    pub fields: Vec<FieldRequirement>,
    /// Namespaces of objects; nothing for all.
    pub namespaces: Option<NamespaceSelector>,
    /// Snapshots that a context brings along, those of the group included.
    pub include_snapshots_from: Vec<BindingName>,
    /// The queue of the runs.
    pub queue: QueueName,
    /// The group, whose bindings share one context.
    pub group: Option<String>,
}

/// Which labels something must have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels with their values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<LabelRequirement>,
}

/// How a label is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// Its value is one of those given.
    In,
    /// It is absent or its value is none of those given.
    NotIn,
    /// It is there.
    Exists,
    /// It does not exist.
    DoesNotExist,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// How it is looked at.
    pub operator: Operator,
    /// Values it is compared with.
    #[serde(default)]
    pub values: Vec<String>,
}

/// A requirement on one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldRequirement {
    /// The field.
    pub field: String,
    /// Whether it must equal the value, or must not.
    pub equals: bool,
    /// The value.
    pub value: String,
}

/// Which namespaces are meant. Labels win over names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceSelector {
    /// Their names.
    pub names: Vec<String>,
    /// Their labels.
    pub labels: Option<LabelSelector>,
}

/// The failure policy: the action of the API server when a hook gives no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// The request is accepted.
    Ignore,
    /// It refuses the request.
    Fail,
}

/// Whether a review changes anything outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SideEffects {
    /// Never.
    None,
    /// Not if it is a dry run.
    NoneOnDryRun,
}

/// A condition in CEL under which a request is reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCondition {
    /// Its name.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// Requests that are reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRule {
    /// Groups of resources.
    pub api_groups: Vec<String>,
    /// Versions of resources.
    pub api_versions: Vec<String>,
    /// Resources.
    pub resources: Vec<String>,
    /// Operations.
    pub operations: Vec<String>,
    /// `Cluster`, `Namespaced` or `*`.
    pub scope: Option<String>,
}

/// Requests that a hook allows, denies or changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionBinding {
    /// Full name of the webhook.
    pub name: BindingName,
    /// The group, whose bindings share one context.
    pub group: Option<String>,
    /// Snapshots that a context brings along, those of the group included.
    pub include_snapshots_from: Vec<BindingName>,
    /// The failure policy for the case that the hook gives no answer.
    pub failure_policy: FailurePolicy,
    /// The other side effects of the review.
    pub side_effects: SideEffects,
    /// How long the API server waits.
    pub timeout_seconds: i64,
    /// How long a run may take; nothing for the limit of all hooks.
    pub timeout: Option<Duration>,
    /// Conditions on requests.
    pub match_conditions: Vec<MatchCondition>,
    /// Labels of objects.
    pub labels: Option<LabelSelector>,
    /// Labels of namespaces.
    pub namespaces: Option<LabelSelector>,
    /// Requests.
    pub rules: Vec<ReviewRule>,
}

/// From which version to which a hook converts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionRule {
    /// From this version.
    pub from_version: String,
    /// To this version.
    pub to_version: String,
}

/// A resource that a hook converts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionBinding {
    /// Name in contexts.
    pub name: BindingName,
    /// Name of the resource definition.
    pub crd_name: String,
    /// Conversions that the hook can do.
    pub conversions: Vec<ConversionRule>,
    /// How long a run may take; nothing for the limit of all hooks.
    pub timeout: Option<Duration>,
    /// The group, whose bindings share one context.
    pub group: Option<String>,
    /// Snapshots that a context brings along, those of the group included.
    pub include_snapshots_from: Vec<BindingName>,
}
