//! The modules: the files of each as found on disk, its state, and the order of its hooks.
//!
//! Knows no queue, no values and no verdict.

mod run;
mod turn;
mod unit;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::run::{Release, Run};
pub(super) use self::turn::{Hold, Turn};
pub(super) use self::unit::Unit;
use names::{HookId, ModuleName, Owner};

use crate::module::graph::Node;
use crate::module::{Edition, Module, Origin};
use crate::values::Globals;

/// A later reading of a module's files.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) edition: Edition,
    pub(super) origin: Origin,
    pub(super) found: Module,
}

/// All modules that were found on disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Modules {
    /// The units are boxed, because the nodes of a map that is filled in order are half empty.
    units: BTreeMap<ModuleName, Box<Unit>>,
    /// Later readings of directories. Their modules have not begun a new life yet.
    read: BTreeMap<ModuleName, Reading>,
}

impl Modules {
    /// Adds a module that was found on disk.
    pub(super) fn add(&mut self, found: Module) {
        self.units.insert(found.name.clone(), Box::new(Unit::new(found)));
    }

    /// Keeps a later reading of a module's directory in the place of an earlier one.
    pub(super) fn read(&mut self, reading: Reading) {
        let known = self.read.get(&reading.found.name);
        if known.is_none_or(|known| known.edition < reading.edition) {
            self.read.insert(reading.found.name.clone(), reading);
        }
    }

    /// Drops a module that never had files.
    pub(super) fn remove(&mut self, name: &ModuleName) {
        self.units.remove(name);
    }

    /// The modules whose directories were read again and that have not begun a new life yet.
    pub(super) fn to_renew(&self) -> Vec<ModuleName> {
        self.read.keys().cloned().collect()
    }

    /// The later reading of a module's directory, if there is one.
    pub(super) fn take_reading(&mut self, name: &ModuleName) -> Option<Reading> {
        self.read.remove(name)
    }

    pub(super) fn get(&self, name: &ModuleName) -> Option<&Unit> {
        self.units.get(name).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, name: &ModuleName) -> Option<&mut Unit> {
        self.units.get_mut(name).map(Box::as_mut)
    }

    /// The module with the name of this release.
    pub(super) fn of_release(&self, release: &str) -> Option<&Unit> {
        self.units.get(release).map(Box::as_ref)
    }

    pub(super) fn contains(&self, name: &ModuleName) -> bool {
        self.units.contains_key(name)
    }

    /// All modules, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Unit> {
        self.units.values().map(Box::as_ref)
    }

    /// All modules, by name, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Unit> {
        self.units.values_mut().map(Box::as_mut)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &ModuleName> {
        self.units.keys()
    }

    /// All module names by order number and name.
    pub(super) fn in_order(&self) -> Vec<ModuleName> {
        let mut names: Vec<_> = self.iter().map(|unit| (unit.found().order, unit.name())).collect();
        names.sort();
        names.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// The modules as the dependency graph takes them.
    pub(super) fn nodes(&self) -> BTreeMap<ModuleName, Node> {
        let node = |unit: &Unit| Node {
            order: unit.found().order,
            needs: unit.found().depends_on.clone(),
        };
        self.units
            .iter()
            .map(|(name, unit)| (name.clone(), node(unit)))
            .collect()
    }

    /// The modules that the last converge took up as enabled.
    pub(super) fn taken_up(&self) -> BTreeSet<ModuleName> {
        self.names_of(Unit::is_enabled).into_iter().collect()
    }

    /// The modules that take part in the converge and have failed, hang or are held.
    pub(super) fn lacking(&self) -> Vec<ModuleName> {
        self.names_of(|unit| unit.is_enabled() && unit.turn().is_lacking())
    }

    /// The names of the modules for which `is_such` holds.
    pub(super) fn names_of(&self, is_such: impl Fn(&Unit) -> bool) -> Vec<ModuleName> {
        let units = self.iter().filter(|unit| is_such(unit));
        units.map(|unit| unit.name().clone()).collect()
    }

    /// Whether the last converge took the module up and nothing has switched it off since.
    pub(super) fn is_enabled(&self, name: &ModuleName) -> bool {
        self.get(name).is_some_and(Unit::is_enabled)
    }

    /// Whether the module takes part in the running converge and its turn has not come.
    pub(super) fn is_waiting(&self, name: &ModuleName) -> bool {
        self.get(name).is_some_and(|unit| *unit.turn() == Turn::Waiting)
    }

    /// Whether the module is enabled and its run has succeeded.
    pub(super) fn has_passed(&self, name: &ModuleName) -> bool {
        self.get(name).is_some_and(Unit::has_passed)
    }

    /// Whether no other module has to wait for this one any longer; true for an unknown module.
    pub(super) fn is_over(&self, name: &ModuleName, strict: bool) -> bool {
        self.get(name).is_none_or(|unit| unit.turn().is_over(strict))
    }

    /// Whether changes of objects may reach this hook. They do not if its module is switched off or has not started.
    pub(super) fn take_changes(&self, hook: &HookId) -> bool {
        match &hook.owner {
            Owner::Global => true,
            Owner::Module(name) => self
                .get(name)
                .is_some_and(|unit| unit.is_enabled() && unit.life().takes_changes()),
        }
    }

    /// Whether the API server and schedules may reach this hook. They do not before the start-up of its module is over.
    pub(super) fn take_events(&self, hook: &HookId) -> bool {
        match &hook.owner {
            Owner::Global => true,
            Owner::Module(name) => self
                .get(name)
                .is_some_and(|unit| unit.is_enabled() && unit.life().takes_events()),
        }
    }

    /// The global values that the module's run uses, if a run is under way.
    pub(super) fn globals_of_run(&self, name: &ModuleName) -> Option<Globals> {
        self.get(name)?.globals_of_run().cloned()
    }

    /// Notes that the module's step succeeded, so that the next one may come.
    pub(super) fn step_succeeded(&mut self, name: &ModuleName) {
        if let Some(unit) = self.get_mut(name) {
            unit.step_succeeded();
        }
    }
}
