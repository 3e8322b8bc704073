//! What a standby finds out before its time, so that little is left to do once it leads: what the hooks of the modules
//! bind to that would run, and the objects that hooks watch.
//!
//! Files and the flags of the ConfigMap say which modules these are; nothing is run but `--config`, and what changes is
//! told to nobody. Nothing of this is begun before another one is known to lead: who is about to lead does everything in
//! its order, as hooks may see. Must never hold up who leads: what is ready is taken, what is under way is waited for where
//! it would have to be done, what failed is the leader's, who says so.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Operator;
use super::effect::{Job, JobId, Notice};
use super::event::ConfigRead;
use super::modules::{Turn, Unit};
use super::query::Waiting;
use super::standing::Standing;
use super::task::Lane;
use super::ticket::{AskFor, WatchFor};
use crate::failure::Failure;
use crate::hook::config::HookConfig;
use crate::module::enabling::Opinions;
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
    fn expects(&self, unit: &Unit) -> bool {
        let Some(flags) = &self.flags else { return false };
        let found = &unit.found;
        let opinions = Opinions {
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
    fn expect_watches<'a>(&mut self, hooks: impl Iterator<Item = (HookId, &'a HookConfig)>) {
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

impl Operator {
    /// Finds out what can be found out by now, and drops what is not wanted any more.
    pub(super) fn warm_up(&mut self) {
        self.cool_down();
        self.ask_modules();
        self.begin_watches();
    }

    /// It is our turn: nothing more is begun before its time. Whoever is being asked goes on, and takes no place from
    /// others.
    pub(super) fn end_warming(&mut self) {
        self.warmth.flags = None;
        self.warmth.has_time = false;
        for answer in self.warmth.answers.values() {
            if let Answer::Asked(id) = answer {
                self.jobs.vacate(*id);
            }
        }
    }

    /// The module would run, or is to, as far as can be said by now.
    fn is_expected(&self, name: &ModuleName) -> bool {
        self.modules
            .get(name)
            .is_some_and(|unit| match (self.standing, &unit.turn) {
                (Standing::Standby, _) => self.warmth.expects(unit),
                (Standing::Leads, Turn::Out) => !self.converge.first_took_up(),
                (Standing::Leads, Turn::Held(_)) => !self.converge.first_done,
                (Standing::Leads, Turn::Waiting | Turn::Running | Turn::Passed | Turn::Failed | Turn::Late) => true,
            })
    }

    fn ask_modules(&mut self) {
        while self.jobs.hook_slot(&self.policy) {
            let expected = self.modules.values().filter(|unit| {
                let name = &unit.found.name;
                !self.warmth.answers.contains_key(name) && self.warmth.expects(unit)
            });
            let Some(unit) = expected.min_by_key(|unit| (unit.found.order, &unit.found.name)) else {
                return;
            };
            let name = unit.found.name.clone();
            let owner = Owner::Module(name.clone());
            let id = self.start_job(AskFor::Warmth(name.clone()), |ticket| {
                Job::ConfigureHooks(owner, ticket)
            });
            self.warmth.answers.insert(name, Answer::Asked(id));
        }
    }

    /// Hooks of a module were asked before its time. That one of them cannot say what it wants, who leads will tell.
    pub(super) fn module_answered(&mut self, name: &ModuleName, result: Result<Vec<(HookName, HookConfig)>, Failure>) {
        let answer = match result {
            Ok(hooks) => {
                if self.standing == Standing::Standby {
                    let owner = Owner::Module(name.clone());
                    let id = |hook: &HookName| HookId {
                        owner: owner.clone(),
                        name: hook.clone(),
                    };
                    let hooks = hooks.iter().map(|(hook, config)| (id(hook), config));
                    self.warmth.expect_watches(hooks);
                }
                Answer::Known(hooks)
            }
            Err(_) => Answer::Refused,
        };
        self.warmth.answers.insert(name.clone(), answer);
        self.cool_unless_expected(name);
    }

    /// The global hooks answered while somebody else leads.
    pub(super) fn global_hooks_answered(&mut self) {
        let hooks = self.hooks.iter().map(|(hook, config)| (hook.clone(), config));
        self.warmth.expect_watches(hooks);
    }

    fn begin_watches(&mut self) {
        let is_due = |hook: &HookId, watch: &Watch| {
            watch.is_due(self.now.tick) && hook.owner.module().is_none_or(|module| self.is_expected(module))
        };
        let watches = self.warmth.watches.iter();
        let due: Vec<HookId> = watches
            .filter(|(hook, watch)| is_due(hook, watch))
            .map(|(hook, _)| hook.clone())
            .collect();
        // Who lists objects that hooks convert may have to wait for these; whether any does is known once all have
        // answered.
        if due.is_empty() || self.warmth.is_asking() || self.knows_conversions() {
            return;
        }
        for hook in due {
            let config = self.hooks.get(&hook).or_else(|| self.warmth.config_of(&hook));
            let Some(bindings) = config.map(|config| config.kubernetes.clone()) else {
                continue;
            };
            let monitors = self.name_monitors(&hook, bindings);
            let wanted_by = WatchFor::Warmth(hook.clone());
            let job = self.start_job(wanted_by, |ticket| Job::StartMonitors {
                hook: hook.clone(),
                monitors,
                ticket,
            });
            if let Some(watch) = self.warmth.watches.get_mut(&hook) {
                let failures = watch.failures();
                *watch = Watch::Starting { job, failures };
            }
        }
    }

    fn knows_conversions(&self) -> bool {
        let mut known = self.hooks.values().chain(self.warmth.answered());
        known.any(|config| !config.conversions.is_empty())
    }

    /// A start of monitors before their time has ended. What is not there yet, as a kind that who leads brings first, may
    /// be there later.
    pub(super) fn warmed(&mut self, hook: HookId, result: &Result<(), Failure>) {
        let watch = if result.is_ok() {
            self.monitors_watch(&hook);
            Watch::Watching
        } else {
            self.forget_monitors(&hook);
            let failures = self.warmth.watches.get(&hook).map_or(0, |watch| watch.failures());
            let delay = Backoff::delay(failures, self.jitter.draw());
            Watch::Due {
                at: self.now.tick + delay,
                failures: failures + 1,
            }
        };
        let module = hook.owner.module().cloned();
        self.warmth.watches.insert(hook, watch);
        if let Some(module) = module {
            self.cool_unless_expected(&module);
        }
    }

    /// When a standby tries again to watch what it could not.
    pub(super) fn warmth_timeout(&self) -> Option<(Tick, Waiting)> {
        let due = self.warmth.watches.values().filter_map(|watch| match watch {
            Watch::Due { at, .. } if *at > self.now.tick => Some(*at),
            Watch::Due { .. } | Watch::Starting { .. } | Watch::Watching => None,
        });
        let step = "watch the objects of hooks before they run";
        Some((due.min()?, Waiting::Step(step.to_owned())))
    }

    /// Drops what was found out of modules that are not to run after all.
    pub(super) fn cool_down(&mut self) {
        let names = self.warmth.answers.keys();
        let off: Vec<ModuleName> = names.filter(|name| !self.is_expected(name)).cloned().collect();
        for name in off {
            self.cool(&name);
        }
    }

    fn cool_unless_expected(&mut self, name: &ModuleName) {
        if !self.is_expected(name) {
            self.cool(name);
        }
    }

    /// Drops what was found out of a module. What is under way is dropped when it ends, if the module is not wanted again
    /// by then.
    pub(super) fn cool(&mut self, name: &ModuleName) {
        let Some(answer) = self.warmth.answers.get(name) else {
            return;
        };
        let mut is_busy = matches!(answer, Answer::Asked(_));
        let owner = Owner::Module(name.clone());
        let mut watched = Vec::new();
        for (hook, watch) in self.warmth.watches.iter_mut().filter(|(hook, _)| hook.owner == owner) {
            match watch {
                Watch::Due { .. } => {}
                Watch::Starting { .. } => is_busy = true,
                Watch::Watching => {
                    watched.push(hook.clone());
                    *watch = Watch::FRESH;
                }
            }
        }
        for hook in watched {
            self.stop_monitors_of(&hook);
        }
        if !is_busy {
            self.warmth.answers.remove(name);
            self.warmth.watches.retain(|hook, _| hook.owner != owner);
        }
    }

    /// The hooks of a module are to be asked. True if they have answered already.
    pub(super) fn takes_warm_answer(&mut self, name: &ModuleName) -> bool {
        let Some(Answer::Known(hooks)) = self.warmth.answers.get(name) else {
            return false;
        };
        let (owner, hooks) = (Owner::Module(name.clone()), hooks.clone());
        self.hooks_configured(&owner, hooks);
        self.warmth.taken(&owner);
        self.step_succeeded(name);
        true
    }

    /// The head of a lane is to ask the hooks of a module. True if they are being asked already.
    pub(super) fn takes_warm_question(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        let Some(Answer::Asked(id)) = self.warmth.answers.get(name) else {
            return false;
        };
        self.queues.running(lane, self.now.tick);
        self.warmth.taken_over.insert(*id, lane.clone());
        self.warmth.answers.remove(name);
        true
    }

    /// The head of a lane is to start the monitors of a hook. True if they watch already, or are about to.
    pub(super) fn takes_warm_monitors(&mut self, lane: &Lane, hook: &HookId) -> bool {
        let watch = self.warmth.watches.remove(hook);
        self.warmth.taken(&hook.owner);
        match watch {
            Some(Watch::Watching) => {
                self.queues.running(lane, self.now.tick);
                self.tell_of_unread(hook);
                self.monitors_started(lane, hook);
                let (hook, took) = (hook.clone(), Duration::ZERO);
                self.tell(Notice::MonitorsStarted { hook, took });
                true
            }
            Some(Watch::Starting { job, .. }) => {
                self.queues.running(lane, self.now.tick);
                self.tell_of_unread(hook);
                self.warmth.taken_over.insert(job, lane.clone());
                true
            }
            Some(Watch::Due { .. }) | None => false,
        }
    }
}
