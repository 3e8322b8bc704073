//! The brake on removals that nobody asked for: their only sign is that no source names a module any more, or that its
//! directory is gone.
//!
//! A few go. Many at once are rather a source that was lost: they stay until it is back, or a person confirms them by
//! name. Must never stand in the way of a module that a source switches off.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::Operator;
use super::super::effect::{HeldFor, Notice};
use super::super::query::{HeldBy, HeldRemoval};
use crate::module::enabling::Source;
use crate::name::ModuleName;
use crate::time::Tick;

/// So many, and fewer, go in any case.
const FEW: usize = 2;
/// Of those that go within this time no more than a few, or less than a third of all, go unasked.
const WINDOW: Duration = Duration::from_mins(10);

/// More than a few removals, and at least a third of all.
pub(in super::super) fn too_many(removals: usize, of: usize) -> bool {
    removals > FEW && removals * 3 >= of
}

/// The removals that it let pass, those that it holds, and those that it need not hold. A module goes by the name of its release.
#[derive(Debug, Default)]
pub(in super::super) struct Brake {
    /// Removals that were taken up although nobody had confirmed them, and when.
    passed: BTreeMap<String, Tick>,
    /// Once held, for as long as nobody speaks: a source that comes back piece by piece must not let go what is still
    /// missing of it.
    held: BTreeMap<String, HeldFor>,
    /// Held ones that a person has confirmed since.
    confirmed: BTreeSet<String>,
}

impl Brake {
    pub(in super::super) fn holds(&self, name: &str) -> bool {
        self.held.contains_key(name)
    }

    /// A person wants it gone.
    pub(super) fn is_confirmed(&self, name: &str) -> bool {
        self.confirmed.contains(name)
    }

    /// The reason for which it holds a removal.
    pub(super) fn reason(&self, name: &str) -> Option<HeldFor> {
        self.held.get(name).copied()
    }

    /// A module of which a source speaks is neither held nor confirmed any more, and removals of long ago do not count.
    fn forget(&mut self, unspoken: &BTreeSet<String>, now: Tick) {
        self.held.retain(|name, _| unspoken.contains(name));
        self.confirmed.retain(|name| unspoken.contains(name));
        self.passed.retain(|_, at| now - *at < WINDOW);
    }

    /// A removal is taken up.
    pub(super) fn passes(&mut self, name: &str, now: Tick) {
        if !self.confirmed.contains(name) {
            self.passed.insert(name.to_owned(), now);
        }
    }

    /// Neither holds nor counts these, whether they were held or not.
    fn confirm_at_once(&mut self, names: BTreeSet<String>) {
        self.held.retain(|name, _| !names.contains(name));
        self.confirmed.extend(names);
    }

    /// Lets go those of these that are held at this moment, and returns them.
    fn confirm(&mut self, names: &BTreeSet<String>) -> Vec<String> {
        let held = names.iter().filter(|name| self.held.remove(*name).is_some());
        let confirmed: Vec<String> = held.cloned().collect();
        self.confirmed.extend(confirmed.iter().cloned());
        confirmed
    }
}

impl Operator {
    /// Holds what would go by silence or absence, if that is too much at once. Whoever takes up a removal asks first.
    pub(in super::super) fn brake(&mut self) {
        // Of how many they are part is not known before.
        if !self.removal.is_listed() {
            return;
        }
        let unspoken = self.unspoken();
        self.removal.brake.forget(&unspoken, self.cx.now.tick);
        let by_edit = unspoken.iter().filter(|name| self.is_confirmed_by_edit(name)).cloned();
        let by_edit: BTreeSet<String> = by_edit.collect();
        self.removal.brake.confirm_at_once(by_edit);
        let brake = &self.removal.brake;
        let unasked = unspoken.iter().filter(|name| !brake.confirmed.contains(*name));
        let is_new = |name: &&String| !brake.holds(name) && self.is_next(name);
        let new: Vec<String> = unasked.clone().filter(is_new).cloned().collect();
        if new.is_empty() {
            return;
        }
        let reason = if self.startup.inventory_complete {
            let certain = unasked.filter(|name| brake.holds(name) || self.is_certain(name));
            let goes: BTreeSet<&String> = certain.chain(brake.passed.keys()).collect();
            let there = self.all_there();
            let stays = there.iter().filter(|name| !brake.confirmed.contains(*name));
            let of: BTreeSet<&String> = stays.chain(brake.passed.keys()).collect();
            let (goes, of) = (goes.len(), of.len());
            if !too_many(goes, of) {
                return;
            }
            HeldFor::Confirmation { goes, of }
        } else {
            HeldFor::Directories
        };
        let held = new.iter().map(|name| (name.clone(), reason));
        self.removal.brake.held.extend(held);
        self.cx.tell(Notice::PurgeHeld { releases: new, reason });
    }

