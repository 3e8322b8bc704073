//! The way through the middle of a converge: disabled modules are removed, then the enabled modules run in their order.

use std::collections::VecDeque;

use names::ModuleName;

use crate::failure::{Class, Failure};
use crate::module::graph::{self, Blocked};
use crate::operator::Operator;
use crate::operator::config::lost::LOST;
use crate::operator::converge::wave::Wave;
use crate::operator::effect::Notice;
use crate::operator::modules::{Hold, Turn, Unit};
use crate::operator::task::{Entry, Lane, RunReason, Task};

/// The answer to a module that waits for its turn.
enum Given {
    /// The module goes on waiting: the modules that it needs have not succeeded.
    Nothing,
    /// Its run was queued.
    Run,
    /// It is held, because a module that it needs will not succeed soon.
    Hold,
}

impl Operator {
    /// Takes up the verdicts: which modules run, which are removed, and which cannot run.
    pub(super) fn take_up(&mut self) -> Wave {
        self.brake();
        let wanted = self.verdicts.wanted();
        let plan = graph::plan(&self.modules.nodes());
        let mut removals = VecDeque::new();
        for name in plan.order {
            let removable = self.certainty().is_removable(&name);
            let Some(unit) = self.modules.get_mut(&name) else {
                continue;
            };
            let is_wanted = wanted.contains(&name);
            unit.take_up(is_wanted);
            if is_wanted {
                self.config.forget_confirmation(&name);
            } else {
                self.cool(&name);
                self.silence(&name);
            }
            if removable {
                removals.push_front(name);
            }
        }
        for name in &removals {
            self.drop_tasks_of(name);
        }
        for (name, blocked) in plan.blocked {
            let failure = Failure::of(Class::Invalid, &blocked);
            let hold = Hold {
                reason: failure.report.clone(),
                need: Some(blocked.need().clone()),
                is_own_fault: !matches!(blocked, Blocked::Needs(_)),
                is_for_trial: false,
            };
            self.block(&name, failure, hold);
        }
        for name in self.config.losses().modules() {
            self.hold_for_loss(&name);
        }
        for (name, failure) in self.unusable() {
            let hold = Hold {
                reason: failure.report.clone(),
                need: None,
                is_own_fault: true,
                is_for_trial: false,
            };
            self.block(&name, failure, hold);
        }
        let groups = plan
            .groups
            .into_iter()
            .map(|group| group.into_iter().filter(|name| wanted.contains(name)).collect());
        Wave::new(removals, groups.collect())
    }

    /// Holds an enabled module, because the configuration that its release was made with is lost.
    fn hold_for_loss(&mut self, name: &ModuleName) {
        let Some(unit) = self.modules.get_mut(name).filter(|unit| unit.is_enabled()) else {
            return;
        };
        let reason = LOST.to_owned();
        unit.hold(Hold {
            reason,
            need: None,
            is_own_fault: true,
            is_for_trial: false,
        });
    }

    /// The modules whose files cannot be used, or that wait for files.
    fn unusable(&self) -> Vec<(ModuleName, Failure)> {
        let lacking = self.lacking_files();
        let is_told = |name: &ModuleName| lacking.iter().any(|(lacking, _)| lacking == name);
        let broken = |unit: &Unit| Some((unit.name().clone(), unit.found().broken.clone()?));
        let broken = self.modules.iter().filter_map(broken);
        let broken: Vec<_> = broken.filter(|(name, _)| !is_told(name)).collect();
        lacking.into_iter().chain(broken).collect()
    }

    /// Blocks an enabled module that cannot run as it is declared.
    fn block(&mut self, name: &ModuleName, failure: Failure, hold: Hold) {
        let Some(unit) = self.modules.get_mut(name).filter(|unit| unit.is_enabled()) else {
            return;
        };
        unit.hold(hold);
        self.cx.tell(Notice::ModuleBlocked {
            module: name.clone(),
            failure,
        });
    }

