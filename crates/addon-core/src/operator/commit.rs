//! Putting a hook's patches into force. With a config patch the section is saved first; other commits to that section
//! wait meanwhile. Both patches are committed in one step, or the hook counts as failed.

use std::collections::{BTreeMap, VecDeque};

use super::Operator;
use super::effect::Job;
use super::event::{Done, HookOutput, Saved};
use super::jobs::Purpose;
use super::task::Lane;
use crate::failure::{Class, Failure};
use crate::name::Owner;
use crate::values::section;
use crate::values::{Change, Proposal};

/// Sections that are being saved, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct Commits {
    saving: BTreeMap<Owner, Saving>,
    waiting: BTreeMap<Owner, VecDeque<(Lane, HookOutput)>>,
}

#[derive(Debug)]
struct Saving {
    lane: Lane,
    output: HookOutput,
    proposal: Proposal,
    text: String,
}

impl Commits {
    /// The text that is on its way into this owner's section.
    pub(super) fn saving_text(&self, owner: &Owner) -> Option<&str> {
        self.saving.get(owner).map(|saving| saving.text.as_str())
    }

    /// The lanes that wait for a section, in words.
    pub(super) fn waits(&self, lane: &Lane) -> Option<&Owner> {
        let waits = |queue: &VecDeque<(Lane, HookOutput)>| queue.iter().any(|(waiting, _)| waiting == lane);
        self.waiting
            .iter()
            .find(|(_, queue)| waits(queue))
            .map(|(owner, _)| owner)
    }
}

impl Operator {
    /// A hook ran; now its patches count, or it has failed.
    pub(super) fn hook_ran(&mut self, lane: &Lane, output: HookOutput) {
        let Some(owner) = self.doing.get(lane).map(|doing| doing.hook.owner.clone()) else {
            return;
        };
        if output.values_patch.is_empty() && output.config_patch.is_empty() {
            let nothing = Change {
                values_changed: false,
                config_section: None,
                flags: Vec::new(),
            };
            self.hook_succeeded(lane, output.usage, &nothing);
        } else if self.commits.saving.contains_key(&owner) {
            self.commits
                .waiting
                .entry(owner)
                .or_default()
                .push_back((lane.clone(), output));
        } else {
            self.commit(lane, &owner, output);
        }
    }

    fn commit(&mut self, lane: &Lane, owner: &Owner, output: HookOutput) {
        let proposal = match self.values.propose(owner, &output.values_patch, &output.config_patch) {
            Ok(proposal) => proposal,
            Err(rejected) => {
                let failure = Failure::of(Class::HookFailed, &rejected);
                self.hook_failed(lane, failure);
                return;
            }
        };
        match proposal.config_section() {
            None => self.carry_out(lane, output, proposal),
            Some(values) => {
                let text = section::to_text(values);
                self.save(lane, owner, output, proposal, text);
            }
        }
    }

    fn carry_out(&mut self, lane: &Lane, output: HookOutput, proposal: Proposal) {
        match self.values.commit(proposal) {
            Ok(change) => self.hook_succeeded(lane, output.usage, &change),
            // Nothing happens between proposing and committing, but if it ever did, proposing anew is right.
            Err(stale) => self.commit(lane, stale.0.owner(), output),
        }
    }

    fn save(&mut self, lane: &Lane, owner: &Owner, output: HookOutput, proposal: Proposal, text: String) {
        let key = owner.values_key();
        if let Some(obstacle) = self.config.save_obstacle(&key) {
            self.hook_failed(lane, obstacle);
            return;
        }
        let job = Job::SaveConfig {
            base: self.config.raw(&key).cloned(),
            create: self.config.is_missing(),
            key,
            text: text.clone(),
        };
        self.commits.saving.insert(
            owner.clone(),
            Saving {
                lane: lane.clone(),
                output,
                proposal,
                text,
            },
        );
        self.start_job(job, Purpose::Save(owner.clone()));
    }

    /// The write of a section ended.
    pub(super) fn save_finished(&mut self, owner: &Owner, result: Result<Done, Failure>) {
        let Some(Saving {
            lane,
            output,
            proposal,
            text,
        }) = self.commits.saving.remove(owner)
        else {
            return;
        };
        match result {
            Ok(Done::ConfigSaved(Saved::Written { version })) => {
                self.config.wrote(&owner.values_key(), text, version);
                if proposal.is_current(&self.values) {
                    self.carry_out(&lane, output, proposal);
                } else {
                    self.commit(&lane, owner, output);
                }
            }
            Ok(Done::ConfigSaved(Saved::Conflict(read))) => {
                let before = self.config.raw(&owner.values_key()).cloned();
                self.config_changed(read);
                if self.config.raw(&owner.values_key()) == before.as_ref() && !self.config.is_missing() {
                    let report = "the ConfigMap changed again while its section was being saved";
                    self.hook_failed(&lane, Failure::new(Class::Unavailable, report));
                } else {
                    self.commit(&lane, owner, output);
                }
            }
            Ok(_) => self.hook_failed(
                &lane,
                Failure::defect("a save ended with the outcome of another kind of job"),
            ),
            Err(mut failure) => {
                failure.report = format!("save config values: {}", failure.report);
                self.hook_failed(&lane, failure);
            }
        }
        self.next_commit(owner);
    }

    /// Those that waited for the section go on, up to the next one that saves.
    fn next_commit(&mut self, owner: &Owner) {
        while !self.commits.saving.contains_key(owner) {
            let Some((lane, output)) = self.commits.waiting.get_mut(owner).and_then(VecDeque::pop_front) else {
                self.commits.waiting.remove(owner);
                return;
            };
            self.commit(&lane, owner, output);
        }
    }
}
