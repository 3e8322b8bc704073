//! A read-only view of the operator at one moment, for reports and for rules that need several state machines.
//!
//! Facts that a report about all modules needs many times are computed once: the plan of their order, the failing tasks,
//! and the wait of the converge. A survey must never be kept for another moment.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use names::{ModuleName, QueueName};
use names::{MonitorId, Owner};

use super::Operator;
use super::certainty::Certainty;
use super::health::Health;
use super::modules::Unit;
use super::monitors::Served;
use super::policy::Mode;
use super::query::FailingTask;
use super::task::{Entry, HookTask, Lane};
use crate::module::graph;
use crate::module::health::OnFailure;
use crate::module::lifecycle::Facts;
use crate::queue::State;
use crate::release::returned::Unhealthy;
use crate::values::section::Maintenance;
use crate::values::{Globals, HookDocument};

/// The operator, and facts that were computed on the first request.
#[derive(Debug)]
pub struct Survey<'a> {
    pub(super) of: &'a Operator,
    groups: OnceCell<Vec<Vec<ModuleName>>>,
    failing: OnceCell<BTreeMap<ModuleName, Vec<FailingTask>>>,
    converge: OnceCell<Option<String>>,
}

impl<'a> Survey<'a> {
    /// A survey of the operator's state at this moment.
    pub(super) fn of(of: &'a Operator) -> Self {
        Self {
            of,
            groups: OnceCell::new(),
            failing: OnceCell::new(),
            converge: OnceCell::new(),
        }
    }

    /// The modules that come before this module and whose turn is not over.
    pub(super) fn pending_before(&self, module: &ModuleName) -> Vec<String> {
        let strict = self.of.cx.policy.strict_order;
        let groups = self.groups.get_or_init(|| graph::plan(&self.of.modules.nodes()).groups);
        let before = groups.iter().take_while(|group| !group.contains(module));
        let pending = |name: &&ModuleName| !self.of.modules.is_over(name, strict);
        before.flatten().filter(pending).map(ToString::to_string).collect()
    }

    /// Whether a module has to wait for the health of a module that it needs. A module that is installed already waits
    /// only for an upgrade of that module: if it gets unhealthy later, it holds up no other module.
    pub(super) fn awaits_health(&self, dependent: &Unit, need: &ModuleName) -> bool {
        if dependent.found().health.is_content_with_ready(need) {
            return false;
        }
        let now = self.of.cx.now.tick;
        match self.of.healths.of(need, now) {
            Health::Unknown | Health::Healthy => false,
            Health::RollingOut | Health::Unhealthy => {
                let is_new = dependent.found().has_chart && !self.of.removal.is_ours(dependent.name().as_str());
                is_new || self.of.healths.is_upgrading(need, now)
            }
        }
    }

    /// The reason for which a module is held, because a module that it needs will not get healthy soon.
    pub(super) fn health_obstacle(&self, dependent: &Unit, need: &ModuleName) -> Option<String> {
        let (now, healths) = (self.of.cx.now.tick, &self.of.healths);
        let is_late = || {
            let since = healths.since(need);
            since.is_some_and(|since| now >= since + self.of.cx.policy.patience)
        };
        let is_hopeless = healths.of(need, now) == Health::Unhealthy || is_late() && !self.of.cx.policy.strict_order;
        let holds = is_hopeless && self.awaits_health(dependent, need);
        holds.then(|| match healths.sentence(need) {
            Some(sentence) => format!("which is not healthy: {sentence}"),
            None => "which is not healthy yet".to_owned(),
        })
    }

    /// The reason of the running converge's wait, as a text for people.
    pub(super) fn converge(&self) -> Option<String> {
        let waits = || Some(format!("the converge under way: {}", self.converge_waits()?));
        self.converge.get_or_init(waits).clone()
    }

    /// The work that has to be over before the turns of modules, as a text for people: the running converge, or the
    /// work before the next converge.
    pub(super) fn work_ahead(&self) -> Option<String> {
        self.converge()
            .or_else(|| {
                let ahead = [self.start_waits(), self.describe_start()].concat();
                (!ahead.is_empty()).then(|| format!("what runs before all modules: {}", ahead.join("; ")))
            })
            .or_else(|| self.scripts_asked())
    }

    /// The enabled scripts whose answers come before the next runs of modules, as a text for people.
    fn scripts_asked(&self) -> Option<String> {
        let verdicts = &self.of.verdicts;
        if !verdicts.is_asking() {
            return None;
        }
        let asked = self
            .of
            .modules
            .names()
            .filter(|name| verdicts.script_runs_since(name).is_some());
        let names: Vec<_> = asked.map(|name| format!("'{name}'")).collect();
        Some(match names.join(", ") {
            none if none.is_empty() => "the enabled scripts, for which there is no free slot".to_owned(),
            names => format!("the enabled scripts of {names}"),
        })
    }

    /// The tasks of a module that failed and are retried, in all queues.
    pub(super) fn failing(&self, module: &ModuleName) -> Vec<FailingTask> {
        let failing = self.failing.get_or_init(|| self.all_failing());
        failing.get(module).cloned().unwrap_or_default()
    }

    fn all_failing(&self) -> BTreeMap<ModuleName, Vec<FailingTask>> {
        let mut all: BTreeMap<ModuleName, Vec<FailingTask>> = BTreeMap::new();
        for (lane, tasks) in self.of.lanes.all() {
            for entry in tasks.iter().filter(|entry| entry.failures > 0) {
                if let Some(module) = entry.task.module() {
                    all.entry(module.clone()).or_default().push(self.report(lane, entry));
                }
            }
        }
        all
    }

