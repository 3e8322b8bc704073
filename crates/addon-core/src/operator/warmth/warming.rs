//! The ways of a standby: it asks, watches and drops, and the leader takes what is ready.

use std::time::Duration;

use super::{Answer, Watch};
use crate::failure::Failure;
use crate::hook::config::HookConfig;
use crate::name::{HookId, HookName, ModuleName, Owner};
use crate::operator::Operator;
use crate::operator::effect::{Job, Notice};
use crate::operator::modules::Turn;
use crate::operator::query::Waiting;
use crate::operator::standing::Standing;
use crate::operator::task::Lane;
use crate::operator::ticket::{AskFor, WatchFor};
use crate::time::{Backoff, Tick};

impl Operator {
    /// Finds out what can be found out by now, and drops what is not wanted any more.
    pub(in crate::operator) fn warm_up(&mut self) {
        self.cool_down();
        self.ask_modules();
        self.begin_watches();
    }

    /// It is our turn: nothing more is begun before its time. Whoever is being asked goes on, and takes no place from
    /// others.
    pub(in crate::operator) fn end_warming(&mut self) {
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
        while self.jobs.hook_slot(&self.cx.policy) {
            let expected = self.modules.values().filter(|unit| {
                let name = &unit.found.name;
                !self.warmth.answers.contains_key(name) && self.warmth.expects(unit)
            });
            let Some(unit) = expected.min_by_key(|unit| (unit.found.order, &unit.found.name)) else {
                return;
            };
            let name = unit.found.name.clone();
            let owner = Owner::Module(name.clone());
            let id = self.jobs.begin(&mut self.cx, AskFor::Warmth(name.clone()), |ticket| {
                Job::ConfigureHooks(owner, ticket)
            });
            self.warmth.answers.insert(name, Answer::Asked(id));
        }
    }

    /// Hooks of a module were asked before its time. That one of them cannot say what it wants, who leads will tell.
    pub(in crate::operator) fn module_answered(
        &mut self,
        name: &ModuleName,
        result: Result<Vec<(HookName, HookConfig)>, Failure>,
    ) {
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
    pub(in crate::operator) fn global_hooks_answered(&mut self) {
        let hooks = self.bindings.iter().map(|(hook, config)| (hook.clone(), config));
        self.warmth.expect_watches(hooks);
    }

    fn begin_watches(&mut self) {
        let is_due = |hook: &HookId, watch: &Watch| {
            watch.is_due(self.cx.now.tick) && hook.owner.module().is_none_or(|module| self.is_expected(module))
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
            let config = self.bindings.get(&hook).or_else(|| self.warmth.config_of(&hook));
            let Some(bindings) = config.map(|config| config.kubernetes.clone()) else {
                continue;
            };
            let monitors = self.monitors.name(&hook, bindings);
            let start = |ticket| Job::StartMonitors {
                hook: hook.clone(),
                monitors,
                ticket,
            };
            let job = self.jobs.begin(&mut self.cx, WatchFor::Warmth(hook.clone()), start);
            if let Some(watch) = self.warmth.watches.get_mut(&hook) {
                let failures = watch.failures();
                *watch = Watch::Starting { job, failures };
            }
        }
    }

    fn knows_conversions(&self) -> bool {
        let mut known = self
            .bindings
            .iter()
            .map(|(_, config)| config)
            .chain(self.warmth.answered());
        known.any(|config| !config.conversions.is_empty())
    }

    /// A start of monitors before their time has ended. What is not there yet, as a kind that who leads brings first, may
    /// be there later.
    pub(in crate::operator) fn warmed(&mut self, hook: HookId, result: &Result<(), Failure>) {
        let watch = if result.is_ok() {
            self.monitors.watch(&hook);
            Watch::Watching
        } else {
            self.monitors.forget(&hook);
            let failures = self.warmth.watches.get(&hook).map_or(0, |watch| watch.failures());
            let delay = Backoff::delay(failures, self.cx.draw());
            Watch::Due {
                at: self.cx.now.tick + delay,
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
    pub(in crate::operator) fn warmth_timeout(&self) -> Option<(Tick, Waiting)> {
        let due = self.warmth.watches.values().filter_map(|watch| match watch {
            Watch::Due { at, .. } if *at > self.cx.now.tick => Some(*at),
            Watch::Due { .. } | Watch::Starting { .. } | Watch::Watching => None,
        });
        let step = "watch the objects of hooks before they run";
        Some((due.min()?, Waiting::Step(step.to_owned())))
    }

    /// Drops what was found out of modules that are not to run after all.
    pub(in crate::operator) fn cool_down(&mut self) {
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
    pub(in crate::operator) fn cool(&mut self, name: &ModuleName) {
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
    pub(in crate::operator) fn takes_warm_answer(&mut self, name: &ModuleName) -> bool {
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
    pub(in crate::operator) fn takes_warm_question(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        let Some(Answer::Asked(id)) = self.warmth.answers.get(name) else {
            return false;
        };
        self.lanes.running(&self.cx, lane);
        self.warmth.taken_over.insert(*id, lane.clone());
        self.warmth.answers.remove(name);
        true
    }

    /// The head of a lane is to start the monitors of a hook. True if they watch already, or are about to.
    pub(in crate::operator) fn takes_warm_monitors(&mut self, lane: &Lane, hook: &HookId) -> bool {
        let watch = self.warmth.watches.remove(hook);
        self.warmth.taken(&hook.owner);
        match watch {
            Some(Watch::Watching) => {
                self.lanes.running(&self.cx, lane);
                self.monitors.tell_of_unread(&self.bindings, hook);
                self.monitors_started(lane, hook);
                let (hook, took) = (hook.clone(), Duration::ZERO);
                self.cx.tell(Notice::MonitorsStarted { hook, took });
                true
            }
            Some(Watch::Starting { job, .. }) => {
                self.lanes.running(&self.cx, lane);
                self.monitors.tell_of_unread(&self.bindings, hook);
                self.warmth.taken_over.insert(job, lane.clone());
                true
            }
            Some(Watch::Due { .. }) | None => false,
        }
    }
}