    /// Drops the tasks that wait for a module that is switched off, in all queues.
    fn drop_tasks_of(&mut self, name: &ModuleName) {
        let of_module = |task: &Task| match task {
            Task::ModuleRun { module, .. } => module == name,
            Task::Hook(hook) => hook.hook.owner.module() == Some(name),
            Task::EnableKubernetes(_)
            | Task::EnableSchedules(_)
            | Task::AwaitFirstRuns
            | Task::Converge(_)
            | Task::ModuleDelete { .. }
            | Task::Purge { .. } => false,
        };
        self.loops.drop_hooks(|task| task.hook.owner.module() == Some(name));
        self.lanes
            .drop_tasks(&mut self.cx, "their module was switched off", of_module);
    }

    /// Starts the removals and runs that may start. True when the last group is over.
    pub(super) fn advance_wave(&mut self, wave: &mut Wave) -> bool {
        if !self.advance_removals(wave) {
            return false;
        }
        while wave.group().is_some() {
            self.give_turns(wave.waiting_mut());
            let strict = self.cx.policy.strict_order;
            if !wave.is_group_over(|name| self.modules.is_over(name, strict)) {
                return self.strict_order_waits_for_trial(wave);
            }
            wave.end_group();
        }
        true
    }

    /// Removes modules one after another. The converge does not wait for a removal that failed once or hangs. Such a
    /// removal delays only the removals of the modules that its own module depends on. A later converge does these
    /// removals.
    fn advance_removals(&mut self, wave: &mut Wave) -> bool {
        let strict = self.cx.policy.strict_order;
        loop {
            if let Some(name) = wave.removing() {
                let lane = Lane::Module(name.clone());
                let pending = |entry: &Entry| entry.task.is_removal() && (strict || entry.failures == 0);
                let is_pending =
                    self.lanes.head(&lane).is_some_and(pending) || self.lanes.behind_head(&lane).any(pending);
                if is_pending && !self.survey().hangs(&lane) {
                    return false;
                }
                wave.end_removal();
            }
            if wave.removals().is_empty() {
                return true;
            }
            // The verdicts are outdated: a source may want one of the modules after all.
            if !self.verdicts.is_known() {
                return false;
            }
            self.brake();
            let Some(name) = wave.next_removal() else {
                return true;
            };
            let certainty = self.certainty();
            if !certainty.is_removable(&name) || certainty.outlived_by(&name).is_some() {
                continue;
            }
            self.count_removal(&name);
            let lane = Lane::Module(name.clone());
            // A removal from before the converge may still be in the lane. Then no second removal is queued.
            let deletes = |head: &Entry| head.task.is_removal();
            if !self.lanes.head(&lane).is_some_and(deletes) {
                let task = Task::ModuleDelete {
                    module: name.clone(),
                    reason: self.turn_reason(),
                };
                self.lanes.push(&self.cx, lane, task);
            }
            wave.removal_begins(name);
        }
    }

    /// Gives turns until no turn changes any more.
    fn give_turns(&mut self, waiting: &mut Vec<ModuleName>) {
        loop {
            waiting.retain(|name| self.modules.is_waiting(name));
            let mut has_held = false;
            waiting.retain(|name| match self.give_turn(name) {
                Given::Nothing => true,
                Given::Run => false,
                Given::Hold => {
                    has_held = true;
                    false
                }
            });
            // A module that is held or left behind may hold modules that were looked at before it.
            if !has_held && !self.leave_behind() {
                return;
            }
        }
    }

