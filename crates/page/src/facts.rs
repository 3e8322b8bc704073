//! Facts about the operator and its modules, as the program hands them over.
//!
//! Texts are those of the debug socket, so that a command and the page say the same. Must never hold a secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The facts of the overview: the operator and all modules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fleet {
    pub operator: Operator,
    /// All modules, by order and name.
    pub modules: Vec<Module>,
}

/// The facts about the operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Operator {
    /// The version of the program.
    pub version: String,
    /// The namespace of the releases.
    pub namespace: String,
    /// The name of the pod; empty outside of a cluster.
    pub pod: String,
    /// The name of the ConfigMap with the configuration.
    pub config_map: String,
    /// Whether the first converge has ended.
    pub ready: bool,
    /// The number of tasks of the running converge; 0 if none runs.
    pub converge_tasks: usize,
    /// The obstacles of the first converge.
    pub waiting: Vec<String>,
    /// Keys of the ConfigMap that cannot be used, with the reason.
    pub config_problems: BTreeMap<String, String>,
    /// Releases whose configuration is lost.
    pub config_lost: Vec<String>,
    /// Keys of the ConfigMap that are too large to be remembered.
    pub unkept: Vec<String>,
    /// Global hooks that fail while values of an earlier run serve for them.
    pub old_values: Vec<String>,
    /// Removals that are held.
    pub held: Vec<HeldRemoval>,
    /// Modules that wait until the trial of this version is passed.
    pub held_by_trial: Vec<String>,
}

/// A removal that is held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldRemoval {
    /// The name of the release.
    pub release: String,
    /// The sign that it is to be removed.
    pub sign: String,
    /// The reason why it is held.
    pub reason: String,
    /// Whether a person can confirm it.
    pub confirmable: bool,
}

/// The facts about a module that the overview needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    pub name: String,
    /// The order number.
    pub order: u32,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Whether a source has decided about it.
    pub decided: bool,
    /// The source of the decision.
    pub enabled_by: String,
    /// The word of `module list`.
    pub state: String,
    /// `Healthy`, `RollingOut`, `Unhealthy` or `Unknown`.
    pub health: String,
    /// The sentence about the object for which it is not healthy.
    pub unhealthy: Option<String>,
    /// The time since which it is not healthy, in seconds since 1970.
    pub unhealthy_since: Option<i64>,
    /// Whether it needs the attention of a person.
    pub fails: bool,
    /// The number of failed attempts in a row.
    pub failures: u32,
    /// The error of the last attempt.
    pub error: Option<String>,
    /// The remedies.
    pub hints: Vec<String>,
    /// Warnings about objects of the release.
    pub remarks: Vec<String>,
    /// The obstacle that it waits for.
    pub waits_for: String,
    /// Whether its run hangs, so that other modules go on without it.
    pub late: bool,
    /// The modules that it depends on.
    pub depends_on: Vec<String>,
    /// The modules whose turn has to be over before.
    pub after: Vec<String>,
    /// The tasks that failed and are retried.
    pub failing: Vec<Failing>,
    /// Whether the upgrade of its release waits for a person.
    pub upgrade_held: bool,
    /// Whether people maintain its objects.
    pub in_maintenance: bool,
    /// The errors in its keys of the ConfigMap.
    pub config_problems: Vec<String>,
    /// The version of its chart.
    pub version: Option<String>,
    /// The source of its files, if it is a registry.
    pub source: Option<String>,
    /// The revision of its release.
    pub revision: Option<u32>,
    /// The number of objects of its release.
    pub objects: Option<u32>,
    /// The number of those that do not work.
    pub ailing: Option<u32>,
    /// Differences between the release and its objects that are left to other writers, a sentence each.
    pub drift: Vec<String>,
}

/// A task that failed and is retried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failing {
    pub queue: String,
    /// `ModuleRun`, `ModuleHookRun`, …
    pub task: String,
    /// The hook; empty if the task has none.
    pub hook: String,
    /// The number of failed attempts in a row.
    pub failures: u32,
    /// The error of the last attempt.
    pub error: String,
    /// The time of the next attempt, in seconds since 1970.
    pub next_try: Option<i64>,
}

