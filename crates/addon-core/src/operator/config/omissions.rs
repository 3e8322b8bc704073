//! The modules that an edit of the ConfigMap removes by omission: nothing else switches them on.
//!
//! An explicit `false` is an answer, and concerns nobody here.

use std::collections::{BTreeMap, BTreeSet};

use super::Config;
use crate::module::enabling::Opinions;
use crate::name::ModuleName;
use crate::operator::Operator;
use crate::operator::provenance::{Made, Provenance};

impl Config {
    /// The knowledge of a ConfigMap if a program made it.
    pub(super) fn made(&self, provenance: &Provenance, data: &BTreeMap<String, String>) -> Option<Made> {
        provenance.made(data, self.made.as_ref(), self.good.keys())
    }

    /// The knowledge of the ConfigMap, and the keys that are in force.
    pub(in crate::operator) fn origin(&self) -> (Option<Made>, BTreeSet<String>) {
        (self.made.clone(), self.good.keys().cloned().collect())
    }

    /// The texts of the ConfigMap, and those that are in force beside it because it has never held their keys.
    pub(super) fn with_unsaid(&self, data: &BTreeMap<String, String>, made: Option<&Made>) -> BTreeMap<String, String> {
        let unsaid = made.into_iter().flat_map(|made| &made.unsaid);
        let kept = unsaid.filter_map(|key| Some((key.clone(), self.good.get(key)?.clone())));
        let mut all = data.clone();
        all.extend(kept);
        all
    }

    /// The ConfigMap was read.
    pub(super) fn comes_from(&mut self, provenance: Provenance, made: Option<Made>) {
        self.created = false;
        self.made = made;
        self.confirms = provenance.confirms;
        self.seen = true;
    }

    /// There is none: whatever the next one confirms is news.
    pub(super) fn is_gone(&mut self) {
        self.confirms = None;
        self.seen = true;
    }

    /// Whether a person has confirmed that this module is removed because the ConfigMap leaves it out. It holds until the
    /// module is removed or wanted again.
    pub(in crate::operator) fn is_removal_confirmed(&self, module: &ModuleName) -> bool {
        self.confirmed.contains(module)
    }

    /// The module is gone, or wanted again: another removal is another matter.
    pub(in crate::operator) fn forget_confirmation(&mut self, module: &ModuleName) {
        self.confirmed.remove(module);
    }
}

impl Operator {
    /// The modules with a release that would be removed if the ConfigMap did not name them. One that is about to be removed
    /// anyhow is none of them.
    pub(in crate::operator) fn omissible(&self) -> BTreeSet<ModuleName> {
        let units = self.modules.values().filter(|unit| {
            let name = &unit.found.name;
            let others = Opinions {
                config: None,
                ..self.opinions(name)
            };
            let goes = self.is_removable(name) || self.config.is_removal_confirmed(name);
            let stands = unit.found.broken.is_none() && self.is_there(unit) && !goes;
            stands && !others.verdict().enabled
        });
        units.map(|unit| unit.found.name.clone()).collect()
    }

    /// The new reading may hold a confirmation that was not there before. One that stood there when this life began may have
    /// counted in the one before.
    pub(super) fn note_confirmation(&mut self, provenance: &Provenance, data: &BTreeMap<String, String>) {
        let omitted = omitted(&self.omissible(), data);
        let before = self.config.confirms.as_deref();
        let number = provenance
            .confirmation_since(before)
            .filter(|number| self.config.seen && *number == omitted.len());
        if number.is_some() {
            self.config.confirmed.extend(omitted);
        }
    }
}

/// Those of these modules that the ConfigMap does not say whether to run.
pub(in crate::operator) fn omitted(modules: &BTreeSet<ModuleName>, data: &BTreeMap<String, String>) -> Vec<ModuleName> {
    let names = modules.iter().filter(|name| !data.contains_key(&name.enabled_key()));
    names.cloned().collect()
}
