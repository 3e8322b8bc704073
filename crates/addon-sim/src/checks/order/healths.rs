//! D4: a module is not installed before the modules that it needs were healthy once.
//!
//! A health that nobody can tell, or that was lost later, holds up no module.

use std::collections::BTreeSet;

use addon_core::operator::event::Event;
use addon_core::operator::health::Seen;

use super::super::{SimStep, Violation, ensure};
use crate::setup::ModuleSpec;

/// The healths that this life was told of modules, each since the beginning of the module's release.
#[derive(Debug, Default)]
pub(in crate::checks) struct Healths {
    /// Modules that were healthy once, or that cannot be watched.
    well: BTreeSet<String>,
    /// Modules whose objects were on their way, or had failed.
    ill: BTreeSet<String>,
    /// Modules whose release was made or seen by a run.
    released: BTreeSet<String>,
    /// Modules whose first run with a release has come that far. Their later runs are no installation.
    begun: BTreeSet<String>,
}

impl Healths {
    /// Notes a report. A release without a module is nobody's need.
    pub(in crate::checks) fn event(&mut self, step: &SimStep<'_>) {
        let Event::HealthSeen(sight) = step.event else { return };
        if !step.before.modules.contains_key(&sight.release) {
            return;
        }
        let told = match sight.seen {
            Seen::Healthy | Seen::Unknown => &mut self.well,
            Seen::InProgress(_) | Seen::Failed(_) => &mut self.ill,
        };
        told.insert(sight.release.clone());
    }

    /// Notes that a run of the module left a release.
    pub(super) fn released(&mut self, step: &SimStep<'_>, module: &str) {
        if step.world.setup.restores {
            self.released.insert(module.to_owned());
        }
    }

    /// Checks the first release of a module that was not there at the start.
    pub(super) fn installs(&mut self, step: &SimStep<'_>, spec: &ModuleSpec) -> Result<(), Violation> {
        let is_there = step.life.listed.get(&spec.name) == Some(&true);
        if !self.begun.insert(spec.name.clone()) || is_there {
            return Ok(());
        }
        let is_ill = |need: &&String| self.ill.contains(*need) && !self.well.contains(*need);
        let ill = spec.needs.iter().find(is_ill);
        ensure(ill.is_none(), "D4", || {
            let name = &spec.name;
            format!("{name} is installed before {ill:?}, which it needs, was healthy")
        })
    }

    /// Whether other modules may wait for the module's health, or be held for it: it was not healthy at least once, or has
    /// a release whose health nobody has told.
    pub(super) fn is_awaited(&self, module: &str) -> bool {
        let is_untold = self.released.contains(module) && !self.well.contains(module);
        self.ill.contains(module) || is_untold
    }

    /// Forgets a removed module.
    pub(super) fn forget(&mut self, module: &str) {
        for modules in [&mut self.well, &mut self.ill, &mut self.released, &mut self.begun] {
            modules.remove(module);
        }
    }
}
