//! The files of single modules that were read again, and the files that modules have.

use addon_core::module::{Edition, Origin};

use super::Told;
use crate::setup::ModuleSpec;

/// A later reading of a module's files.
#[derive(Debug, Clone)]
pub struct Reread {
    /// The files.
    pub spec: ModuleSpec,
    /// The place from which they come.
    pub origin: Origin,
}

impl Told {
    /// Notes another reading of a module's files. Returns its number.
    pub fn module_read(&mut self, spec: ModuleSpec, origin: Origin) -> Edition {
        let number = self.read_again.keys().last().map_or(1, |last| last + 1);
        self.read_again.insert(number, Reread { spec, origin });
        Edition(number)
    }

    /// The reading of this number.
    pub fn reading(&self, Edition(number): Edition) -> Option<&Reread> {
        self.read_again.get(&number)
    }

    /// Notes that a module begins a new life with the files of this reading.
    pub fn took_up(&mut self, edition: Edition) {
        let Some(Reread { spec, origin }) = self.reading(edition).cloned() else {
            return;
        };
        if let Some((modules, _)) = &mut self.modules {
            self.supply.took_up(&spec, origin);
            modules.insert(spec.name.clone(), spec);
        }
    }
}
