//! The brake on removals that nobody asked for: their only sign is that no source names a module any more, or that its
//! directory is gone.
//!
//! A few go. Many at once are rather a source that was lost: they stay until it is back, or a person confirms them by
//! name. Must never stand in the way of a module that a source switches off.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::operator::effect::HeldFor;
use crate::time::Tick;

/// So many, and fewer, go in any case.
const FEW: usize = 2;
/// Of those that go within this time no more than a few, or less than a third of all, go unasked.
const WINDOW: Duration = Duration::from_mins(10);

/// More than a few removals, and at least a third of all.
pub(in crate::operator) fn too_many(removals: usize, of: usize) -> bool {
    removals > FEW && removals * 3 >= of
}

/// The removals that it let pass, those that it holds, and those that it need not hold. A module goes by the name of its release.
#[derive(Debug, Default)]
pub(in crate::operator) struct Brake {
    /// Removals that were taken up although nobody had confirmed them, and when.
    passed: BTreeMap<String, Tick>,
    /// Once held, for as long as nobody speaks: a source that comes back piece by piece must not let go what is still
    /// missing of it.
    held: BTreeMap<String, HeldFor>,
    /// Held ones that a person has confirmed since.
    confirmed: BTreeSet<String>,
}

impl Brake {
    pub(in crate::operator) fn holds(&self, name: &str) -> bool {
        self.held.contains_key(name)
    }

    /// Holds these from now on.
    pub(in crate::operator) fn hold(&mut self, names: &[String], reason: HeldFor) {
        self.held.extend(names.iter().map(|name| (name.clone(), reason)));
    }

    /// All that it holds, with the reasons.
    pub(in crate::operator) fn held(&self) -> impl Iterator<Item = (&String, &HeldFor)> {
        self.held.iter()
    }

    /// Those that it holds or that a person has confirmed.
    pub(in crate::operator) fn known(&self) -> impl Iterator<Item = &String> {
        self.held.keys().chain(&self.confirmed)
    }

    /// How many go, and of how many, if of those that are there (`there`) also these go (`certain`).
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

    /// A person wants it gone.
    pub(in crate::operator) fn is_confirmed(&self, name: &str) -> bool {
        self.confirmed.contains(name)
    }

    /// The reason for which it holds a removal.
    pub(in crate::operator) fn reason(&self, name: &str) -> Option<HeldFor> {
        self.held.get(name).copied()
    }

    /// A module of which a source speaks is neither held nor confirmed any more, and removals of long ago do not count.
    pub(in crate::operator) fn forget(&mut self, unspoken: &BTreeSet<String>, now: Tick) {
        self.held.retain(|name, _| unspoken.contains(name));
        self.confirmed.retain(|name| unspoken.contains(name));
        self.passed.retain(|_, at| now - *at < WINDOW);
    }

    /// A removal is taken up.
    pub(in crate::operator) fn passes(&mut self, name: &str, now: Tick) {
        if !self.confirmed.contains(name) {
            self.passed.insert(name.to_owned(), now);
        }
    }

    /// Neither holds nor counts these, whether they were held or not.
    pub(in crate::operator) fn confirm_at_once(&mut self, names: BTreeSet<String>) {
        self.held.retain(|name, _| !names.contains(name));
        self.confirmed.extend(names);
    }

    /// Lets go those of these that are held at this moment, and returns them.
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
