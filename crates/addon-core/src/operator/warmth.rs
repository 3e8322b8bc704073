//! The preparations of a standby, so that little work is left when it becomes the leader: it asks for the bindings of
//! hooks whose modules would run, and starts their monitors.
//!
//! Values files and the flags in the ConfigMap tell which modules these are. Hooks are run with `--config` only, and get
//! no changes. Nothing is prepared before another replica is known to lead: a replica that is about to lead does all
//! steps in their order, because hooks could notice a difference. Must never delay the leader. The leader takes answers
//! that are ready, waits for an answer that is on its way if it needs it, and asks again if the preparation failed, so
//! that it reports the failure itself.

use std::collections::{BTreeMap, BTreeSet};

use clock::{Backoff, Tick};
use names::{HookId, HookName, ModuleName, Owner};

use super::bindings::Bindings;
use super::cx::Cx;
use super::effect::{Job, JobId};
use super::event::ConfigRead;
use super::jobs::Jobs;
use super::modules::{Modules, Unit};
use super::monitors::Monitors;
use super::query::Waiting;
use super::task::{Lane, Slot};
use super::ticket::{AskFor, WatchFor};
use crate::failure::Failure;
use crate::hook::config::HookConfig;
use crate::module::enabling::{Extenders, Opinions};
use crate::values::section::{ConfigDocument, Entry};

/// The prepared answers and monitors, until they are taken or dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Warmth {
    /// Whether another replica leads, so that there is time for preparations.
    has_time: bool,
    /// The flags in the ConfigMap; `None` before it was read.
    flags: Option<BTreeMap<ModuleName, bool>>,
    /// The modules whose files come from registries.
    supplied: BTreeSet<ModuleName>,
    /// The answers of hooks, by module. Every module with a prepared monitor has one: a monitor is of use only with the
    /// answer that defined its binding.
    answers: BTreeMap<ModuleName, Answer>,
    watches: BTreeMap<HookId, Watch>,
    /// The lanes whose heads wait for jobs that were started as preparations.
    taken_over: BTreeMap<JobId, Lane>,
}

/// The state of the question to a module's hooks for their configuration.
#[derive(Debug, Clone)]
enum Answer {
    Asked(JobId),
    Known(Vec<(HookName, HookConfig)>),
    Refused,
}

/// The state of the prepared monitors of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watch {
    Due { at: Tick, failures: u32 },
    Starting { job: JobId, failures: u32 },
    Watching,
}

impl Watch {
    /// The prepared monitors have not been tried yet.
    const FRESH: Self = Self::Due {
        at: Tick::ZERO,
        failures: 0,
    };

    fn is_due(self, now: Tick) -> bool {
        matches!(self, Self::Due { at, .. } if at <= now)
    }

    fn failures(self) -> u32 {
        match self {
            Self::Due { failures, .. } | Self::Starting { failures, .. } => failures,
            Self::Watching => 0,
        }
    }
}

impl Warmth {
    /// Notes that another replica leads.
    pub(super) fn begin(&mut self) {
        self.has_time = true;
    }

    /// Whether preparations may be made.
    pub(super) fn has_time(&self) -> bool {
        self.has_time
    }

    /// Takes the flags of a reading of the ConfigMap. If the ConfigMap is missing or a flag is broken, the old flags
    /// stay, as for a leader.
    pub(super) fn hear(&mut self, read: &ConfigRead) {
        let known = self.flags.take().unwrap_or_default();
        let ConfigRead::Present { data, .. } = read else {
            self.flags = Some(known);
            return;
        };
        let document = ConfigDocument::parse(data);
        match &document.module_sources {
            Entry::Good(sources) => self.supplied = sources.keys().cloned().collect(),
            Entry::Absent => self.supplied.clear(),
            Entry::Bad => {}
        }
        let flags = document.sections.into_iter().filter_map(|(name, section)| {
            let flag = match section.enabled {
                Entry::Good(on) => Some(on),
                Entry::Bad => known.get(&name).copied(),
                Entry::Absent => None,
            };
            Some((name, flag?))
        });
        self.flags = Some(flags.collect());
    }

    /// Whether the module has hooks and would run by values files and ConfigMap alone.
    pub(super) fn expects(&self, extenders: &Extenders, unit: &Unit) -> bool {
        let Some(flags) = &self.flags else { return false };
        let found = unit.found();
        // The module will use files from a registry, not the files in its directory.
        if self.supplied.contains(&found.name) {
            return false;
        }
        let opinions = Opinions {
            extenders,
            fixed: found.enabled,
            is_supplied: false,
            dynamic: None,
            config: flags.get(&found.name).copied(),
        };
        // A module with an own account needs a token, and other programs could notice the request for it.
        found.has_hooks && !found.has_account && found.broken.is_none() && opinions.verdict().enabled
    }

    /// Whether prepared monitors of this hook exist that no run has taken.
    pub(super) fn holds(&self, hook: &HookId) -> bool {
        self.watches.contains_key(hook)
    }