/// The facts about one module beside those of the overview.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail {
    /// The objects of its release.
    pub objects: Vec<Object>,
    /// The effective values, without the key of the module around them.
    pub values: Value,
    /// The section of the ConfigMap, likewise; null without one.
    pub section: Value,
    /// The values without the section and without hooks, likewise.
    pub defaults: Value,
    /// The operations of hooks on the values, as JSON patches.
    pub patches: Value,
    /// The revisions that helm keeps.
    pub history: Vec<Revision>,
    /// The hooks, each with its kubernetes bindings.
    pub hooks: BTreeMap<String, Vec<String>>,
    /// The last run of each hook, by its name.
    pub last_runs: BTreeMap<String, LastRun>,
    /// The recorded runs of its hooks.
    pub runs: Vec<Run>,
    /// The queues with a task of the module.
    pub queues: Vec<Queue>,
}

/// An object of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Object {
    pub kind: String,
    /// The namespace; empty for a cluster-wide object.
    pub namespace: String,
    pub name: String,
    /// `Healthy`, `RollingOut`, `Failed`, `Unknown` or `Ignored`.
    pub health: String,
    /// The state for people; empty if it is healthy.
    pub sentence: String,
}

/// A revision of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Revision {
    pub number: u32,
    /// The word of helm.
    pub status: String,
    /// The time of helm's last write, in seconds since 1970.
    pub written: i64,
    /// The digest of the section of the ConfigMap with which it was made.
    pub config: Option<String>,
}

/// An Event about a module, its objects or their pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// The time of its last occurrence, in seconds since 1970.
    pub last: i64,
    pub is_warning: bool,
    pub reason: String,
    /// The object that it is about, as in `Pod/web-0`.
    pub object: String,
    pub message: String,
    pub count: u32,
}

/// The difference of two revisions of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Comparison {
    /// The number of the first revision.
    pub from: u32,
    /// The number of the second revision.
    pub to: u32,
    /// The objects that differ.
    pub changes: Vec<Change>,
}

/// An object that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Change {
    /// `new`, `changed` or `gone`.
    pub act: String,
    /// Its kind, namespace and name.
    pub object: String,
    /// The fields that differ.
    pub fields: Vec<FieldChange>,
}

/// A field that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FieldChange {
    /// The path, as in `spec.containers[web].image`.
    pub path: String,
    /// The value before as JSON; empty if the field is new.
    pub before: String,
    /// The value after as JSON; empty if the field is gone.
    pub after: String,
}

/// The last run of a hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastRun {
    /// The binding for which it ran.
    pub binding: String,
    /// The time of its beginning, in seconds since 1970.
    pub began: i64,
    /// The seconds that it took.
    pub seconds: f64,
    /// The end: an exit code, or another word.
    pub end: String,
    /// The failure; empty if it succeeded.
    pub failure: String,
    /// Its last lines.
    pub output: Vec<String>,
}

/// A recorded run of a hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The name of the record.
    pub id: String,
    pub hook: String,
    pub binding: String,
    /// The time of its beginning, as text.
    pub began: String,
    /// The seconds that it took.
    pub seconds: f64,
    /// The end: an exit code, or another word.
    pub end: String,
    /// The failure, if it failed.
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    pub name: String,
    /// The state of its head.
    pub status: String,
    /// The number of tasks.
    pub length: usize,
    /// The description of the first task; empty if there is none.
    pub head: String,
}

/// The facts of the operator's own view beside those of the overview.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machinery {
    /// The queues with tasks.
    pub queues: Vec<Queue>,
    /// The number of queues without a task.
    pub idle_queues: usize,
    /// The last converges, the newest first.
    pub converges: Vec<Converge>,
    /// The report of `channel status`: a name and a text in each line.
    pub channel: Vec<(String, String)>,
    /// The steps of the version on trial.
    pub trial: Vec<TrialStep>,
    /// The slots that limit the number of jobs at once.
    pub slots: Vec<Slots>,
    /// The requests to the API server, on average of the last minute.
    pub requests_per_second: Option<f64>,
    /// The resident memory in bytes.
    pub memory: Option<u64>,
    /// The time of the start of the process, in seconds since 1970.
    pub started: Option<i64>,
}

/// A step of the version on trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialStep {
    pub text: String,
    /// `done`, `now` or `later`.
    pub is: String,
}

/// The slots of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slots {
    /// `helm`, `hook` or `review`.
    pub kind: String,
    pub number: usize,
    /// The jobs that hold one.
    pub jobs: Vec<String>,
}

/// A converge that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Converge {
    /// The event that caused it.
    pub reason: String,
    /// The time of its end, in seconds since 1970.
    pub ended: i64,
    /// The time from its start to its end, in milliseconds.
    pub took: u64,
    /// The number of modules that had not succeeded at its end.
    pub failing: usize,
}
