//! The middle of a converge: modules that are switched off are removed, the others run in their order.

use std::collections::{BTreeMap, VecDeque};

use super::Operator;
use super::config::lost::LOST;
use super::converge::Phase;
use super::effect::Notice;
use super::modules::{Hold, Turn, Unit};
use super::task::{Lane, Reason, RunReason, Task};
use crate::failure::{Class, Failure};
use crate::module::graph::{self, Blocked, Node};
use crate::name::ModuleName;

/// The modules that a converge has still to get through.
#[derive(Debug, Default)]
pub(super) struct Wave {
    /// To be removed one after another, the last module first; then the one whose removal is under way.
    removals: VecDeque<ModuleName>,
    pub(super) removing: Option<ModuleName>,
    /// Groups to run, the next one first.
    pub(super) groups: VecDeque<Vec<ModuleName>>,
}

impl Operator {
    /// Takes up what the verdicts say: who runs, who is removed, who cannot run.
    pub(super) fn take_up(&mut self) -> Wave {
        self.brake();
        let wanted = self.wanted();
        let plan = graph::plan(&self.nodes());
        let mut removals = VecDeque::new();
        for name in plan.order {
            let removable = self.is_removable(&name);
            let Some(unit) = self.modules.get_mut(&name) else {
                continue;
            };
            unit.enabled = wanted.contains(&name);
            unit.conversions_ensured = false;
            unit.turn = if unit.enabled { Turn::Waiting } else { Turn::Out };
            if unit.enabled {
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
        for name in self.config.losses.modules() {
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
        Wave {
            removals,
            removing: None,
            groups: groups.collect(),
        }
    }

    /// What makes a removal certain may come after the converge that looked at it. True if another is asked for.
    pub(super) fn request_removals(&mut self) -> bool {
        if self.converge.first_took_up() && self.assessment.is_known() {
            self.brake();
        }
        let planned = match &self.converge.active {
            None => Some(&VecDeque::new()),
            // In strict order it lasts until all modules have succeeded, which may have to wait for such a removal.
            Some(active) if self.cx.policy.strict_order && !self.converge.restarts() => match &active.phase {
                Phase::Modules(wave) => Some(&wave.removals),
                _ => None,
            },
            Some(_) => None,
        };
        let planned = planned.filter(|_| self.converge.first_took_up() && self.assessment.is_known());
        let overdue = planned.is_some_and(|planned| {
            let due = |name: &ModuleName| self.is_removable(name) && self.outlived_by(name).is_none();
            let mut names = self.modules.keys();
            names.any(|name| due(name) && !self.lanes.is_being_deleted(name) && !planned.contains(name))
        });
        let before = self.lanes.ledger();
        if overdue {
            self.request_converge(Reason::RemovalCertain, true);
        }
        self.lanes.ledger() != before || overdue && self.converge.restarts()
    }

    pub(super) fn nodes(&self) -> BTreeMap<ModuleName, Node> {
        let node = |unit: &Unit| Node {
            order: unit.found.order,
            needs: unit.found.depends_on.clone(),
        };
        self.modules
            .iter()
            .map(|(name, unit)| (name.clone(), node(unit)))
            .collect()
    }

    /// The configuration that the release of an enabled module was made with is lost.
    fn hold_for_loss(&mut self, name: &ModuleName) {
        let Some(unit) = self.modules.get_mut(name).filter(|unit| unit.enabled) else {
            return;
        };
        let reason = LOST.to_owned();
        unit.turn = Turn::Held(Hold {
            reason,
            need: None,
            is_own_fault: true,
            is_for_trial: false,
        });
    }

    fn broken(&self) -> Vec<(ModuleName, Failure)> {
        let broken = self
            .modules
            .values()
            .filter_map(|unit| Some((&unit.found.name, unit.found.broken.as_ref()?)));
        broken.map(|(name, failure)| (name.clone(), failure.clone())).collect()
    }

    /// An enabled module that cannot run as it is declared.
    fn block(&mut self, name: &ModuleName, failure: Failure, hold: Hold) {
        let Some(unit) = self.modules.get_mut(name).filter(|unit| unit.enabled) else {
            return;
        };
        unit.turn = Turn::Held(hold);
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
        while let Some(group) = wave.groups.front() {
            // One that is held may hold others, and by name they may have been looked at before it.
            let group = group.clone();
            while group.iter().any(|name| self.give_turn(name)) || self.leave_behind() {}
            let strict = self.cx.policy.strict_order;
            let over = |name: &ModuleName| self.modules.get(name).is_none_or(|unit| unit.turn.is_over(strict));
            if !wave.groups.front().is_some_and(|group| group.iter().all(over)) {
                return self.strict_order_waits_for_trial(wave);
            }
            wave.groups.pop_front();
        }
        true
    }

    /// Removals go one after another; one that failed once or hangs goes on by itself and holds back only what it needs,
    /// which is left for a converge after its end.
    fn advance_removals(&mut self, wave: &mut Wave) -> bool {
        let strict = self.cx.policy.strict_order;
        loop {
            if let Some(name) = &wave.removing {
                let lane = Lane::Module(name.clone());
                let pending =
                    |entry: &crate::queue::Entry<Task>| entry.task.is_removal() && (strict || entry.failures == 0);
                let is_pending =
                    self.lanes.head(&lane).is_some_and(pending) || self.lanes.behind_head(&lane).any(pending);
                if is_pending && !self.hangs(&lane) {
                    return false;
                }
                wave.removing = None;
            }
            if wave.removals.is_empty() {
                return true;
            }
            // Who spoke since the converge looked may want one of them after all.
            if !self.assessment.is_known() {
                return false;
            }
            self.brake();
            let Some(name) = wave.removals.pop_front() else {
                return true;
            };
            if !self.is_removable(&name) || self.outlived_by(&name).is_some() {
                continue;
            }
            self.count_removal(&name);
            let lane = Lane::Module(name.clone());
            // One that hung when the converge began is still at it.
            let deletes = |head: &crate::queue::Entry<Task>| head.task.is_removal();
            if !self.lanes.head(&lane).is_some_and(deletes) {
                let task = Task::ModuleDelete { module: name.clone() };
                self.lanes.push(&self.cx, lane, task);
            }
            wave.removing = Some(name);
        }
    }

    /// A module whose group has come runs as soon as what it needs has succeeded. True if that settled its turn.
    fn give_turn(&mut self, name: &ModuleName) -> bool {
        let Some(unit) = self.modules.get(name).filter(|unit| unit.turn == Turn::Waiting) else {
            return false;
        };
        let needs = unit.found.depends_on.clone();
        let turn = match self.lacking_need(&needs) {
            Some(hold) => {
                self.cx.tell(Notice::ModuleHeld {
                    module: name.clone(),
                    reason: hold.reason.clone(),
                });
                Turn::Held(hold)
            }
            None if self.all_passed(&needs) => {
                let reason = if self.converge.first_done {
                    RunReason::Converge
                } else {
                    RunReason::Startup
                };
                let task = Task::ModuleRun {
                    module: name.clone(),
                    reason,
                };
                self.lanes.let_run(&self.cx, task, name);
                Turn::Running
            }
            None => return false,
        };
        if let Some(unit) = self.modules.get_mut(name) {
            unit.turn = turn;
        }
        true
    }

    fn all_passed(&self, needs: &[ModuleName]) -> bool {
        needs.iter().all(|need| {
            self.modules
                .get(need)
                .is_some_and(|unit| unit.enabled && unit.turn == Turn::Passed)
        })
    }

    /// The first needed module that will not succeed soon, and why.
    fn lacking_need(&self, needs: &[ModuleName]) -> Option<Hold> {
        needs.iter().find_map(|need| {
            let unit = self.modules.get(need)?;
            let why = match &unit.turn {
                _ if !unit.enabled && self.script_is_silent(need) => "whose enabled script fails".to_owned(),
                _ if !unit.enabled => "which is disabled".to_owned(),
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
        self.assessment.is_undecided(name) || self.assessment.script_failure(name).is_some()
    }

    /// A module succeeded: those that were held only because of it run now, and so do those that needed them.
    pub(super) fn release_held(&mut self) {
        let is_lost = |unit: &Unit| self.config.losses.hold(unit.found.name.as_str());
        let held = |unit: &&Unit| {
            let is_held = unit.turn.hold().is_some_and(|hold| !hold.is_for_trial);
            unit.enabled && is_held && !is_lost(unit)
        };
        let names: Vec<_> = self
            .modules
            .values()
            .filter(held)
            .map(|unit| unit.found.name.clone())
            .collect();
        if names.is_empty() {
            return;
        }
        let blocked = graph::plan(&self.nodes()).blocked;
        for name in names.into_iter().filter(|name| !blocked.contains_key(name)) {
            let Some(unit) = self.modules.get(&name) else { continue };
            let needs = unit.found.depends_on.clone();
            if unit.found.broken.is_none() && !needs.is_empty() && self.all_passed(&needs) {
                if let Some(unit) = self.modules.get_mut(&name) {
                    unit.turn = Turn::Running;
                }
                let task = Task::ModuleRun {
                    module: name.clone(),
                    reason: RunReason::DependencyReady,
                };
                self.lanes.let_run(&self.cx, task, &name);
            }
        }
    }
}
