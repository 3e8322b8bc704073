//! The patches of hooks on their way into the values: patches that are being checked against schemas, patches whose
//! section is being saved, and patches that wait for their turn.
//!
//! A config patch makes the operator save the section first. Other commits to that section wait until the save has
//! ended. Commits also wait while a job checks patches to the same section against schemas. Knows no ConfigMap and no
//! values: `ways/commits.rs` asks both.

use std::collections::{BTreeMap, VecDeque};

use names::Owner;

use super::event::Usage;
use super::task::Lane;
use crate::failure::Failure;
use crate::hook::output::HookOutput;
use crate::values::Proposal;
use crate::values::vetted::Vetted;

/// The sections that are being saved, and the hooks that wait for their owner's values.
#[derive(Debug, Clone, Default)]
pub(super) struct Commits {
    saving: BTreeMap<Owner, Saving>,
    /// Hooks whose patches a job is checking against schemas.
    vetting: BTreeMap<Owner, Ran>,
    waiting: BTreeMap<Owner, VecDeque<Ran>>,
}

/// A hook that ran at the head of a lane, with its output.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    pub(super) lane: Lane,
    pub(super) output: HookOutput,
    pub(super) usage: Usage,
    /// The reason for which the hook's values patch was refused; that patch is taken out of the output.
    pub(super) refused: Option<Failure>,
    /// The results of schema checks that are known for these patches.
    pub(super) vetted: Vetted,
}

impl Ran {
    fn saves(&self) -> bool {
        !self.output.config.is_empty()
    }
}

/// A section that is being saved.
#[derive(Debug, Clone)]
pub(super) struct Saving {
    pub(super) ran: Ran,
    pub(super) proposal: Proposal,
    pub(super) text: String,
    /// The version of the ConfigMap from which the new text of the section was made.
    pub(super) known: u64,
    /// Whether a reading of the section was held back while the section was being saved.
    pub(super) held: bool,
    /// Whether a reading of the ConfigMap came while the section was being saved.
    pub(super) seen: bool,
}

impl Commits {
    /// Holds back a reading of a section that is being saved. Only the end of the save tells whether the reading is older
    /// or newer. True if the reading is held back.
    pub(super) fn hold(&mut self, owner: &Owner) -> bool {
        let saving = self.saving.get_mut(owner);
        saving.map(|saving| saving.held = true).is_some()
    }

    /// Notes a reading of the ConfigMap. If a running save finds no ConfigMap, it is then unknown whether the save looked
    /// before or after this reading.
    pub(super) fn note_sight(&mut self) {
        for saving in self.saving.values_mut() {
            saving.seen = true;
        }
    }

    /// Whether a job is saving exactly `text` under the ConfigMap key `key`.
    pub(super) fn is_saving(&self, key: &str, text: &str) -> bool {
        let mut saving = self.saving.iter();
        saving.any(|(owner, saving)| owner.values_key() == key && saving.text == text)
    }

    /// Whether patches of the owner's hooks are on their way into the values.
    pub(super) fn are_under_way(&self, owner: &Owner) -> bool {
        self.saving.contains_key(owner) || self.vetting.contains_key(owner) || self.waiting.contains_key(owner)
    }

    /// Whether sections are being saved.
    pub(super) fn are_saving(&self) -> bool {
        !self.saving.is_empty()
    }

    /// The texts that are being saved, by key.
    pub(super) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        let saving = self.saving.iter();
        saving.map(|(owner, saving)| (owner.values_key(), saving.text.clone()))
    }

    /// The reason for which a lane still waits after its hook has run, as a text for people.
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

/// The queues of hooks that have run and whose patches are not committed yet.
impl Commits {
    /// Queues the patches of a hook that ran.
    pub(super) fn wait(&mut self, owner: &Owner, ran: Ran) {
        self.waiting.entry(owner.clone()).or_default().push_back(ran);
    }

    /// Queues the patches of a hook before all other patches, so that they are worked out again.
    pub(super) fn wait_first(&mut self, owner: &Owner, ran: Ran) {
        self.waiting.entry(owner.clone()).or_default().push_front(ran);
    }

    /// The owners whose hooks wait to commit their patches.
    pub(super) fn awaited(&self) -> Vec<Owner> {
        self.waiting.keys().cloned().collect()
    }

    /// The next hook whose patches may be committed. A section is saved as a whole, so the save must be based on the last
    /// reading: no section is saved while readings wait.
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

    /// Notes that a job has started to check these patches against their schemas.
    pub(super) fn vetting_begins(&mut self, owner: &Owner, ran: Ran) {
        self.vetting.insert(owner.clone(), ran);
    }

    /// Notes the end of the job that checked the patches, and returns the hook.
    pub(super) fn vetting_ends(&mut self, owner: &Owner) -> Option<Ran> {
        self.vetting.remove(owner)
    }

    /// Notes that a job has started to write this section.
    pub(super) fn save_begins(&mut self, owner: &Owner, saving: Saving) {
        self.saving.insert(owner.clone(), saving);
    }

    /// Notes the end of the job that wrote the section, and returns the save.
    pub(super) fn save_ends(&mut self, owner: &Owner) -> Option<Saving> {
        self.saving.remove(owner)
    }
}