    /// These were absent when the directories were taken over, and are not by now.
    pub(super) fn hold_what_has_come(&mut self, releases: Vec<String>) {
        if releases.is_empty() {
            return;
        }
        let reason = HeldFor::Changed;
        let held = releases.iter().map(|release| (release.clone(), reason));
        self.removal.brake.held.extend(held);
        self.cx.tell(Notice::PurgeHeld { releases, reason });
    }

    /// The releases that are there and would not be wanted if silence were an answer, whether they may be removed yet or not.
    fn unspoken(&self) -> BTreeSet<String> {
        let modules: Vec<&str> = if self.assessment.is_known() {
            let silent = self.modules.values().filter(|unit| {
                let verdict = unit.verdict.as_ref().filter(|verdict| !verdict.enabled);
                verdict.is_some_and(|verdict| verdict.source == Source::Default) && self.is_there(unit)
            });
            silent.map(|unit| unit.found.name.as_str()).collect()
        } else {
            // Until all have been looked at again, what was known of them stands.
            let brake = &self.removal.brake;
            let known = brake.held.keys().chain(&brake.confirmed);
            known
                .filter(|name| self.modules.contains_key(name.as_str()))
                .map(String::as_str)
                .collect()
        };
        let modules = modules.into_iter().map(str::to_owned);
        modules.chain(self.orphans()).collect()
    }

    /// Releases of ours whose modules are gone, without the one that is nobody's business.
    pub(in super::super) fn orphans(&self) -> impl DoubleEndedIterator<Item = String> {
        let ignored = self.cx.policy.ignore_release.as_deref();
        let is_orphan = move |name: &&str| !self.modules.contains_key(*name) && Some(*name) != ignored;
        self.removal.ours().filter(is_orphan).map(str::to_owned)
    }

    /// The edit that left it out of the ConfigMap has confirmed that it is to go.
    fn is_confirmed_by_edit(&self, name: &str) -> bool {
        let unit = self.modules.get(name);
        unit.is_some_and(|unit| self.config.is_removal_confirmed(&unit.found.name))
    }

    /// It would be removed now: who has yet to speak has nothing to say about it.
    fn is_certain(&self, name: &str) -> bool {
        let unit = self.modules.get(name);
        unit.is_none_or(|unit| self.is_unwanted(&unit.found.name))
    }

    /// Its removal could be taken up now, and has not been.
    fn is_next(&self, name: &str) -> bool {
        let begun = match self.modules.get(name) {
            None => self.lanes.is_purged(name),
            Some(unit) => unit.life.is_deleting() || self.lanes.is_being_deleted(&unit.found.name),
        };
        !begun && self.is_certain(name)
    }

    /// All that is there of ours, by name.
    fn all_there(&self) -> BTreeSet<String> {
        let units = self.modules.values().filter(|unit| self.is_there(unit));
        let modules = units.map(|unit| unit.found.name.as_str());
        modules.chain(self.removal.ours()).map(str::to_owned).collect()
    }

    /// The removal of a module is taken up: it counts unless a source said that the module is not to run.
    pub(in super::super) fn count_removal(&mut self, name: &ModuleName) {
        let verdict = self.modules.get(name).and_then(|unit| unit.verdict.as_ref());
        if verdict.is_some_and(|verdict| verdict.source == Source::Default) {
            self.removal.brake.passes(name.as_str(), self.cx.now.tick);
        }
    }

    /// A person wants these gone. What is not held at this moment stays as it is, and so does what a trial holds besides.
    pub(in super::super) fn confirm_removals(&mut self, names: &BTreeSet<String>) {
        let releases = self.removal.brake.confirm(names);
        if releases.is_empty() || self.stopping.is_some() {
            return;
        }
        self.cx.tell(Notice::PurgeConfirmed { releases });
        if self.converge.first_done {
            self.purge();
        }
    }

    /// The removals that are held, and why.
    pub(in super::super) fn held_removals(&self) -> Vec<HeldRemoval> {
        let held = self.removal.brake.held.iter();
        let report = |(name, reason): (&String, &HeldFor)| HeldRemoval {
            release: name.clone(),
            sign: if self.modules.contains_key(name.as_str()) {
                "no source names its module any more"
            } else {
                "its module is gone from the directories"
            },
            reason: reason.to_string(),
            by: HeldBy::Brake,
        };
        held.map(report).chain(self.removals_held_by_trial()).collect()
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
