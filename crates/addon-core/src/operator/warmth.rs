//! The preparations of a standby, so that little is left to do once it leads: the bindings of hooks whose modules would run, and the
//! objects that hooks watch.
//!
//! Files and the flags of the ConfigMap tell which modules these are. Nothing is run except `--config`, and no hook is told of changes. Nothing
//! is prepared before another replica is known to lead: a replica that is about to lead does everything in its order, as hooks may see.
//! Must never hold up the leader. It takes answers that are ready, waits for one under way where it would have to ask itself, and
//! asks again where one failed, so that the failure is its own to tell.

use std::collections::BTreeMap;

use super::bindings::Bindings;
use super::cx::Cx;
use super::effect::{Job, JobId};
use super::event::ConfigRead;
use super::jobs::Jobs;
use super::modules::{Modules, Unit};
use super::monitors::Monitors;
use super::query::Waiting;
use super::task::Lane;
use super::ticket::{AskFor, WatchFor};
use crate::failure::Failure;
use crate::hook::config::HookConfig;
use crate::module::enabling::{Extenders, Opinions};
use crate::name::{HookId, HookName, ModuleName, Owner};
use crate::time::{Backoff, Tick};
use crate::values::section::{ConfigDocument, Entry};

/// What was found out, until it is taken or dropped.
#[derive(Debug, Default)]
pub(super) struct Warmth {
    /// Another one leads.
    has_time: bool,
    /// The flags of the ConfigMap; nothing before it was read.
    flags: Option<BTreeMap<ModuleName, bool>>,
    /// Of every module that has a watch, too: monitors are of use only with the answer that named them.
    answers: BTreeMap<ModuleName, Answer>,
    watches: BTreeMap<HookId, Watch>,
    /// The lanes whose heads took over jobs that were begun before their time.
    taken_over: BTreeMap<JobId, Lane>,
}

/// What the hooks of a module say that they want.
#[derive(Debug)]
enum Answer {
    Asked(JobId),
    Known(Vec<(HookName, HookConfig)>),
    Refused,
}

/// How the monitors of a hook stand that are started before their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watch {
    Due { at: Tick, failures: u32 },
    Starting { job: JobId, failures: u32 },
    Watching,
}

impl Watch {
    /// One that was not tried.
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
    /// Another one leads.
    pub(super) fn begin(&mut self) {
        self.has_time = true;
    }

    /// Something may be found out beforehand.
    pub(super) fn has_time(&self) -> bool {
        self.has_time
    }

    /// The ConfigMap was read. As for who leads, what is gone or cannot be understood changes nothing.
    pub(super) fn hear(&mut self, read: &ConfigRead) {
        let known = self.flags.take().unwrap_or_default();
        let ConfigRead::Present { data, .. } = read else {
            self.flags = Some(known);
            return;
        };
        let sections = ConfigDocument::parse(data).sections.into_iter();
        let flags = sections.filter_map(|(name, section)| {
            let flag = match section.enabled {
                Entry::Good(on) => Some(on),
                Entry::Bad => known.get(&name).copied(),
                Entry::Absent => None,
            };
            Some((name, flag?))
        });
        self.flags = Some(flags.collect());
    }

    /// The module has hooks that would run, if nobody but files and the ConfigMap has anything to say.
    pub(super) fn expects(&self, extenders: &Extenders, unit: &Unit) -> bool {
        let Some(flags) = &self.flags else { return false };
        let found = unit.found();
        let opinions = Opinions {
            extenders,
            fixed: found.enabled,
            dynamic: None,
            config: flags.get(&found.name).copied(),
        };
        // To act as somebody else takes a token, and who asks for one is noticed.
        found.has_hooks && !found.has_account && found.broken.is_none() && opinions.verdict().enabled
    }

    /// The monitors of this hook were started before their time, and nobody has taken them yet.
    pub(super) fn holds(&self, hook: &HookId) -> bool {
        self.watches.contains_key(hook)
    }

    /// A job that was begun before its time ended: the lane whose head waits for it by now, if one does.
    pub(super) fn awaited_by(&mut self, id: JobId) -> Option<Lane> {
        self.taken_over.remove(&id)
    }

