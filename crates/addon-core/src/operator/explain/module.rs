//! The report about one module: its state and its waits, in fields for people and programs.

use clock::Tick;
use names::{ModuleName, QueueName};

use super::super::effect::Slowed;
use super::super::health::Health;
use super::super::lanes::Lanes;
use super::super::modules::{Turn, Unit};
use super::super::query::{FailingTask, ModuleReport};
use super::super::survey::Survey;
use super::super::task::{Entry, Lane};
use crate::module::enabling::Source;
use crate::module::lifecycle::Lifecycle;
use crate::queue::State;
use crate::values::section::Maintenance;

impl Survey<'_> {
    pub(super) fn module_report(&self, unit: &Unit) -> ModuleReport {
        let name = unit.name();
        let head = self.of.lanes.head(&Lane::Module(name.clone()));
        let verdict = self.of.verdicts.on(unit.name());
        let enabled_by = match verdict {
            Some(verdict) => self.said_by(name, &verdict.source) + &self.switched_too_often(name),
            None if self.of.verdicts.script_runs_since(name).is_some() => "enabled script has yet to answer".to_owned(),
            None if self.of.verdicts.is_undecided(name) => "enabled script fails".to_owned(),
            None => "not decided yet".to_owned(),
        };
        ModuleReport {
            name: name.to_string(),
            order: unit.found().order,
            enabled: unit.is_enabled(),
            decided: verdict.is_some(),
            enabled_by,
            state: self.state_of(unit).to_owned(),
            waits_for: self.waits_for(unit, head),
            error: unit.last_failure().cloned(),
            hints: unit.hints().to_vec(),
            remarks: unit.remarks().iter().cloned().chain(self.old_values()).collect(),
            failures: head.map_or(0, |head| head.failures),
            fails: self.fails(unit),
            late: unit.is_enabled() && *unit.turn() == Turn::Late,
            depends_on: unit.found().depends_on.iter().map(ToString::to_string).collect(),
            failing: self
                .failing(name)
                .into_iter()
                .chain(self.failing_script(name))
                .collect(),
            needs: self.lacks(unit).map(ToString::to_string),
            upgrade_held: unit.is_upgrade_held(),
            in_maintenance: self.of.config.maintenance(name) == Maintenance::NoResourceReconciliation,
            after: modules_awaited(self, unit),
            config_problems: self.config_problems(name),
            config_digest: self.of.config.digest(&name.values_key()).map(String::from),
            health: self.health_of(unit),
            unhealthy: self.of.healths.sentence(name).map(str::to_owned),
            unhealthy_for: self.unhealthy_for(unit),
        }
    }

    /// The reason of this module's wait, as a text for people.
    pub(in crate::operator) fn module_waits_for(&self, name: &ModuleName) -> String {
        let head = self.of.lanes.head(&Lane::Module(name.clone()));
        let unit = self.of.modules.get(name);
        unit.map(|unit| self.waits_for(unit, head)).unwrap_or_default()
    }

    /// The state of the module in one word. A held removal takes precedence, because the module is then not upgraded.
    fn state_of(&self, unit: &Unit) -> &'static str {
        let name = unit.name();
        let waits_for_trial = unit.is_enabled() && unit.turn().waits_for_trial() || self.certainty().trial_keeps(name);
        if self.of.removal.brake().holds(name.as_str()) || waits_for_trial {
            "Held"
        } else if unit.is_upgrade_held() {
            "UpgradeHeld"
        } else {
            unit.life().describe()
        }
    }

    /// The source that decided about a module. If the file of the source is lost, the text says that the last known
    /// content of the file decided.
    fn said_by(&self, module: &ModuleName, source: &Source) -> String {
        match self
            .of
            .directories
            .sources()
            .lost_for(module)
            .filter(|_| *source == Source::Static)
        {
            Some(file) => format!("{source} as it was: {file} is missing or empty"),
            None if *source == Source::Config && self.of.supply.is_withdrawn(module) => {
                "the end of its source in moduleSources".to_owned()
            }
            None => source.to_string(),
        }
    }

    fn waits_for(&self, unit: &Unit, head: Option<&Entry>) -> String {
        if let Some(head) = head {
            return format!(
                "{}{}",
                self.head_waits_for(unit, head),
                Lanes::describe_time(&self.of.cx, head)
            );
        }
        let wait = self.turn_waits_for(unit);
        if !wait.is_empty() {
            return wait;
        }
        // A removal that was held is held until all scripts have answered, even if the ConfigMap switches the module on
        // by now.
        let is_held = self.of.removal.brake().holds(unit.name().as_str());
        let is_over = !unit.is_enabled() || unit.life().released().is_some() && !is_held;
        let ahead = self.work_ahead().filter(|_| !is_over);
        ahead.unwrap_or_else(|| self.loops_of(unit.name()).join("; "))
    }

    /// The end of a sentence about a module that keeps its state, because programs have switched it too often.
    fn switched_too_often(&self, module: &ModuleName) -> String {
        let Some(kept) = self.of.verdicts.kept(module, self.of.cx.now.tick) else {
            return String::new();
        };
        let (times, seconds, key) = (kept.times, self.seconds_to(kept.until), module.enabled_key());
        format!(
            ", which has switched it {times} times within 10 minutes: it stays so for {seconds}s, or until a person edits {key} \
             in the ConfigMap"
        )
    }

    /// The hooks that cause runs of the module, or of themselves, too often, each with its wait.
    fn loops_of(&self, module: &ModuleName) -> Vec<String> {
        let waits = self.of.loops.waits_of(module, self.of.cx.now.tick).into_iter();
        let told = waits.map(|(hook, wait)| Slowed::Hook {
            hook,
            deed: wait.deed,
            times: wait.times,
            next_in: wait.until.max(self.of.cx.now.tick) - self.of.cx.now.tick,
        });
        told.map(|slowed| slowed.to_string()).collect()
    }

    fn head_waits_for(&self, unit: &Unit, head: &Entry) -> String {
        let lane = Lane::Module(unit.name().clone());
        match head.state() {
            State::Ready if !head.begun && self.of.converge.assesses_by_itself() => self.converge().unwrap_or_default(),
            State::Ready if !head.begun && unit.turn().is_to_come() => self.turn_waits_for(unit),
            State::Backoff(until) => {
                let wait = (until - self.of.cx.now.tick).as_secs_f64().ceil();
                let error = head.error.as_deref().unwrap_or_default();
                format!("the next try in {wait}s, after {} failures: {error}", head.failures)
            }
            State::Running => match (self.of.lanes.doing(&lane), self.of.commits.waits(&lane)) {
                (_, Some(wait)) => wait,
                (Some(doing), None) => format!("hook '{}' ({})", doing.hook.name, doing.labels.cause),
                (None, None) => match unit.life() {
                    Lifecycle::Watching { next, .. } => {
                        let hook = unit.order().watching.get(*next).map(ToString::to_string);
                        format!("the monitors of hook '{}' to start", hook.unwrap_or_default())
                    }
                    life @ (Lifecycle::Disabled
                    | Lifecycle::Ensuring
                    | Lifecycle::Configuring
                    | Lifecycle::Starting(_)
                    | Lifecycle::Synchronizing(_)
                    | Lifecycle::BeforeHelm(_)
                    | Lifecycle::Releasing
                    | Lifecycle::AfterHelm { .. }
                    | Lifecycle::Ready { .. }
                    | Lifecycle::Deleting(_)) => life.describe().to_owned(),
                },
            },
            State::Held(_) => self.of.lanes.describe_rate_limit(&self.of.cx, &lane),
            State::Parked => self.outstanding(unit).join("; "),
            State::Ready => self.describe_wait_for_slot(head),
        }
    }

    /// The reason of the wait of a module without a task in its lane, as a text for people.
    fn turn_waits_for(&self, unit: &Unit) -> String {
        let asked = self
            .of
            .verdicts
            .on(unit.name())
            .is_none_or(|verdict| verdict.enabled != unit.is_enabled());
        match unit.turn() {
            Turn::Waiting => match self.lacks(unit) {
                Some(need) => self.waits_for_need(need),
                None => match self.pending_before(unit.name()).join(", ") {
                    before if before.is_empty() => self.work_ahead().unwrap_or_default(),
                    before => format!("modules before it: {before}"),
                },
            },
            Turn::Held(hold) => hold.reason.clone(),
            Turn::Out if self.certainty().is_removable(unit.name()) => {
                let other = self.certainty().outlived_by(unit.name());
                other.map_or_else(String::new, |other| {
                    format!("module '{other}', which needs it, to be removed")
                })
            }
            Turn::Out | Turn::Running | Turn::Passed | Turn::Failed | Turn::Late => {
                let since = self.of.verdicts.script_runs_since(unit.name());
                let script = since.map(|since| {
                    let seconds = (self.of.cx.now.tick - since).as_secs();
                    format!("its enabled script, which has been running for {seconds}s")
                });
                let withheld = || self.certainty().removal_obstacle(unit.name());
                script
                    .or_else(|| self.work_ahead().filter(|_| asked))
                    .or_else(withheld)
                    .unwrap_or_default()
            }
        }
    }

    /// The module that this module depends on and has to wait for.
    fn lacks<'a>(&'a self, unit: &'a Unit) -> Option<&'a ModuleName> {
        let passed = |need: &&ModuleName| self.of.modules.has_passed(need) && !self.awaits_health(unit, need);
        match unit.turn() {
            Turn::Held(hold) => hold.need.as_ref(),
            Turn::Waiting => unit.found().depends_on.iter().find(|need| !passed(need)),
            Turn::Out | Turn::Running | Turn::Passed | Turn::Failed | Turn::Late => None,
        }
    }

    fn waits_for_need(&self, need: &ModuleName) -> String {
        if !self.of.modules.has_passed(need) {
            return format!("module '{need}', which it needs");
        }
        match self.of.healths.sentence(need) {
            Some(sentence) => format!("module '{need}', which it needs, to be healthy: {sentence}"),
            None => format!("module '{need}', which it needs, to be healthy"),
        }
    }

    /// The health of the module's objects; unknown for a module that is off.
    pub(in crate::operator) fn health_of(&self, unit: &Unit) -> Health {
        if unit.is_concerned() {
            self.of.healths.of(unit.name(), self.of.cx.now.tick)
        } else {
            Health::Unknown
        }
    }

    fn unhealthy_for(&self, unit: &Unit) -> Option<u64> {
        match self.health_of(unit) {
            Health::Unknown | Health::Healthy => None,
            Health::RollingOut | Health::Unhealthy => {
                let since = self.of.healths.since(unit.name())?;
                Some((self.of.cx.now.tick - since).as_secs())
            }
        }
    }

    /// The first runs in other queues that this module waits for.
    fn outstanding(&self, unit: &Unit) -> Vec<String> {
        let elsewhere = unit.life().first_runs_elsewhere().into_iter();
        elsewhere.map(|id| self.describe_first_run(id)).collect()
    }

    /// The modules whose upgrade waits for a person.
    pub(super) fn held_upgrades(&self) -> Vec<String> {
        let held = self.of.modules.iter().filter(|unit| unit.is_upgrade_held());
        held.map(|unit| unit.name().to_string()).collect()
    }

    /// Whether the module needs the attention of a person: it will not succeed by itself.
    fn fails(&self, unit: &Unit) -> bool {
        unit.is_concerned() && unit.last_failure().is_some()
            || unit.turn().is_own_fault()
            || self.of.verdicts.script_failure(unit.name()).is_some()
    }

    /// The enabled script of the module as a failing task. It is retried like a task, but has no place in a queue.
    fn failing_script(&self, module: &ModuleName) -> Option<FailingTask> {
        let (failures, failure, retry) = self.of.verdicts.script_failure(module)?;
        let runs = self.of.verdicts.script_runs_since(module).is_some();
        Some(FailingTask {
            queue: QueueName::main().to_string(),
            task: "EnabledScript",
            hook: "enabled".to_owned(),
            failures,
            error: failure.report.clone(),
            retry_in: retry.filter(|_| !runs).map(|at| self.seconds_to(at)),
        })
    }

    pub(in crate::operator) fn seconds_to(&self, at: Tick) -> u64 {
        let left = at.max(self.of.cx.now.tick) - self.of.cx.now.tick;
        left.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
    }

    /// The errors in the module's keys of the ConfigMap. The last good texts stay applied.
    pub(super) fn config_problems(&self, module: &ModuleName) -> Vec<String> {
        let problems = self.of.config.problems();
        let keys = [module.values_key(), module.enabled_key(), module.maintenance_key()];
        keys.iter().filter_map(|key| problems.get(key).cloned()).collect()
    }
}

/// The modules whose turn has to be over before this module's turn.
fn modules_awaited(survey: &Survey<'_>, unit: &Unit) -> Vec<String> {
    match unit.turn() {
        Turn::Waiting => survey.pending_before(unit.name()),
        Turn::Out | Turn::Running | Turn::Passed | Turn::Failed | Turn::Late | Turn::Held(_) => Vec::new(),
    }
}
