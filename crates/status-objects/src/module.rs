//! The sheet of a module.
//!
//! `Ready` holds only if the release is up to date and its objects work. Must never call a module stalled that only waits for its turn.

use addon_core::operator::health::Health;
use addon_core::operator::query::ModuleReport;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Status, cut};
use crate::sheet::RECONCILING;

/// The state of a module, as its object tells it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModuleSheet {
    /// The word of `module list`.
    pub state: String,
    /// The health of the objects, in the word of `module list`.
    pub health: String,
    /// The order number.
    pub order: u32,
    /// Whether the module is enabled.
    pub enabled: bool,
    /// The version of the chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The revision of the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// The source of the module's files, if it is a registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The md5 sum of the module's section in the `ConfigMap`, as it was last applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_config: Option<String>,
    /// The obstacle that the module waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub waits_for: String,
    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The objects of the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Objects>,
    /// `Ready`, `Reconciling` and `Stalled` by kstatus, `Healthy`, `Held`, `Drifted`.
    pub conditions: Vec<Condition>,
}

/// A failure that lasts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failure {
    /// The failed step and its cause, up to 1 KiB.
    pub message: String,
    /// The remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The number of failed attempts in a row.
    pub times: u32,
    /// The time of the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Timestamp>,
}

/// How many objects a release has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Objects {
    /// All of them.
    pub total: u32,
    /// Those that do not work.
    pub unhealthy: u32,
}

/// Facts about a module that the core does not know.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The version of the chart.
    pub version: Option<String>,
    /// The revision of the release.
    pub revision: Option<u32>,
    /// The source of the module's files.
    pub source: Option<String>,
    /// The objects of the release.
    pub objects: Option<Objects>,
    /// Differences between the release and its objects, a sentence each.
    pub drift: Vec<String>,
}

impl ModuleSheet {
    /// The sheet by the report of the core.
    pub fn of(report: &ModuleReport, facts: Facts, now: Timestamp) -> Self {
        let failure = failure(report, now);
        Self {
            state: report.state.clone(),
            health: report.health.as_str().to_owned(),
            order: report.order,
            enabled: report.enabled,
            version: facts.version,
            revision: facts.revision,
            source: facts.source,
            observed_config: report.config_digest.clone(),
            // The time of a retry changes from moment to moment, and is told by itself.
            waits_for: if failure.is_some() {
                String::new()
            } else {
                cut(&report.waits_for).to_owned()
            },
            objects: facts.objects,
            conditions: conditions(report, failure.as_ref(), &facts.drift),
            failure,
        }
    }
}

fn failure(report: &ModuleReport, now: Timestamp) -> Option<Failure> {
    let message = report
        .error
        .as_deref()
        .filter(|_| report.fails || report.failures > 0)?;
    let retry = report.failing.iter().filter_map(|task| task.retry_in).min();
    let at = |seconds: u64| {
        now.checked_add(SignedDuration::from_secs(seconds.try_into().ok()?))
            .ok()
    };
    Some(Failure {
        message: cut(message).to_owned(),
        hint: cut(&report.hints.join("; ")).to_owned(),
        times: report.failures,
        next_try: retry.and_then(at).map(whole),
    })
}

/// A time without parts of a second.
fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn conditions(report: &ModuleReport, failure: Option<&Failure>, drift: &[String]) -> Vec<Condition> {
    let unhealthy = report.unhealthy.as_deref().unwrap_or_default();
    let mut all = Vec::new();
    let is_installed = report.state == "Ready";
    let is_unhealthy = report.health == Health::Unhealthy;
    if report.enabled {
        let (ready, reason, message) = match (failure, report.health) {
            (Some(failure), _) => (false, "Failed", failure.message.as_str()),
            (None, _) if !is_installed => (false, report.state.as_str(), report.waits_for.as_str()),
            (None, Health::RollingOut) => (false, "RollingOut", unhealthy),
            (None, Health::Unhealthy) => (false, "Unhealthy", unhealthy),
            (None, Health::Healthy) => (true, "Healthy", ""),
            (None, Health::Unknown) => (true, "Installed", ""),
        };
        all.push(Condition::new("Ready", ready, reason, message));
        let waits_for_people = is_held(report);
        if !ready && failure.is_none() && !is_unhealthy && !waits_for_people {
            all.push(Condition::new(RECONCILING, true, reason, message));
        }
        if failure.is_some() || is_unhealthy || waits_for_people {
            all.push(Condition::new("Stalled", true, reason, message));
        }
    } else if report.state == "Deleting" {
        all.push(Condition::new(RECONCILING, true, "Deleting", &report.waits_for));
    }
    match report.health {
        Health::Unknown => {}
        Health::Healthy => all.push(Condition::new("Healthy", true, "Healthy", "")),
        Health::RollingOut => all.push(Condition::new("Healthy", Status::Unknown, "RollingOut", unhealthy)),
        Health::Unhealthy => all.push(Condition::new("Healthy", false, "Unhealthy", unhealthy)),
    }
    if is_held(report) {
        all.push(Condition::new("Held", true, &report.state, &report.waits_for));
    }
    if let Some(first) = drift.first() {
        all.push(Condition::new("Drifted", true, "LeftToOthers", first));
    }
    if report.in_maintenance {
        all.push(Condition::new("Maintenance", true, "InConfigMap", ""));
    }
    all
}

/// Whether the module's next step waits for a person, or for the end of a trial.
fn is_held(report: &ModuleReport) -> bool {
    matches!(report.state.as_str(), "Held" | "UpgradeHeld")
}

#[cfg(test)]
mod tests;