    fn report(&self, lane: &Lane, entry: &Entry) -> FailingTask {
        let queue = match lane {
            Lane::Named(name) => name.clone(),
            Lane::Global | Lane::Module(_) | Lane::Release(_) | Lane::Aside(_) => QueueName::main(),
        };
        FailingTask {
            queue: queue.to_string(),
            task: entry.task.kind(self.of.cx.policy.mode),
            hook: entry.task.hook().map(|hook| hook.name.to_string()).unwrap_or_default(),
            failures: entry.failures,
            error: entry.error.clone().unwrap_or_default(),
            retry_in: match entry.state() {
                State::Backoff(until) => Some(self.seconds_to(until)),
                State::Running | State::Ready | State::Parked | State::Held(_) => None,
            },
        }
    }
}

/// Rules that depend on several state machines of the core.
impl<'a> Survey<'a> {
    /// The view for decisions about removals.
    pub(super) fn certainty(&self) -> Certainty<'a> {
        let of = self.of;
        Certainty {
            bindings: &of.bindings,
            lanes: &of.lanes,
            modules: &of.modules,
            directories: &of.directories,
            config: &of.config,
            verdicts: &of.verdicts,
            removal: &of.removal,
            supply: &of.supply,
            stand_ins: &of.stand_ins,
            on_trial: of.probation.is_on_trial(),
            ignored: of.cx.policy.ignore_release.as_deref(),
        }
    }

    /// The global values that the module's run uses.
    pub(super) fn globals_of_run(&self, name: &ModuleName) -> Globals {
        let run = self.of.modules.globals_of_run(name);
        run.unwrap_or_else(|| self.of.values.globals())
    }

    /// The values that the module's release gets.
    pub(super) fn release_values(&self, name: &ModuleName) -> Option<HookDocument> {
        self.of.modules.get(name)?;
        let globals = self.globals_of_run(name);
        let values = &self.of.values;
        Some(values.hook_values_under(&globals, &Owner::Module(name.clone())))
    }

    /// The facts that a module's next step depends on, beside its state.
    pub(super) fn facts(&self, module: &ModuleName) -> Facts {
        let unit = self.of.modules.get(module);
        Facts {
            has_chart: unit.is_some_and(|unit| unit.found().has_chart),
            needs_crds: unit.is_some_and(Unit::needs_crds),
            needs_conversions: unit.is_some_and(|unit| self.needs_conversions(unit)),
            has_release: self.of.removal.is_ours(module.as_str()),
            version: self.of.values.version(&Owner::Module(module.clone())),
        }
    }

    /// Whether the module's chart has conversion webhooks that were not published since a converge took the module up.
    /// False while people maintain its objects.
    pub(super) fn needs_conversions(&self, unit: &Unit) -> bool {
        unit.lacks_conversions() && self.of.config.maintenance(unit.name()) == Maintenance::Managed
    }

    /// Whether the module has a release that only the operator maintains, and no task works on the module now or will soon.
    pub(super) fn is_left_alone(&self, name: &ModuleName) -> bool {
        let Some(unit) = self.of.modules.get(name) else {
            return false;
        };
        let has_release = unit.is_enabled() && unit.found().has_chart && unit.found().broken.is_none();
        let is_ours_to_keep = self.of.config.maintenance(name) == Maintenance::Managed;
        if !has_release || !is_ours_to_keep || unit.turn().is_to_come() || self.of.converge.assesses_by_itself() {
            return false;
        }
        let lane = Lane::Module(name.clone());
        let deletes = |entry: &Entry| entry.task.is_removal();
        let busy = |head: &Entry| {
            let run = head.task.is_run();
            head.is_active() || deletes(head) || run && head.begun
        };
        !self.of.lanes.head(&lane).is_some_and(busy) && !self.of.lanes.behind_head(&lane).any(deletes)
    }

    /// The revision that a module leaves because its objects do not do their work.
    pub(super) fn unhealthy_to_leave(&self, name: &ModuleName) -> Option<Unhealthy> {
        let unit = self.of.modules.get(name)?;
        let returns = unit.found().health.on_failure == OnFailure::Return;
        returns.then(|| self.of.healths.unhealthy(name, self.of.cx.now.tick))?
    }

    /// The first run of this monitor, if it is at the head of its queue.
    pub(super) fn queued_first_run(&self, id: MonitorId) -> Option<&Entry> {
        let Served { hook, binding, .. } = self.of.monitors.binding_of(&self.of.bindings, id)?;
        let lane = match self.of.cx.policy.mode {
            Mode::Hooks => Lane::Global,
            Mode::Addons => Lane::of(&hook.owner, &binding.queue),
        };
        let head = self.of.lanes.head(&lane)?;
        let is_its = |task: &HookTask| task.first_runs.contains(&id);
        head.task.as_hook().is_some_and(is_its).then_some(head)
    }

    /// The text about a hook whose first run is awaited.
    pub(super) fn describe_first_run(&self, id: MonitorId) -> String {
        let Some(Served { hook, binding, .. }) = self.of.monitors.binding_of(&self.of.bindings, id) else {
            return "a first run".to_owned();
        };
        let failed = self.queued_first_run(id).map(failed).unwrap_or_default();
        let hook = self.of.cx.policy.mode.told(hook);
        format!("the first run of binding '{}' of {hook}{failed}", binding.name)
    }
}

/// The text about how often the head of a lane has failed. It follows the name of the task.
pub(super) fn failed(head: &Entry) -> String {
    let error = head.error.as_deref().unwrap_or_default();
    match head.failures {
        0 => String::new(),
        times => format!(", which failed {times} times: {error}"),
    }
}
