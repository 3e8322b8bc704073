//! The modules that an edit of the ConfigMap removes by leaving them out: no other source switches them on.
//!
//! A flag that is `false` is explicit and does not count as an omission.

use std::collections::{BTreeMap, BTreeSet};

use names::ModuleName;

use super::{Config, Sight};
use crate::operator::provenance::{Made, Provenance};

impl Config {
    /// How this ConfigMap was made, if a program made it.
    pub(super) fn made(&self, provenance: &Provenance, data: &BTreeMap<String, String>) -> Option<Made> {
        provenance.made(data, self.made.as_ref(), self.good.keys())
    }

    /// How the ConfigMap was made, if a program made it, and the keys that are applied.
    pub(in crate::operator) fn origin(&self) -> (Option<Made>, BTreeSet<String>) {
        (self.made.clone(), self.good.keys().cloned().collect())
    }

    /// The texts of the ConfigMap, together with the applied texts of keys that this ConfigMap has never held.
    pub(super) fn with_unsaid(&self, data: &BTreeMap<String, String>, made: Option<&Made>) -> BTreeMap<String, String> {
        let unsaid = made.into_iter().flat_map(|made| &made.unsaid);
        let kept = unsaid.filter_map(|key| Some((key.clone(), self.good.get(key)?.clone())));
        let mut all = data.clone();
        all.extend(kept);
        all
    }

    /// Notes a reading of the ConfigMap: its annotations, and how it was made.
    pub(super) fn comes_from(&mut self, provenance: Provenance, made: Option<Made>) {
        self.made = made;
        self.confirms = provenance.confirms;
        self.sight = Sight::Read;
    }

    /// The provenance of the ConfigMap after an edit of a person.
    pub(in crate::operator) fn provenance(&self) -> Provenance {
        Provenance {
            uid: self.made.as_ref().map(|made| made.uid.clone()).unwrap_or_default(),
            made_with: None,
            confirms: self.confirms.clone(),
        }
    }

    /// Notes that there is no ConfigMap. A confirmation in the next one counts as new.
    pub(super) fn is_gone(&mut self) {
        self.confirms = None;
        self.sight = Sight::Missing;
    }

    /// Whether a person has confirmed that this module is removed because the ConfigMap leaves it out. The confirmation
    /// holds until the module is removed or wanted again.
    pub(in crate::operator) fn is_removal_confirmed(&self, module: &ModuleName) -> bool {
        self.confirmed.contains(module)
    }

    /// Forgets the confirmation, because the module was removed or is wanted again. Another removal needs another confirmation.
    pub(in crate::operator) fn forget_confirmation(&mut self, module: &ModuleName) {
        self.confirmed.remove(module);
    }
}

impl Config {
    /// Notes a confirmation that is new in this reading. A confirmation that was there when this life began may have
    /// counted in the life before, so it is ignored. `omissible` are the modules that are removed if the ConfigMap does
    /// not name them.
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

/// The modules of this set whose flags the ConfigMap does not contain.
pub(in crate::operator) fn omitted(modules: &BTreeSet<ModuleName>, data: &BTreeMap<String, String>) -> Vec<ModuleName> {
    let names = modules.iter().filter(|name| !data.contains_key(&name.enabled_key()));
    names.cloned().collect()
}