    /// Notes the end of a preparing job. Returns the lane whose head waits for it by now, if there is one.
    pub(super) fn awaited_by(&mut self, id: JobId) -> Option<Lane> {
        self.taken_over.remove(&id)
    }

    /// Whether a preparing job for the module's hooks is running.
    pub(super) fn is_busy(&self, name: &ModuleName) -> bool {
        let owner = Owner::Module(name.clone());
        let mut watches = self.watches.iter().filter(|(hook, _)| hook.owner == owner);
        matches!(self.answers.get(name), Some(Answer::Asked(_)))
            || watches.any(|(_, watch)| matches!(watch, Watch::Starting { .. }))
    }

    fn is_asking(&self) -> bool {
        self.answers.values().any(|answer| matches!(answer, Answer::Asked(_)))
    }

    /// The known configurations of modules' hooks.
    fn answered(&self) -> impl Iterator<Item = &HookConfig> {
        let known = self.answers.values().filter_map(|answer| match answer {
            Answer::Known(hooks) => Some(hooks),
            Answer::Asked(_) | Answer::Refused => None,
        });
        known.flatten().map(|(_, config)| config)
    }

    fn config_of(&self, hook: &HookId) -> Option<&HookConfig> {
        let Some(Answer::Known(hooks)) = self.answers.get(hook.owner.module()?) else {
            return None;
        };
        let (_, config) = hooks.iter().find(|(name, _)| *name == hook.name)?;
        Some(config)
    }

    /// Plans to start the monitors of the given hooks.
    pub(super) fn expect_watches<'a>(&mut self, hooks: impl Iterator<Item = (HookId, &'a HookConfig)>) {
        let watching = hooks.filter(|(_, config)| !config.kubernetes.is_empty());
        self.watches.extend(watching.map(|(hook, _)| (hook, Watch::FRESH)));
    }

    /// Notes that a prepared answer or monitor of a module was taken. When no prepared monitor of the module is left,
    /// the answer of the module's hooks is dropped.
    fn taken(&mut self, owner: &Owner) {
        let is_left = self.watches.keys().any(|hook| hook.owner == *owner);
        if let Some(module) = owner.module().filter(|_| !is_left) {
            self.answers.remove(module);
        }
    }
}

/// The state of a prepared answer or monitor when a run needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Warm {
    /// The prepared answer or monitor exists.
    Ready,
    /// The job is under way. The head of the lane waits for it from now on.
    UnderWay,
    /// Neither exists, and no job for it is under way. The head of the lane has to start the job.
    Nothing,
}

/// The work of a standby.
impl Warmth {
    /// Asks the hooks of the modules that would run.
    pub(super) fn ask(&mut self, cx: &mut Cx, jobs: &mut Jobs, modules: &Modules) {
        while jobs.has_room(Slot::Hook, &cx.policy) {
            let expected = modules
                .iter()
                .filter(|unit| !self.answers.contains_key(unit.name()) && self.expects(&cx.policy.extenders, unit));
            let Some(unit) = expected.min_by_key(|unit| (unit.found().order, unit.name())) else {
                return;
            };
            let name = unit.name().clone();
            let owner = Owner::Module(name.clone());
            let id = jobs.begin(cx, AskFor::Warmth(name.clone()), |ticket| {
                Job::ConfigureHooks(owner, ticket)
            });
            self.answers.insert(name, Answer::Asked(id));
        }
    }

    /// Takes the answer of a module's hooks. `is_standby`: their monitors are to be prepared, too. A failure is not
    /// reported: the leader will ask again and report it.
    pub(super) fn module_answered(
        &mut self,
        name: &ModuleName,
        result: Result<Vec<(HookName, HookConfig)>, Failure>,
        is_standby: bool,
    ) {
        let answer = match result {
            Ok(hooks) => {
                if is_standby {
                    let owner = Owner::Module(name.clone());
                    let id = |hook: &HookName| HookId {
                        owner: owner.clone(),
                        name: hook.clone(),
                    };
                    let hooks = hooks.iter().map(|(hook, config)| (id(hook), config));
                    self.expect_watches(hooks);
                }
                Answer::Known(hooks)
            }
            Err(_) => Answer::Refused,
        };
        self.answers.insert(name.clone(), answer);
    }

    /// The hooks whose monitors may be started now. None while hooks are being asked or conversions are known: a hook may
    /// convert the objects that would be listed.
    pub(super) fn due(&self, cx: &Cx, bindings: &Bindings) -> Vec<HookId> {
        if self.is_asking() || self.knows_conversions(bindings) {
            return Vec::new();
        }
        let due = self.watches.iter().filter(|(_, watch)| watch.is_due(cx.now.tick));
        due.map(|(hook, _)| hook.clone()).collect()
    }

