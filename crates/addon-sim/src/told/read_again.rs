//! The directories of single modules that were read again, and the files that their modules have.

use addon_core::module::Edition;

use super::Told;
use crate::setup::ModuleSpec;

impl Told {
    /// Notes another reading of a module's directory. Returns its number.
    pub fn module_read(&mut self, spec: ModuleSpec) -> Edition {
        let number = self.read_again.keys().last().map_or(1, |last| last + 1);
        self.read_again.insert(number, spec);
        Edition(number)
    }

    /// Notes that a module begins a new life with the files of this reading.
    pub fn took_up(&mut self, Edition(number): Edition) {
        if let (Some(spec), Some((modules, _))) = (self.read_again.get(&number), &mut self.modules) {
            modules.insert(spec.name.clone(), spec.clone());
        }
    }
}
