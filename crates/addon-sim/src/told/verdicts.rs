//! The verdicts that follow from the events of a life: whether a module is to run, and whether that is certain.

use super::Told;
use crate::flat;
use crate::setup::{Deed, ModuleSpec, Setup, key_of};

impl Told {
    /// The verdict of a module's sources before its script is asked.
    pub fn opinion(&self, module: &str) -> Option<bool> {
        if self.is_withdrawn(module) {
            return Some(false);
        }
        let flag = self.config.get(&format!("{}Enabled", key_of(module)));
        flag.and_then(|text| flat::read_flag(text))
            .or_else(|| self.flags.get(module).copied().flatten())
            .or_else(|| self.knows(module).and_then(|spec| spec.enabled))
            .or_else(|| self.names(module).then_some(true))
    }

    /// Whether a source switched this module off, or all sources that could name it were asked and do not.
    pub fn says_no(&self, module: &str, setup: &Setup) -> bool {
        if self.lacks_files(module) || self.are_sources_unknown() && self.knows(module).is_none() {
            return false;
        }
        match self.opinion(module) {
            Some(false) if self.is_withdrawn(module) => true,
            Some(false) => self.is_heard(module) || self.hooks_spoke(module, setup),
            Some(true) => {
                let asked = self.knows(module).is_some_and(|spec| spec.script.is_some());
                asked && self.scripts.get(module).is_some_and(|(_, answer)| !answer) && self.heard_before(module)
            }
            None => {
                let complete = self.modules.as_ref().is_some_and(|(_, complete)| *complete);
                let flag_broken = self.broken.contains(&format!("{}Enabled", key_of(module)));
                let heard = complete && self.common_file_spoke();
                heard && self.silence_speaks && !flag_broken && self.hooks_spoke(module, setup)
            }
        }
    }

    /// Whether the scripts of all modules before this one have answered. Only then is the answer of its own script final.
    fn heard_before(&self, module: &str) -> bool {
        let modules = self.modules.iter().flat_map(|(modules, _)| modules.values());
        let place = |spec: &ModuleSpec| (spec.order, spec.name.clone());
        let own = self.knows(module).map(place);
        let mut before =
            modules.filter(|spec| spec.script.is_some() && own.as_ref().is_some_and(|own| place(spec) < *own));
        // The script of a directory is not asked for files that have yet to come from a registry.
        before.all(|spec| {
            let answered = self.scripts.contains_key(&spec.name) || self.lacks_files(&spec.name);
            answered || self.opinion(&spec.name) != Some(true)
        })
    }

    /// Whether a source above the files has decided about the module.
    fn is_heard(&self, module: &str) -> bool {
        let flag = self.config.get(&format!("{}Enabled", key_of(module)));
        flag.is_some_and(|text| flat::read_flag(text).is_some()) || self.flags.get(module).is_some_and(Option::is_some)
    }

    /// Whether all global hooks that switch this module have run.
    fn hooks_spoke(&self, module: &str, setup: &Setup) -> bool {
        let switches = |deed: &Deed| match deed {
            Deed::Flag { module: switched, .. } | Deed::FlagFrom { module: switched, .. } => switched == module,
            Deed::Set { .. } | Deed::SetConfig { .. } | Deed::Tick { .. } => false,
        };
        let some = setup
            .global_hooks
            .iter()
            .any(|hook| hook.runs() && hook.does.iter().any(switches));
        !some || self.flags.contains_key(module)
    }
}