    /// Starts the monitors of the given hooks.
    pub(super) fn watch(
        &mut self,
        cx: &mut Cx,
        jobs: &mut Jobs,
        bindings: &Bindings,
        monitors: &mut Monitors,
        hooks: Vec<HookId>,
    ) {
        for hook in hooks {
            let config = bindings.get(&hook).or_else(|| self.config_of(&hook));
            let Some(watched) = config.map(|config| config.kubernetes.clone()) else {
                continue;
            };
            let monitors = monitors.name(&hook, watched);
            let start = |ticket| Job::StartMonitors {
                hook: hook.clone(),
                monitors,
                ticket,
            };
            let job = jobs.begin(cx, WatchFor::Warmth(hook.clone()), start);
            if let Some(watch) = self.watches.get_mut(&hook) {
                let failures = watch.failures();
                *watch = Watch::Starting { job, failures };
            }
        }
    }

    fn knows_conversions(&self, bindings: &Bindings) -> bool {
        let mut known = bindings.iter().map(|(_, config)| config).chain(self.answered());
        known.any(|config| !config.conversions.is_empty())
    }

    /// Takes the result of a preparing start of monitors. A start that failed is tried again later: a kind may be missing
    /// until the leader installs its CRD.
    pub(super) fn warmed(&mut self, cx: &mut Cx, monitors: &mut Monitors, hook: HookId, result: &Result<(), Failure>) {
        let watch = if result.is_ok() {
            monitors.watch(&hook);
            Watch::Watching
        } else {
            monitors.forget(&hook);
            let failures = self.watches.get(&hook).map_or(0, |watch| watch.failures());
            let delay = Backoff::delay(failures, cx.draw());
            Watch::Due {
                at: cx.now.tick + delay,
                failures: failures + 1,
            }
        };
        self.watches.insert(hook, watch);
    }

    /// The time at which a failed start of monitors is tried again.
    pub(super) fn timeout(&self, cx: &Cx) -> Option<(Tick, Waiting)> {
        let due = self.watches.values().filter_map(|watch| match watch {
            Watch::Due { at, .. } if *at > cx.now.tick => Some(*at),
            Watch::Due { .. } | Watch::Starting { .. } | Watch::Watching => None,
        });
        let step = "watch the objects of hooks before they run";
        Some((due.min()?, Waiting::Step(step.to_owned())))
    }

    /// The modules with prepared answers.
    pub(super) fn modules(&self) -> impl Iterator<Item = &ModuleName> {
        self.answers.keys()
    }
}

/// This replica becomes the leader: it takes the preparations that are ready, and drops the rest.
impl Warmth {
    /// Ends the preparations. Jobs that are asking hooks go on, but give up their slots to other jobs.
    pub(super) fn end(&mut self, jobs: &mut Jobs) {
        self.flags = None;
        self.has_time = false;
        for answer in self.answers.values() {
            if let Answer::Asked(id) = answer {
                jobs.vacate(*id);
            }
        }
    }

    /// Drops the preparations for a module. The result of a running job is dropped when the job ends, unless the module
    /// is wanted again by then. Returns the hooks whose monitors have to be stopped.
    #[must_use]
    pub(super) fn cool(&mut self, name: &ModuleName) -> Vec<HookId> {
        let mut watched = Vec::new();
        let Some(answer) = self.answers.get(name) else {
            return watched;
        };
        let mut is_busy = matches!(answer, Answer::Asked(_));
        let owner = Owner::Module(name.clone());
        for (hook, watch) in self.watches.iter_mut().filter(|(hook, _)| hook.owner == owner) {
            match watch {
                Watch::Due { .. } => {}
                Watch::Starting { .. } => is_busy = true,
                Watch::Watching => {
                    watched.push(hook.clone());
                    *watch = Watch::FRESH;
                }
            }
        }
        if !is_busy {
            self.answers.remove(name);
            self.watches.retain(|hook, _| hook.owner != owner);
        }
        watched
    }

    /// Takes the answer of a module's hooks, if it is known.
    pub(super) fn take_answer(&mut self, name: &ModuleName) -> Option<Vec<(HookName, HookConfig)>> {
        let Some(Answer::Known(hooks)) = self.answers.get(name) else {
            return None;
        };
        let hooks = hooks.clone();
        self.taken(&Owner::Module(name.clone()));
        Some(hooks)
    }

    /// Looks for a prepared answer when the head of a lane needs it.
    pub(super) fn take_question(&mut self, lane: &Lane, name: &ModuleName) -> Warm {
        let Some(Answer::Asked(id)) = self.answers.get(name) else {
            return Warm::Nothing;
        };
        self.taken_over.insert(*id, lane.clone());
        self.answers.remove(name);
        Warm::UnderWay
    }

    /// Looks for prepared monitors when the head of a lane needs them.
    pub(super) fn take_monitors(&mut self, lane: &Lane, hook: &HookId) -> Warm {
        let watch = self.watches.remove(hook);
        self.taken(&hook.owner);
        match watch {
            Some(Watch::Watching) => Warm::Ready,
            Some(Watch::Starting { job, .. }) => {
                self.taken_over.insert(job, lane.clone());
                Warm::UnderWay
            }
            Some(Watch::Due { .. }) | None => Warm::Nothing,
        }
    }
}
