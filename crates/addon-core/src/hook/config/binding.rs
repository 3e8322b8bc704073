//! The bindings that a configuration can hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crontab::schedule::Crontab;
use names::{BindingName, QueueName};
use serde::{Deserialize, Serialize};

/// A condition on snapshots. An event makes a run only if the condition is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The bindings whose snapshots are looked at.
    pub snapshots: Vec<BindingName>,
    /// The jq filter that judges the snapshots; `None`: one of the snapshots must have an object.
    pub jq_filter: Option<String>,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleBinding {
    /// The name of the binding in binding contexts.
    pub name: BindingName,
    /// The times.
    pub crontab: Crontab,
    /// Whether a failed run is ignored instead of retried.
    pub allow_failure: bool,
    /// The deadline of a run; `None`: the deadline of the hook or of the policy.
    pub timeout: Option<Duration>,
    /// The bindings whose snapshots the contexts include. All bindings of the same group are among them.
    pub include_snapshots_from: Vec<BindingName>,
    /// The queue of the binding's runs.
    pub queue: QueueName,
    /// The group. Bindings of a group share one context.
    pub group: Option<String>,
    /// The condition that must be met for the hook to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
}

/// The kind of a change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WatchEvent {
    /// The object is new, or newly selected.
    Added,
    /// The object has changed.
    Modified,
    /// The object was deleted, or is no longer selected.
    Deleted,
}

/// A binding to objects that a hook watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesBinding {
    /// The name of the binding in binding contexts, and of its snapshot.
    pub name: BindingName,
    /// The group and version; `None`: the kind decides.
    pub api_version: Option<String>,
    /// The kind, plural or short name of the resource.
    pub kind: String,
    /// The changes that make the hook run; empty to keep only the snapshot.
    pub events: BTreeSet<WatchEvent>,
    /// Whether the hook has a first run for the existing objects.
    pub run_on_synchronization: bool,
    /// Whether the module waits for the hook's first run.
    pub wait_for_synchronization: bool,
    /// Whether contexts contain whole objects.
    pub keep_full_objects: bool,
    /// The jq filter that is applied to each object.
    pub jq_filter: Option<String>,
    /// Whether a failed run is ignored instead of retried.
    pub allow_failure: bool,
    /// The deadline of a run; `None`: the deadline of the hook or of the policy.
    pub timeout: Option<Duration>,
    /// The names of the objects; empty for all.
    pub names: Vec<String>,
    /// The labels of the objects.
    pub labels: Option<LabelSelector>,
    /// The fields of the objects.
    pub fields: Vec<FieldRequirement>,
    /// The namespaces of the objects; `None` for all.
    pub namespaces: Option<NamespaceSelector>,
    /// The bindings whose snapshots the contexts include. All bindings of the same group are among them.
    pub include_snapshots_from: Vec<BindingName>,
    /// The queue of the binding's runs.
    pub queue: QueueName,
    /// The group. Bindings of a group share one context.
    pub group: Option<String>,
    /// The condition that must be met for a change to make a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
}

/// A selector by labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that an object must have, each with its value.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<LabelRequirement>,
}

/// The comparison of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// The comparison.
    pub operator: Operator,
    /// The values to compare with.
    #[serde(default)]
    pub values: Vec<String>,
}

/// A requirement on one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldRequirement {
    /// The field.
    pub field: String,
    /// Whether the field must equal the value, or must differ from it.
    pub equals: bool,
    /// The value with which the field is compared.
    pub value: String,
}

/// A selector of namespaces. If it has labels, the names are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceSelector {
    /// The names of namespaces.
    pub names: Vec<String>,
    /// The labels of namespaces.
    pub labels: Option<LabelSelector>,
}

/// The failure policy: the action of the API server when a hook gives no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// The API server accepts the request.
    Ignore,
    /// The API server refuses the request.
    Fail,
}

/// Whether a review has side effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SideEffects {
    /// A review never has side effects.
    None,
    /// A review has no side effects in a dry run.
    NoneOnDryRun,
}

/// A condition in CEL under which a request is reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCondition {
    /// The condition's name.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// The requests that a binding reviews.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRule {
    /// The API groups of resources.
    pub api_groups: Vec<String>,
    /// The API versions of resources.
    pub api_versions: Vec<String>,
    /// Resources.
    pub resources: Vec<String>,
    /// Operations.
    pub operations: Vec<String>,
    /// `Cluster`, `Namespaced` or `*`.
    pub scope: Option<String>,
}

/// A binding to requests that a hook allows, denies or changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionBinding {
    /// The full name of the webhook.
    pub name: BindingName,
    /// The group. Bindings of a group share one context.
    pub group: Option<String>,
    /// The bindings whose snapshots the contexts include. All bindings of the same group are among them.
    pub include_snapshots_from: Vec<BindingName>,
    /// The failure policy.
    pub failure_policy: FailurePolicy,
    /// Whether the review has side effects.
    pub side_effects: SideEffects,
    /// The time that the API server waits, in seconds.
    pub timeout_seconds: i64,
    /// The deadline of a run; `None`: the deadline of the hook or of the policy.
    pub timeout: Option<Duration>,
    /// Conditions on requests.
    pub match_conditions: Vec<MatchCondition>,
    /// The labels of objects.
    pub labels: Option<LabelSelector>,
    /// The labels of namespaces.
    pub namespaces: Option<LabelSelector>,
    /// The requests.
    pub rules: Vec<ReviewRule>,
}

/// A conversion between two versions that a hook can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionRule {
    /// The version that the hook converts from.
    pub from_version: String,
    /// The version that the hook converts to.
    pub to_version: String,
}

/// A binding to a resource that a hook converts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionBinding {
    /// The name of the binding in binding contexts.
    pub name: BindingName,
    /// The name of the `CustomResourceDefinition` whose objects are converted.
    pub crd_name: String,
    /// The conversions that the hook can do.
    pub conversions: Vec<ConversionRule>,
    /// The deadline of a run; `None`: the deadline of the hook or of the policy.
    pub timeout: Option<Duration>,
    /// The group. Bindings of a group share one context.
    pub group: Option<String>,
    /// The bindings whose snapshots the contexts include. All bindings of the same group are among them.
    pub include_snapshots_from: Vec<BindingName>,
}
