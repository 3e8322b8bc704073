//! Putting a hook's patches into force. With a config patch the section is saved first; other commits to that section
//! wait meanwhile, and so they do while patches are held against schemas that take their time. Both patches are committed
//! in one step; if only the config patch can be, it is, and the hook counts as failed. A values patch never counts without
//! the config patch beside it.

mod refusal;

use std::collections::{BTreeMap, VecDeque};

use super::Operator;
use super::effect::Job;
use super::event::{ConfigRead, Saved, Usage};
use super::task::Lane;
use super::ticket::VetFor;
use crate::failure::{Class, Failure};
use crate::hook::output::HookOutput;
use crate::name::Owner;
use crate::values::patch::{Patch, PatchFile};
use crate::values::vetted::{Unvetted, Vetted};
use crate::values::{Attempt, Change, Proposal, Rejected, section};

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
struct Ran {
    lane: Lane,
    output: HookOutput,
    usage: Usage,
    /// Why its values patch, which is left out of the output, cannot be put into force.
    refused: Option<Failure>,
    /// What is known of what it asks for.
    vetted: Vetted,
}

impl Ran {
    fn saves(&self) -> bool {
        !self.output.config.is_empty()
    }
}

#[derive(Debug)]
struct Saving {
    ran: Ran,
    proposal: Proposal,
    text: String,
    /// The version of the ConfigMap that it was made of.
    known: u64,
    /// The section was read while it was being saved.
    held: bool,
    /// The ConfigMap was seen while it was being saved.
    seen: bool,
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
    fn saving(&self) -> impl Iterator<Item = (String, String)> {
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

impl Operator {
    /// Texts of the ConfigMap that need not be held against schemas once more: those in force, and our own.
    pub(super) fn known_texts(&self) -> BTreeMap<String, String> {
        let mut known = self.config.vetted().clone();
        known.extend(self.commits.saving());
        known
    }

    /// A hook ran; now its patches count, or it has failed.
    pub(super) fn hook_ran(&mut self, lane: &Lane, output: HookOutput, usage: Usage) {
        let Some(owner) = self.lanes.doing(lane).map(|doing| doing.hook.owner.clone()) else {
            return;
        };
        let lane = lane.clone();
        let ran = Ran {
            lane,
            output,
            usage,
            refused: None,
            vetted: Vetted::default(),
        };
        if ran.output.is_empty() {
            return self.commit(&owner, ran);
        }
        let waiting = self.commits.waiting.entry(owner.clone()).or_default();
        waiting.push_back(ran);
        self.next_commit(&owner);
    }

    fn commit(&mut self, owner: &Owner, ran: Ran) {
        if ran.output.is_empty() || self.came_too_late(&ran.lane) {
            let nothing = Change {
                values_changed: false,
                config_section: None,
                flags: Vec::new(),
            };
            self.hook_succeeded(&ran.lane, ran.usage, &nothing);
            return;
        }
        if let Some(module) = owner.module().filter(|_| !ran.output.config.is_empty()) {
            // A section is saved as a whole, so it must be made of what the ConfigMap holds now.
            self.apply_deferred(module);
        }
        let (values, config) = (&ran.output.values, &ran.output.config);
        let proposal = match self.values.propose_vetted(owner, values, config, &ran.vetted) {
            Ok(Ok(proposal)) => proposal,
            Ok(Err(rejected)) => return self.refused(owner, ran, &rejected),
            Err(unvetted) => return self.vet_patches(owner, ran, unvetted),
        };
        match proposal.config_section().map(|values| section::to_text(values)) {
            None => self.carry_out(ran, proposal),
            Some(text) => self.save(owner, ran, proposal, text),
        }
    }

    /// The patches of a hook cannot be put into force as they are: it counts as failed, at once or after its config patch.
    fn refused(&mut self, owner: &Owner, mut ran: Ran, rejected: &Rejected) {
        let of_values = rejected.attempt == Attempt::Patch(PatchFile::Values);
        let (none, config) = (Patch::default(), &ran.output.config);
        let alone = of_values.then(|| self.values.propose_vetted(owner, &none, config, &ran.vetted));
        let alone = match alone.transpose() {
            Ok(alone) => alone,
            Err(unvetted) => return self.vet_patches(owner, ran, unvetted),
        };
        let failure = match &alone {
            // The config patch has its turn first, and so has what is wrong with it.
            Some(Err(first)) => self.refusal(&ran.lane, first),
            Some(Ok(_)) | None => self.refusal(&ran.lane, rejected),
        };
        if alone.is_some_and(|proposal| proposal.is_ok_and(|proposal| proposal.does_something())) {
            ran.output.values = Patch::default();
            ran.refused = Some(failure);
            self.commit(owner, ran);
        } else {
            self.hook_counts_as_failed(&ran.lane, failure);
        }
    }

    /// The config patch of a hook was not saved, and so nothing of what it patched counts.
    fn patch_not_saved(&mut self, owner: &Owner, lane: &Lane, failure: Failure) {
        let attempt = match owner {
            Owner::Global => "set kube config failed",
            Owner::Module(_) => "set kube module config failed",
        };
        let failure = self.of_doing(lane, failure.within(attempt));
        self.hook_counts_as_failed(lane, failure);
    }

    /// What a hook asks for is decided once it has been held against schemas, and in its turn.
    fn vet_patches(&mut self, owner: &Owner, ran: Ran, unvetted: Unvetted) {
        if self.stopping.is_some() {
            let report = "patched values are not held against their schema any more: the operator is stopping";
            let failure = self.of_doing(&ran.lane, Failure::new(Class::Cancelled, report));
            return self.hook_counts_as_failed(&ran.lane, failure);
        }
        self.commits.vetting.insert(owner.clone(), ran);
        self.jobs.begin(&mut self.cx, VetFor::Patches(owner.clone()), |ticket| {
            Job::Vet(unvetted, ticket)
        });
    }

    /// The patches of a hook were held against their schemas.
    pub(super) fn patches_vetted(&mut self, owner: &Owner, result: Result<Vetted, Failure>) {
        let Some(mut ran) = self.commits.vetting.remove(owner) else {
            return;
        };
        match result {
            Ok(vetted) => {
                ran.vetted.extend(vetted);
                self.again(owner, ran);
            }
            Err(failure) => {
                let failure = failure.within("hold patched values against their schema");
                let failure = self.of_doing(&ran.lane, failure);
                self.hook_counts_as_failed(&ran.lane, failure);
            }
        }
        self.advance_commits();
    }

    fn carry_out(&mut self, ran: Ran, proposal: Proposal) {
        match (self.values.commit(proposal), ran.refused.clone()) {
            (Ok(change), None) => self.hook_succeeded(&ran.lane, ran.usage, &change),
            (Ok(change), Some(failure)) => self.hook_half_succeeded(&ran.lane, &change, failure),
            // Nothing happens between proposing and committing, but if it ever did, proposing anew is right.
            (Err(stale), _) => self.commit(stale.0.owner(), ran),
        }
    }

    fn save(&mut self, owner: &Owner, ran: Ran, proposal: Proposal, text: String) {
        let key = owner.values_key();
        if self.stopping.is_some() {
            let report = "config values are not saved any more: the operator is stopping";
            self.patch_not_saved(owner, &ran.lane, Failure::new(Class::Cancelled, report));
            return;
        }
        if let Some(obstacle) = self.config.save_obstacle(&key, &text) {
            self.patch_not_saved(owner, &ran.lane, obstacle);
            return;
        }
        self.probation.notes(&key);
        let (on_trial, create) = (self.probation.on_trial(), self.config.is_missing());
        let (base, section) = (self.config.raw(&key).cloned(), text.clone());
        let saving = Saving {
            ran,
            proposal,
            text,
            known: self.config.version(),
            held: false,
            seen: false,
        };
        self.commits.saving.insert(owner.clone(), saving);
        self.jobs.begin(&mut self.cx, owner.clone(), |ticket| Job::SaveConfig {
            key,
            text: section,
            base,
            create,
            on_trial,
            ticket,
        });
    }

    /// The write of a section ended.
    pub(super) fn save_finished(&mut self, owner: &Owner, result: Result<Saved, Failure>) {
        let Some(saving) = self.commits.saving.remove(owner) else {
            return;
        };
        match result {
            Ok(Saved::Written { version, created }) => self.saved(owner, saving, version, created),
            Ok(Saved::Conflict(read)) => self.not_saved(owner, saving, read),
            Err(failure) => self.save_failed(owner, &saving, failure),
        }
        self.advance_commits();
    }

    fn save_failed(&mut self, owner: &Owner, saving: &Saving, failure: Failure) {
        self.patch_not_saved(owner, &saving.ran.lane, failure);
        if saving.held {
            let news = self.end_hold(owner);
            self.follow(news);
        }
    }

    /// The ConfigMap holds something else than we knew when we began. If we know more by now, the hook's patches are
    /// put on that.
    fn not_saved(&mut self, owner: &Owner, saving: Saving, read: ConfigRead) {
        let news = saving.held.then(|| self.end_hold(owner));
        // An absence has no version to be compared; if it lasts, whoever watches the ConfigMap tells it.
        if read != ConfigRead::Missing || !saving.seen {
            self.config_changed(read);
        }
        let knows_more = self.config.version() != saving.known || self.config.is_missing();
        // What was read may still have to be held against schemas; then it is waited for.
        if !knows_more && self.config.readings.is_empty() {
            let report = "the ConfigMap changed again while its section was being saved";
            self.patch_not_saved(owner, &saving.ran.lane, Failure::new(Class::Unavailable, report));
        } else {
            self.again(owner, saving.ran);
        }
        if let Some(news) = news {
            self.follow(news);
        }
    }

    /// The section stands in the ConfigMap. A reading that is older takes nothing of it back, one that is newer and
    /// says something else counts after it.
    fn saved(&mut self, owner: &Owner, saving: Saving, version: u64, created: bool) {
        let key = owner.values_key();
        self.config.wrote(&key, saving.text.clone(), version, created);
        let newest = self.config.says(&key, &saving.text);
        let dropped = self.came_too_late(&saving.ran.lane);
        if saving.proposal.is_current(&self.values) && !dropped {
            self.carry_out(saving.ran, saving.proposal);
            if saving.held && !newest {
                let news = self.end_hold(owner);
                self.follow(news);
            }
            return;
        }
        let news = (dropped || !newest).then(|| self.end_hold(owner));
        self.again(owner, saving.ran);
        if let Some(news) = news {
            self.follow(news);
        }
    }

    /// What a hook asks for is worked out anew, before that of any other.
    fn again(&mut self, owner: &Owner, ran: Ran) {
        let waiting = self.commits.waiting.entry(owner.clone()).or_default();
        waiting.push_front(ran);
        self.next_commit(owner);
    }

    /// Those that waited go on.
    pub(super) fn advance_commits(&mut self) {
        let owners: Vec<Owner> = self.commits.waiting.keys().cloned().collect();
        for owner in owners {
            self.next_commit(&owner);
        }
    }

    /// Those that waited for an owner's values go on, up to the next one that holds up the others.
    fn next_commit(&mut self, owner: &Owner) {
        while let Some(ran) = self.next_ran(owner) {
            self.commit(owner, ran);
        }
    }

    /// The next one that may have its way. A section is saved as a whole, so it must be made of what was read last.
    fn next_ran(&mut self, owner: &Owner) -> Option<Ran> {
        if self.commits.saving.contains_key(owner) || self.commits.vetting.contains_key(owner) {
            return None;
        }
        let waiting = self.commits.waiting.get_mut(owner)?;
        if waiting.front().is_some_and(Ran::saves) && !self.config.readings.is_empty() {
            return None;
        }
        let ran = waiting.pop_front();
        if waiting.is_empty() {
            self.commits.waiting.remove(owner);
        }
        ran
    }
}
