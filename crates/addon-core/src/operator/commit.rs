//! Putting a hook's patches into force. With a config patch the section is saved first; other commits to that section
//! wait meanwhile. Both patches are committed in one step, or the hook counts as failed.

use std::collections::{BTreeMap, VecDeque};

use super::Operator;
use super::effect::Job;
use super::event::{Done, Saved, Usage};
use super::jobs::Purpose;
use super::task::Lane;
use crate::failure::{Class, Failure};
use crate::hook::output::HookOutput;
use crate::name::Owner;
use crate::values::section;
use crate::values::{Change, Proposal};

/// Sections that are being saved, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct Commits {
    saving: BTreeMap<Owner, Saving>,
    waiting: BTreeMap<Owner, VecDeque<Ran>>,
}

/// A hook that ran at the head of a lane, with what it asks for.
#[derive(Debug)]
struct Ran {
    lane: Lane,
    output: HookOutput,
    usage: Usage,
}

#[derive(Debug)]
struct Saving {
    ran: Ran,
    proposal: Proposal,
    text: String,
}

impl Commits {
    /// The text that is on its way into this owner's section.
    pub(super) fn saving_text(&self, owner: &Owner) -> Option<&str> {
        self.saving.get(owner).map(|saving| saving.text.as_str())
    }

    /// This text is on its way into this key.
    pub(super) fn is_saving(&self, key: &str, text: &str) -> bool {
        self.saving
            .iter()
            .any(|(owner, saving)| owner.values_key() == key && saving.text == text)
    }

    /// The lanes that wait for a section, in words.
    pub(super) fn waits(&self, lane: &Lane) -> Option<&Owner> {
        let waits = |queue: &VecDeque<Ran>| queue.iter().any(|ran| ran.lane == *lane);
        self.waiting
            .iter()
            .find(|(_, queue)| waits(queue))
            .map(|(owner, _)| owner)
    }
}

impl Operator {
    /// A hook ran; now its patches count, or it has failed.
    pub(super) fn hook_ran(&mut self, lane: &Lane, output: HookOutput, usage: Usage) {
        let Some(owner) = self.doing.get(lane).map(|doing| doing.hook.owner.clone()) else {
            return;
        };
        if output.is_empty() || self.came_too_late(lane) {
            let nothing = Change {
                values_changed: false,
                config_section: None,
                flags: Vec::new(),
            };
            self.hook_succeeded(lane, usage, &nothing);
            return;
        }
        let lane = lane.clone();
        let ran = Ran { lane, output, usage };
        if self.commits.saving.contains_key(&owner) {
            self.commits.waiting.entry(owner).or_default().push_back(ran);
        } else {
            self.commit(&owner, ran);
        }
    }

    fn commit(&mut self, owner: &Owner, ran: Ran) {
        if let Some(module) = owner.module().filter(|_| !ran.output.config.is_empty()) {
            // A section is saved as a whole, so it must be made of what the ConfigMap holds now.
            self.apply_deferred(module);
        }
        let proposal = match self.values.propose(owner, &ran.output.values, &ran.output.config) {
            Ok(proposal) => proposal,
            Err(rejected) => {
                let failure = Failure::of(Class::HookFailed, &rejected);
                self.hook_failed(&ran.lane, failure);
                return;
            }
        };
        match proposal.config_section() {
            None => self.carry_out(ran, proposal),
            Some(values) => {
                let text = section::to_text(values);
                self.save(owner, Saving { ran, proposal, text });
            }
        }
    }

    fn carry_out(&mut self, ran: Ran, proposal: Proposal) {
        match self.values.commit(proposal) {
            Ok(change) => self.hook_succeeded(&ran.lane, ran.usage, &change),
            // Nothing happens between proposing and committing, but if it ever did, proposing anew is right.
            Err(stale) => self.commit(stale.0.owner(), ran),
        }
    }

    fn save(&mut self, owner: &Owner, saving: Saving) {
        let key = owner.values_key();
        if self.stopping.is_some() {
            let report = "config values are not saved any more: the operator is stopping";
            self.hook_failed(&saving.ran.lane, Failure::new(Class::Cancelled, report));
            return;
        }
        if let Some(obstacle) = self.config.save_obstacle(&key) {
            self.hook_failed(&saving.ran.lane, obstacle);
            return;
        }
        let job = Job::SaveConfig {
            base: self.config.raw(&key).cloned(),
            create: self.config.is_missing(),
            key,
            text: saving.text.clone(),
        };
        self.commits.saving.insert(owner.clone(), saving);
        self.start_job(job, Purpose::Save(owner.clone()));
    }

    /// The write of a section ended.
    pub(super) fn save_finished(&mut self, owner: &Owner, result: Result<Done, Failure>) {
        let Some(Saving { ran, proposal, text }) = self.commits.saving.remove(owner) else {
            return;
        };
        let key = owner.values_key();
        match result {
            Ok(Done::ConfigSaved(Saved::Written { version })) => {
                self.config.wrote(&key, text, version);
                if proposal.is_current(&self.values) {
                    self.carry_out(ran, proposal);
                } else {
                    self.commit(owner, ran);
                }
            }
            Ok(Done::ConfigSaved(Saved::Conflict(read))) => {
                let before = self.config.version();
                self.config_changed(read);
                if self.config.version() == before && !self.config.is_missing() {
                    let report = "the ConfigMap changed again while its section was being saved";
                    self.hook_failed(&ran.lane, Failure::new(Class::Unavailable, report));
                } else {
                    self.commit(owner, ran);
                }
            }
            Ok(_) => {
                let failure = Failure::defect("a save ended with the outcome of another kind of job");
                self.hook_failed(&ran.lane, failure);
            }
            Err(failure) => self.hook_failed(&ran.lane, failure.within("save config values")),
        }
        self.next_commit(owner);
    }

    /// Those that waited for the section go on, up to the next one that saves.
    fn next_commit(&mut self, owner: &Owner) {
        while !self.commits.saving.contains_key(owner) {
            let next = self.commits.waiting.get_mut(owner).and_then(VecDeque::pop_front);
            let Some(ran) = next else {
                self.commits.waiting.remove(owner);
                return;
            };
            self.commit(owner, ran);
        }
    }
}
