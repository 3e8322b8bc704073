//! The ways of a new life: another reading of a module's directory takes the place of the one before, between two steps of
//! the module.
//!
//! Must never end a running step, and must never give up files that work for files that cannot be used.

use names::{ModuleName, Owner};
use serde_json::Value;

use crate::failure::{Class, Failure};
use crate::module::{Edition, Module, Origin};
use crate::operator::Operator;
use crate::operator::effect::{Effect, FilesVerdict, Notice};
use crate::operator::health::Health;
use crate::operator::modules::{Reading, Unit};
use crate::operator::task::{Lane, Reason, Task};
use crate::values::Rejected;

impl Operator {
    /// Takes another reading of a module's directory, or the first one of a module that is new.
    pub(super) fn module_read(&mut self, edition: Edition, origin: Origin, found: Module) {
        if !self.standing.is_stopping() {
            self.modules.read(Reading { edition, origin, found });
        }
    }

    /// Lets the modules whose directories were read again begin new lives, unless one of their steps is running. Must
    /// come before all other work of a round: a removal that was queued but has not begun would go on without the new
    /// flag. True if a module began a new life.
    pub(super) fn renew_modules(&mut self) -> bool {
        let mut any = false;
        if !self.startup.has_begun() {
            return any;
        }
        for name in self.modules.to_renew() {
            if self.has_step(&name) {
                continue;
            }
            if let Some(reading) = self.modules.take_reading(&name) {
                any = true;
                self.renew(reading);
            }
        }
        any
    }

    /// Takes other global values of files, and lets a converge follow if the effective values changed. The patches of hooks stay.
    pub(in crate::operator) fn renew_global_values(&mut self, values: Value) -> Result<(), Rejected> {
        if self.values.set_static(&Owner::Global, values)? {
            self.verdicts.grow_stale(Reason::FilesRead);
            self.request_converge(Reason::FilesRead, true);
        }
        Ok(())
    }

    /// Whether a job works with the module's files, or patches of its hooks are on their way into the values.
    fn has_step(&self, name: &ModuleName) -> bool {
        let owner = Owner::Module(name.clone());
        self.lanes.is_in_step(name)
            || self.lanes.is_running(&Lane::Global) && self.converge.is_installing()
            || self.commits.are_under_way(&owner)
            || self.warmth.is_busy(name)
    }

    fn renew(&mut self, reading: Reading) {
        let Reading {
            edition,
            origin,
            mut found,
        } = reading;
        let name = found.name.clone();
        let owner = Owner::Module(name.clone());
        if let Some(failure) = self.obstacle_to(origin, &found) {
            return self.refuse_files(name, failure);
        }
        if let Some(failure) = found.broken.take() {
            return self.find_fault(name, edition, origin, failure);
        }
        let (schemas, files) = (std::mem::take(&mut found.schemas), std::mem::take(&mut found.values));
        if let Err(rejected) = self.values.renew_files(&owner, schemas, files) {
            return self.find_fault(name, edition, origin, Failure::of(Class::Invalid, &rejected));
        }
        self.cx.effect(Effect::TakeUpFiles(name.clone(), edition));
        if origin == Origin::Directory {
            self.directories.rereading_mut().module_read(&name, found.enabled);
        }
        let is_healthy = self.healths.of(&name, self.cx.now.tick) != Health::Unhealthy;
        let did_well = is_healthy && self.modules.get(&name).is_none_or(Unit::is_well);
        self.end_hooks(&owner, "their module begins a new life");
        self.cool(&name);
        self.stop_monitors(&owner);
        let lacked = self.supply.lack(&name).is_some();
        self.supply.take_up(&name, edition, origin, did_well);
        let keeps_place = !lacked && self.modules.get(&name).is_some_and(|unit| keeps_place(unit, &found));
        match self.modules.get_mut(&name) {
            Some(unit) => unit.renew(found),
            None => self.modules.add(found),
        }
        self.spare_release(&name);
        self.lanes.begin_anew(&self.cx, &Lane::Module(name.clone()));
        self.cx.tell(Notice::ModuleRenewed { module: name.clone() });
        self.config.files_changed(&name);
        self.take_readings();
        if keeps_place {
            self.reassess(Reason::FilesRead, [name].into());
        } else {
            self.verdicts.grow_stale(Reason::FilesRead);
            self.request_converge(Reason::FilesRead, true);
        }
    }

    /// Drops the purge of a release that has a module by now.
    fn spare_release(&mut self, name: &ModuleName) {
        let of_release = |task: &Task| match task {
            Task::Purge { release } => release == name.as_str(),
            Task::Hook(_)
            | Task::EnableKubernetes(_)
            | Task::EnableSchedules(_)
            | Task::AwaitFirstRuns
            | Task::Converge(_)
            | Task::ModuleRun { .. }
            | Task::ModuleDelete { .. } => false,
        };
        self.lanes
            .drop_tasks(&mut self.cx, "their release has a module again", of_release);
    }

    /// The reason for which a reading cannot be used, regardless of the contents of the files.
    fn obstacle_to(&self, origin: Origin, found: &Module) -> Option<Failure> {
        if let Some(failure) = self.supply.obstacle(&found.name, origin) {
            return Some(failure);
        }
        let lost = self.directories.sources().lost_for(&found.name);
        lost.map(|file| {
            let report = format!(
                "{file} is missing or empty, and it decided about module '{}'",
                found.name
            );
            Failure::new(Class::Invalid, report).hint("put the file back and start the operator again")
        })
    }

    /// Refuses files with a mistake. Files that came from a source are given up.
    fn find_fault(&mut self, module: ModuleName, edition: Edition, origin: Origin, failure: Failure) {
        if matches!(origin, Origin::Source { .. }) {
            let verdict = FilesVerdict::Bad(failure.report.clone());
            self.judge_files(&module, Some((edition, verdict)));
        }
        self.refuse_files(module, failure);
    }

    fn refuse_files(&mut self, module: ModuleName, failure: Failure) {
        self.cx.tell(Notice::FilesRefused { module, failure });
    }
}

/// Whether the module keeps its place in the plan of the modules with these files, so that no converge is needed.
fn keeps_place(unit: &Unit, found: &Module) -> bool {
    let before = unit.found();
    before.broken.is_none() && (before.order, &before.depends_on) == (found.order, &found.depends_on)
}
