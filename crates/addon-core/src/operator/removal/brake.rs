//! The brake on removals that no source asked for: their only reason is that no source names a module any more, or that
//! its directory is gone.
//!
//! A few removals pass. Many removals at once rather mean that a source was lost: they are held until the source is back,
//! or a person confirms them by name. Must never hold the removal of a module that a source switches off.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clock::Tick;

use crate::operator::effect::HeldFor;

/// The number of removals up to which all pass.
const FEW: usize = 2;
/// The time over which removals are counted. Within it at most `FEW` removals, or less than a third of all releases, pass
/// without a confirmation.
const WINDOW: Duration = Duration::from_mins(10);

/// Whether these are more than `FEW` removals and at least a third of all releases.
pub(in crate::operator) fn too_many(removals: usize, of: usize) -> bool {
    removals > FEW && removals * 3 >= of
}

/// The removals that passed, that are held, and that were confirmed. A module is known here by the name of its release.
#[derive(Debug, Clone, Default)]
pub(in crate::operator) struct Brake {
    /// The times at which removals were begun that no person had confirmed.
    passed: BTreeMap<String, Tick>,
    /// The held removals. They stay held until a source names their modules again: if a source comes back piece by piece,
    /// the missing pieces must not be removed.
    held: BTreeMap<String, HeldFor>,
    /// Held removals that a person has confirmed.
    confirmed: BTreeSet<String>,
}

impl Brake {
    pub(in crate::operator) fn holds(&self, name: &str) -> bool {
        self.held.contains_key(name)
    }

    /// Holds the removals of the named releases from now on.
    pub(in crate::operator) fn hold(&mut self, names: &[String], reason: HeldFor) {
        self.held.extend(names.iter().map(|name| (name.clone(), reason)));
    }

    /// All held removals, each with the reason for which it is held.
    pub(in crate::operator) fn held(&self) -> impl Iterator<Item = (&String, &HeldFor)> {
        self.held.iter()
    }

    /// The removals that are held or were confirmed.
    pub(in crate::operator) fn known(&self) -> impl Iterator<Item = &String> {
        self.held.keys().chain(&self.confirmed)
    }

    /// The number of removals, and the number of releases to compare it with. `there` are all existing releases;
    /// `certain` are the removals to come, in addition to those that passed in the time window.
    pub(in crate::operator) fn share<'a>(
        &'a self,
        certain: impl Iterator<Item = &'a String>,
        there: &'a BTreeSet<String>,
    ) -> (usize, usize) {
        let goes: BTreeSet<&String> = certain.chain(self.passed.keys()).collect();
        let stays = there.iter().filter(|name| !self.confirmed.contains(*name));
        let of: BTreeSet<&String> = stays.chain(self.passed.keys()).collect();
        (goes.len(), of.len())
    }

    /// Whether a person has confirmed the removal of the named release.
    pub(in crate::operator) fn is_confirmed(&self, name: &str) -> bool {
        self.confirmed.contains(name)
    }

    /// The reason for which the removal of the named release is held.
    pub(in crate::operator) fn reason(&self, name: &str) -> Option<HeldFor> {
        self.held.get(name).copied()
    }

    /// Forgets the modules that a source names again, and the removals that are older than the time window.
    pub(in crate::operator) fn forget(&mut self, unspoken: &BTreeSet<String>, now: Tick) {
        self.held.retain(|name, _| unspoken.contains(name));
        self.confirmed.retain(|name| unspoken.contains(name));
        self.passed.retain(|_, at| now - *at < WINDOW);
    }

    /// Notes that a removal begins.
    pub(in crate::operator) fn passes(&mut self, name: &str, now: Tick) {
        if !self.confirmed.contains(name) {
            self.passed.insert(name.to_owned(), now);
        }
    }

    /// Holds the removal of the named release no more, because a source names its module again.
    pub(in crate::operator) fn let_be(&mut self, name: &str) {
        self.held.remove(name);
    }

    /// Confirms these removals, whether they are held or not.
    pub(in crate::operator) fn confirm_at_once(&mut self, names: BTreeSet<String>) {
        self.held.retain(|name, _| !names.contains(name));
        self.confirmed.extend(names);
    }

    /// Confirms these removals as far as they are held now, and returns the confirmed ones.
    pub(in crate::operator) fn confirm(&mut self, names: &BTreeSet<String>) -> Vec<String> {
        let held = names.iter().filter(|name| self.held.remove(*name).is_some());
        let confirmed: Vec<String> = held.cloned().collect();
        self.confirmed.extend(confirmed.iter().cloned());
        confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::too_many;

    #[test]
    fn more_than_two_and_at_least_a_third() {
        for (removals, of, expected) in [
            (2, 2, false),
            (2, 6, false),
            (3, 3, true),
            (3, 9, true),
            (3, 10, false),
            (25, 50, true),
        ] {
            assert_eq!(too_many(removals, of), expected, "{removals} of {of}");
        }
    }
}
