//! The way through the middle of a converge: modules that are switched off are removed, the others run in their order.

use std::collections::VecDeque;

use crate::failure::{Class, Failure};
use crate::module::graph::{self, Blocked};
use crate::name::ModuleName;
use crate::operator::Operator;
use crate::operator::config::lost::LOST;
use crate::operator::converge::wave::Wave;
use crate::operator::effect::Notice;
use crate::operator::modules::{Hold, Turn, Unit};
use crate::operator::task::{Lane, RunReason, Task};
use crate::queue::Entry;

impl Operator {
    /// Takes up what the verdicts say: who runs, who is removed, who cannot run.
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
        for (name, failure) in self.broken() {
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

    /// The configuration that the release of an enabled module was made with is lost.
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

    fn broken(&self) -> Vec<(ModuleName, Failure)> {
        let broken = |unit: &Unit| Some((unit.name().clone(), unit.found().broken.clone()?));
        self.modules.iter().filter_map(broken).collect()
    }

    /// An enabled module that cannot run as it is declared.
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

    /// What waits for a module that is switched off has no sense any more, in whichever queue.
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
        self.lanes
            .drop_tasks(&mut self.cx, "their module was switched off", of_module);
    }

    /// Starts what may start. True when everything has passed.
    pub(super) fn advance_wave(&mut self, wave: &mut Wave) -> bool {
        if !self.advance_removals(wave) {
            return false;
        }
        while let Some(group) = wave.group() {
            // One that is held may hold others, and by name they may have been looked at before it.
            let group = group.clone();
            while group.iter().any(|name| self.give_turn(name)) || self.leave_behind() {}
            let strict = self.cx.policy.strict_order;
            let over = |name: &ModuleName| self.modules.is_over(name, strict);
            if !wave.group().is_some_and(|group| group.iter().all(over)) {
                return self.strict_order_waits_for_trial(wave);
            }
            wave.end_group();
        }
        true
    }

    /// Removals go one after another; one that failed once or hangs goes on by itself and holds back only what it needs,
    /// which is left for a converge after its end.
    fn advance_removals(&mut self, wave: &mut Wave) -> bool {
        let strict = self.cx.policy.strict_order;
        loop {
            if let Some(name) = wave.removing() {
                let lane = Lane::Module(name.clone());
                let pending = |entry: &Entry<Task>| entry.task.is_removal() && (strict || entry.failures == 0);
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
            // Who spoke since the converge looked may want one of them after all.
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
            // One that hung when the converge began is still at it.
            let deletes = |head: &Entry<Task>| head.task.is_removal();
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

    /// A module whose group has come runs as soon as what it needs has succeeded. True if that settled its turn.
    fn give_turn(&mut self, name: &ModuleName) -> bool {
        let Some(unit) = self.modules.get(name).filter(|unit| *unit.turn() == Turn::Waiting) else {
            return false;
        };
        let needs = unit.found().depends_on.clone();
        if let Some(hold) = self.lacking_need(&needs) {
            self.cx.tell(Notice::ModuleHeld {
                module: name.clone(),
                reason: hold.reason.clone(),
            });
            if let Some(unit) = self.modules.get_mut(name) {
                unit.hold(hold);
            }
            return true;
        }
        if !self.modules.all_passed(&needs) {
            return false;
        }
        let task = Task::ModuleRun {
            module: name.clone(),
            reason: self.turn_reason(),
        };
        self.lanes.let_run(&self.cx, task, name);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.run_queued();
        }
        true
    }

    /// The reason of runs and removals whose turn has come.
    fn turn_reason(&self) -> RunReason {
        if self.converge.is_first_over() {
            RunReason::Converge
        } else {
            RunReason::Startup
        }
    }

    /// The first needed module that will not succeed soon, and why.
    fn lacking_need(&self, needs: &[ModuleName]) -> Option<Hold> {
        needs.iter().find_map(|need| {
            let unit = self.modules.get(need)?;
            let why = match unit.turn() {
                _ if !unit.is_enabled() && self.script_is_silent(need) => "whose enabled script fails".to_owned(),
                _ if !unit.is_enabled() => "which is disabled".to_owned(),
                Turn::Failed => "which fails".to_owned(),
                Turn::Late => "whose run hangs".to_owned(),
                Turn::Held(hold) => format!("which is held: {}", hold.reason),
                Turn::Out | Turn::Waiting | Turn::Running | Turn::Passed => return None,
            };
            Some(Hold {
                reason: format!("it needs module '{need}', {why}"),
                need: Some(need.clone()),
                is_own_fault: false,
                is_for_trial: false,
            })
        })
    }

    /// The module's script has not answered, or has failed since it did, also while it is about to be asked again.
    fn script_is_silent(&self, name: &ModuleName) -> bool {
        self.verdicts.is_undecided(name) || self.verdicts.script_failure(name).is_some()
    }

    /// Modules whose runs hang hold up nobody of this converge any longer. True if there are such that did before.
    fn leave_behind(&mut self) -> bool {
        let survey = self.survey();
        let hangs = |unit: &Unit| *unit.turn() == Turn::Running && survey.hangs(&Lane::Module(unit.name().clone()));
        let names = self.modules.names_of(hangs);
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

    /// In strict order nobody overtakes a module that waits for the trial, and the trial waits for the converge: those behind it
    /// wait for the trial, too. True if that is so, and nobody else is waited for.
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