    /// Runs a module of the current group once the modules that it depends on have succeeded.
    fn give_turn(&mut self, name: &ModuleName) -> Given {
        let Some(unit) = self.modules.get(name) else {
            return Given::Nothing;
        };
        if let Some(hold) = self.lacking_need(unit) {
            self.cx.tell(Notice::ModuleHeld {
                module: name.clone(),
                reason: hold.reason.clone(),
            });
            if let Some(unit) = self.modules.get_mut(name) {
                unit.hold(hold);
            }
            return Given::Hold;
        }
        if !self.has_all_needs(unit) {
            return Given::Nothing;
        }
        let task = Task::ModuleRun {
            module: name.clone(),
            reason: self.turn_reason(),
        };
        self.loops.run_asked(name, &self.loops.of_converge(), true);
        self.lanes.let_run(&self.cx, task, name);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.run_queued();
        }
        Given::Run
    }

    /// The reason of the runs and removals of this converge.
    fn turn_reason(&self) -> RunReason {
        if self.converge.is_first_over() {
            RunReason::Converge
        } else {
            RunReason::Startup
        }
    }

    /// Whether all modules that this module needs have succeeded and are as healthy as it needs them.
    fn has_all_needs(&self, unit: &Unit) -> bool {
        let survey = self.survey();
        let mut needs = unit.found().depends_on.iter();
        needs.all(|need| self.modules.has_passed(need) && !survey.awaits_health(unit, need))
    }

    /// The first module that this module needs and that will not succeed or get healthy soon, as the reason of a hold.
    fn lacking_need(&self, dependent: &Unit) -> Option<Hold> {
        let survey = self.survey();
        dependent.found().depends_on.iter().find_map(|need| {
            let unit = self.modules.get(need)?;
            let why = match unit.turn() {
                _ if !unit.is_enabled() && self.script_is_silent(need) => "whose enabled script fails".to_owned(),
                _ if !unit.is_enabled() => "which is disabled".to_owned(),
                Turn::Failed => "which fails".to_owned(),
                Turn::Late => "whose run hangs".to_owned(),
                Turn::Held(hold) => format!("which is held: {}", hold.reason),
                Turn::Passed => survey.health_obstacle(dependent, need)?,
                Turn::Out | Turn::Waiting | Turn::Running => return None,
            };
            Some(Hold {
                reason: format!("it needs module '{need}', {why}"),
                need: Some(need.clone()),
                is_own_fault: false,
                is_for_trial: false,
            })
        })
    }

    /// Whether the module's script has not answered, or has failed since its last answer, even if it is about to be asked
    /// again.
    fn script_is_silent(&self, name: &ModuleName) -> bool {
        self.verdicts.is_undecided(name) || self.verdicts.script_failure(name).is_some()
    }

    /// Lets the converge go on without the modules whose runs hang. True if there are such modules.
    fn leave_behind(&mut self) -> bool {
        let survey = self.survey();
        let runs = |name: &&ModuleName| self.modules.get(name).is_some_and(|unit| *unit.turn() == Turn::Running);
        let names: Vec<ModuleName> = survey.hanging().filter(runs).cloned().collect();
        let found = !names.is_empty();
        for name in names {
            if let Some(unit) = self.modules.get_mut(&name) {
                unit.left_behind();
            }
            let notice = Notice::ModuleLate {
                waits_for: self.survey().module_waits_for(&name),
                module: name,
            };
            self.cx.tell(notice);
        }
        found
    }

    /// In strict order the modules behind a module that waits for the trial would wait for ever, because the trial
    /// waits for the converge. So these modules are made to wait for the trial, too, if nothing else holds the group
    /// up. True if this was done.
    fn strict_order_waits_for_trial(&mut self, wave: &mut Wave) -> bool {
        let Some(group) = wave.group().filter(|_| self.cx.policy.strict_order) else {
            return false;
        };
        let turn_of = |name: &ModuleName| self.modules.get(name).map(Unit::turn);
        let is_settled =
            |name: &ModuleName| turn_of(name).is_none_or(|turn| turn.is_over(true) || turn.waits_for_trial());
        let first = group
            .iter()
            .find(|name| turn_of(name).is_some_and(Turn::waits_for_trial));
        let Some(first) = first.filter(|_| group.iter().all(is_settled)).cloned() else {
            return false;
        };
        for name in wave.give_up_groups() {
            if self.modules.is_waiting(&name) {
                let reason =
                    format!("in strict order it comes after module '{first}', which waits for the end of a trial");
                self.hold_for_trial(&name, reason);
            }
        }
        true
    }
}