    fn is_asking(&self) -> bool {
        self.answers.values().any(|answer| matches!(answer, Answer::Asked(_)))
    }

    /// What the hooks of modules have answered.
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

    /// The monitors of these hooks are to be started.
    pub(super) fn expect_watches<'a>(&mut self, hooks: impl Iterator<Item = (HookId, &'a HookConfig)>) {
        let watching = hooks.filter(|(_, config)| !config.kubernetes.is_empty());
        self.watches.extend(watching.map(|(hook, _)| (hook, Watch::FRESH)));
    }

    /// Somebody took something of this owner. With the last watch the answer has no use any more.
    fn taken(&mut self, owner: &Owner) {
        let is_left = self.watches.keys().any(|hook| hook.owner == *owner);
        if let Some(module) = owner.module().filter(|_| !is_left) {
            self.answers.remove(module);
        }
    }
}

/// What was begun before its time and is wanted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Warm {
    /// It is there.
    Ready,
    /// It is under way, and the head of the lane waits for it from now on.
    UnderWay,
    /// It has to be begun.
    Nothing,
}

/// A standby finds out.
impl Warmth {
    /// Asks the hooks of the modules that would run.
    pub(super) fn ask(&mut self, cx: &mut Cx, jobs: &mut Jobs, modules: &Modules) {
        while jobs.hook_slot(&cx.policy) {
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

    /// Hooks of a module were asked before its time; `is_standby` if their monitors are to be started before it, too. That one of
    /// them cannot say what it wants, who leads will tell.
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

    /// The hooks whose monitors may be started by now; none while hooks may still say that they convert what would be listed.
    pub(super) fn due(&self, cx: &Cx, bindings: &Bindings) -> Vec<HookId> {
        if self.is_asking() || self.knows_conversions(bindings) {
            return Vec::new();
        }
        let due = self.watches.iter().filter(|(_, watch)| watch.is_due(cx.now.tick));
        due.map(|(hook, _)| hook.clone()).collect()
    }

    /// Starts the monitors of these hooks.
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

    /// A start of monitors before their time has ended. What is not there yet, as a kind that who leads brings first, may
    /// be there later.
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

    /// When a standby tries again to watch what it could not.
    pub(super) fn timeout(&self, cx: &Cx) -> Option<(Tick, Waiting)> {
        let due = self.watches.values().filter_map(|watch| match watch {
            Watch::Due { at, .. } if *at > cx.now.tick => Some(*at),
            Watch::Due { .. } | Watch::Starting { .. } | Watch::Watching => None,
        });
        let step = "watch the objects of hooks before they run";
        Some((due.min()?, Waiting::Step(step.to_owned())))
    }

    /// The modules of which something was found out.
    pub(super) fn modules(&self) -> impl Iterator<Item = &ModuleName> {
        self.answers.keys()
    }
}

/// It is our turn: what is ready is taken, the rest is dropped.
impl Warmth {
    /// Nothing more is begun before its time. Whoever is being asked goes on, and takes no place from others.
    pub(super) fn end(&mut self, jobs: &mut Jobs) {
        self.flags = None;
        self.has_time = false;
        for answer in self.answers.values() {
            if let Answer::Asked(id) = answer {
                jobs.vacate(*id);
            }
        }
    }

    /// Drops what was found out of a module. What is under way is dropped when it ends, if the module is not wanted again
    /// by then. Returns the hooks whose monitors are to end.
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

    /// What the hooks of a module have answered, if they have.
    pub(super) fn take_answer(&mut self, name: &ModuleName) -> Option<Vec<(HookName, HookConfig)>> {
        let Some(Answer::Known(hooks)) = self.answers.get(name) else {
            return None;
        };
        let hooks = hooks.clone();
        self.taken(&Owner::Module(name.clone()));
        Some(hooks)
    }

    /// The head of a lane is to ask the hooks of a module.
    pub(super) fn take_question(&mut self, lane: &Lane, name: &ModuleName) -> Warm {
        let Some(Answer::Asked(id)) = self.answers.get(name) else {
            return Warm::Nothing;
        };
        self.taken_over.insert(*id, lane.clone());
        self.answers.remove(name);
        Warm::UnderWay
    }

    /// The head of a lane is to start the monitors of a hook.
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
