//! The modules that an edit of the ConfigMap removes by omission: nothing else switches them on.
//!
//! An explicit `false` is an answer, and concerns nobody here.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, Sight};
use crate::name::ModuleName;
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
        self.made = made;
        self.confirms = provenance.confirms;
        self.sight = Sight::Read;
    }

    /// There is none: whatever the next one confirms is news.
    pub(super) fn is_gone(&mut self) {
        self.confirms = None;
        self.sight = Sight::Missing;
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

impl Config {
    /// The new reading may hold a confirmation that was not there before. One that stood there when this life began may have
    /// counted in the one before. `omissible` are the modules that go if it does not name them.
    pub(super) fn note_confirmation(
        &mut self,
        omissible: &BTreeSet<ModuleName>,
        provenance: &Provenance,
        data: &BTreeMap<String, String>,
    ) {
        let omitted = omitted(omissible, data);
        let before = self.confirms.as_deref();
        let number = provenance
            .confirmation_since(before)
            .filter(|number| self.sight.is_known() && *number == omitted.len());
        if number.is_some() {
            self.confirmed.extend(omitted);
        }
    }
}

/// Those of these modules that the ConfigMap does not say whether to run.
pub(in crate::operator) fn omitted(modules: &BTreeSet<ModuleName>, data: &BTreeMap<String, String>) -> Vec<ModuleName> {
    let names = modules.iter().filter(|name| !data.contains_key(&name.enabled_key()));
    names.cloned().collect()
}
