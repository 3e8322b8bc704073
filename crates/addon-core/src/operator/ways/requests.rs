//! Requests that other ways make: another run of a module, another converge, a new round of verdicts, a chore.

use std::collections::BTreeSet;

use names::{ModuleName, Owner};

use crate::module::graph;
use crate::operator::Operator;
use crate::operator::chores::Chore;
use crate::operator::effect::Job;
use crate::operator::modules::Unit;
use crate::operator::task::{Lane, Reason, RunReason, Task};
use crate::operator::ticket::AskFor;

impl Operator {
    /// Asks for a converge. With `restart` a running converge starts over, else another converge follows it.
    pub(super) fn request_converge(&mut self, reason: Reason, restart: bool) {
        self.loops.converge_is_foreign();
        self.converge.request(&self.cx, &mut self.lanes, reason, restart);
    }

    /// Runs a module once more because its own inputs changed, unless a waiting run will see the change.
    pub(super) fn rerun(&mut self, name: &ModuleName, reason: RunReason) {
        self.loops.run_is_foreign(name);
        self.queue_run(name, reason);
    }

    /// Puts a run of a module into its lane, unless a waiting run will see the change.
    pub(super) fn queue_run(&mut self, name: &ModuleName, reason: RunReason) {
        let unit = self.modules.get(name).filter(|unit| unit.is_enabled());
        if unit.is_none_or(|unit| unit.turn().is_to_come()) {
            return;
        }
        let lane = Lane::Module(name.clone());
        if self.lanes.behind_head(&lane).any(|entry| entry.task.is_run()) {
            return;
        }
        let head = self.lanes.head(&lane);
        if let Some(head) = head.filter(|head| head.task.is_run() && !head.is_active()) {
            if head.begun {
                self.lanes.resume(&lane);
            }
            return;
        }
        let task = Task::ModuleRun {
            module: name.clone(),
            reason,
        };
        self.lanes.push(&self.cx, lane, task);
    }

    /// Runs the modules that were held only because of a module that has now succeeded, and the modules that depend on these.
    pub(super) fn release_held(&mut self) {
        let is_lost = |unit: &Unit| self.config.losses().hold(unit.name().as_str());
        let names = self.modules.names_of(|unit| {
            let is_held = unit.turn().hold().is_some_and(|hold| !hold.is_for_trial);
            unit.is_enabled() && is_held && !is_lost(unit)
        });
        if names.is_empty() {
            return;
        }
        let blocked = graph::plan(&self.modules.nodes()).blocked;
        // A module may have the files of a directory, and wait for the files of its source.
        let can_run = |name: &ModuleName| !blocked.contains_key(name) && self.supply.lack(name).is_none();
        for name in names.into_iter().filter(can_run) {
            let Some(unit) = self.modules.get(&name) else { continue };
            let needs = &unit.found().depends_on;
            let is_met = |need: &ModuleName| self.modules.has_passed(need) && !self.survey().awaits_health(unit, need);
            if unit.found().broken.is_some() || needs.is_empty() || !needs.iter().all(is_met) {
                continue;
            }
            if let Some(unit) = self.modules.get_mut(&name) {
                unit.run_queued();
            }
            let task = Task::ModuleRun {
                module: name.clone(),
                reason: RunReason::DependencyReady,
            };
            self.loops.run_is_foreign(&name);
            self.lanes.let_run(&self.cx, task, &name);
        }
    }

    /// Runs the hooks after all modules again if the last lacking module has succeeded outside of a converge.
    pub(super) fn recovered(&mut self) {
        let mut units = self.modules.iter();
        let lacking = units.any(|unit| unit.is_enabled() && !unit.has_passed());
        if self.converge.awaits_recovery() && !lacking {
            self.converge.recover(&self.cx, &mut self.lanes);
        }
    }

    /// Asks for a new round of verdicts because an input changed. `touched` are modules whose own values changed, too.
    pub(super) fn reassess(&mut self, cause: Reason, touched: BTreeSet<ModuleName>) {
        self.verdicts.grow_stale(cause);
        if self.converge.assesses_by_itself() {
            self.verdicts.leave_to_converge();
            return;
        }
        self.verdicts.touch(touched);
        self.verdicts.begin(&self.modules);
    }

    /// Runs modules whose values changed without an effect on verdicts, unless a converge will run them anyway.
    pub(super) fn run_touched(&mut self, touched: BTreeSet<ModuleName>) {
        if self.converge.assesses_by_itself() {
            return;
        }
        if self.verdicts.is_known() && self.verdicts.wanted() == self.modules.taken_up() {
            for module in touched {
                self.rerun(&module, RunReason::ConfigChanged);
            }
            return;
        }
        self.verdicts.touch(touched);
        self.verdicts.begin_for_sections(&self.modules);
    }

    /// Starts a chore that is new or whose delay is over.
    pub(super) fn run_chore(&mut self, chore: Chore) {
        if !self.chores.is_due(chore, self.cx.now.tick) {
            return;
        }
        let (jobs, cx) = (&mut self.jobs, &mut self.cx);
        match chore {
            Chore::LoadState => jobs.begin(cx, (), Job::LoadState),
            Chore::SaveState => {
                let (last_good, made) = self.config.begin_save();
                jobs.begin(cx, (), |ticket| Job::SaveState {
                    last_good,
                    made,
                    ticket,
                })
            }
            Chore::SaveValuesFiles => {
                let files = self.directories.sources_mut().begin_save();
                jobs.begin(cx, (), |ticket| Job::SaveValuesFiles(files, ticket))
            }
            Chore::SaveGiven => {
                let given = self.stand_ins.begin_save();
                jobs.begin(cx, (), |ticket| Job::SaveGiven(given, ticket))
            }
            Chore::ReadDirectories => jobs.begin(cx, (), Job::ReadDirectories),
            Chore::ListReleases => jobs.begin(cx, (), Job::ListReleases),
            Chore::WatchReleases => {
                let expected = self.modules.names_of(Unit::is_released);
                jobs.begin(cx, (), |ticket| Job::WatchReleases { expected, ticket })
            }
            Chore::SettleSections => match self.probation.settles_by() {
                Some(ruling) => jobs.begin(cx, (), |ticket| Job::SettleSections(ruling, ticket)),
                None => return,
            },
            Chore::ConfigureGlobalHooks => {
                jobs.begin(cx, AskFor::Start, |ticket| Job::ConfigureHooks(Owner::Global, ticket))
            }
        };
        self.chores.begins(chore);
    }
}
