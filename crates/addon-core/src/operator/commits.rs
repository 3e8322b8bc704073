//! The patches of hooks on their way into force: those that are held against schemas, those whose section is being saved, and those
//! that wait for their turn.
//!
//! With a config patch the section is saved first; other commits to that section wait meanwhile, and so they do while patches are
//! held against schemas that take their time. Knows no ConfigMap and no values: both are asked on the way of a commit.

use std::collections::{BTreeMap, VecDeque};

use super::event::Usage;
use super::task::Lane;
use crate::failure::Failure;
use crate::hook::output::HookOutput;
use crate::name::Owner;
use crate::values::Proposal;
use crate::values::vetted::Vetted;

/// Sections that are being saved, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct Commits {
    saving: BTreeMap<Owner, Saving>,
    /// Hooks whose patches are being held against schemas.
    vetting: BTreeMap<Owner, Ran>,
    waiting: BTreeMap<Owner, VecDeque<Ran>>,
}

/// A hook that ran at the head of a lane, with what it asks for.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) lane: Lane,
    pub(super) output: HookOutput,
    pub(super) usage: Usage,
    /// Why its values patch, which is left out of the output, cannot be put into force.
    pub(super) refused: Option<Failure>,
    /// What is known of what it asks for.
    pub(super) vetted: Vetted,
}

impl Ran {
    fn saves(&self) -> bool {
        !self.output.config.is_empty()
    }
}

/// A section that is being saved.
#[derive(Debug)]
pub(super) struct Saving {
    pub(super) ran: Ran,
    pub(super) proposal: Proposal,
    pub(super) text: String,
    /// The version of the ConfigMap that it was made of.
    pub(super) known: u64,
    /// The section was read while it was being saved.
    pub(super) held: bool,
    /// The ConfigMap was seen while it was being saved.
    pub(super) seen: bool,
}

impl Commits {
    /// While a section is being saved, what is read of it is held back: whether it is older or newer than the write is
    /// known only once that has ended. True if it is held.
    pub(super) fn hold(&mut self, owner: &Owner) -> bool {
        let saving = self.saving.get_mut(owner);
        saving.map(|saving| saving.held = true).is_some()
    }

    /// The ConfigMap was seen: whether a save that finds none looked before that or after it, nobody can tell.
    pub(super) fn note_sight(&mut self) {
        for saving in self.saving.values_mut() {
            saving.seen = true;
        }
    }

    /// This text is on its way into this key.
    pub(super) fn is_saving(&self, key: &str, text: &str) -> bool {
        let mut saving = self.saving.iter();
        saving.any(|(owner, saving)| owner.values_key() == key && saving.text == text)
    }

    /// Sections are on their way into the ConfigMap.
    pub(super) fn are_saving(&self) -> bool {
        !self.saving.is_empty()
    }

    /// What is on its way into the ConfigMap, by key.
    pub(super) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        let saving = self.saving.iter();
        saving.map(|(owner, saving)| (owner.values_key(), saving.text.clone()))
    }

    /// What a lane waits for whose hook has run, in words.
    pub(super) fn waits(&self, lane: &Lane) -> Option<String> {
        let vetted = |owner: &Owner| format!("patched values of {owner} to be held against their schema");
        if let Some((owner, _)) = self.vetting.iter().find(|(_, ran)| ran.lane == *lane) {
            return Some(vetted(owner));
        }
        let waits = |queue: &VecDeque<Ran>| queue.iter().any(|ran| ran.lane == *lane);
        let (owner, _) = self.waiting.iter().find(|(_, queue)| waits(queue))?;
        Some(if self.saving.contains_key(owner) {
            format!("the section of {owner} to be saved")
        } else if self.vetting.contains_key(owner) {
            vetted(owner)
        } else {
            "the ConfigMap to be held against schemas".to_owned()
        })
    }
}

/// Hooks wait, and have their turn.
impl Commits {
    /// A hook ran, and waits for its turn.
    pub(super) fn wait(&mut self, owner: &Owner, ran: Ran) {
        self.waiting.entry(owner.clone()).or_default().push_back(ran);
    }

    /// What a hook asks for is worked out anew, before that of any other.
    pub(super) fn wait_first(&mut self, owner: &Owner, ran: Ran) {
        self.waiting.entry(owner.clone()).or_default().push_front(ran);
    }

    /// The owners for whose values hooks wait.
    pub(super) fn awaited(&self) -> Vec<Owner> {
        self.waiting.keys().cloned().collect()
    }

    /// The next one that may have its way. A section is saved as a whole, so it must be made of what was read last: nobody saves
    /// one while readings wait.
    pub(super) fn next(&mut self, owner: &Owner, readings_wait: bool) -> Option<Ran> {
        if self.saving.contains_key(owner) || self.vetting.contains_key(owner) {
            return None;
        }
        let waiting = self.waiting.get_mut(owner)?;
        if waiting.front().is_some_and(Ran::saves) && readings_wait {
            return None;
        }
        let ran = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(owner);
        }
        ran
    }

    /// A job holds these patches against their schemas.
    pub(super) fn vetting_begins(&mut self, owner: &Owner, ran: Ran) {
        self.vetting.insert(owner.clone(), ran);
    }

    /// That job has ended.
    pub(super) fn vetting_ends(&mut self, owner: &Owner) -> Option<Ran> {
        self.vetting.remove(owner)
    }

    /// A job writes this section.
    pub(super) fn save_begins(&mut self, owner: &Owner, saving: Saving) {
        self.saving.insert(owner.clone(), saving);
    }

    /// That job has ended.
    pub(super) fn save_ends(&mut self, owner: &Owner) -> Option<Saving> {
        self.saving.remove(owner)
    }
}
