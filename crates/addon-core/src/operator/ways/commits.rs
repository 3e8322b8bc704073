//! The way of a hook's patches into the values. If the hook wrote a config patch, its section is saved first. The
//! config patch and the values patch are committed in one step. If only the config patch is valid, it is committed and
//! the hook counts as failed. A values patch is never committed without the config patch beside it.

use names::Owner;

use crate::failure::{Class, Failure};
use crate::hook::output::HookOutput;
use crate::operator::Operator;
use crate::operator::commits::{Ran, Saving};
use crate::operator::effect::Job;
use crate::operator::event::{ConfigRead, HookRan, Saved, Usage};
use crate::operator::task::Lane;
use crate::operator::ticket::VetFor;
use crate::values::patch::{Patch, PatchFile, Unacceptable};
use crate::values::vetted::{Unvetted, Vetted};
use crate::values::{Attempt, Change, Proposal, Reason, Rejected, section};

impl Operator {
    /// Takes the end of a lane's hook.
    pub(super) fn hook_finished(&mut self, lane: &Lane, result: Result<HookRan, Failure>) {
        match result {
            Ok(ran) => {
                self.lanes.hook_read(lane, ran.read);
                self.loops
                    .hook_wrote(lane, &ran.wrote, ran.output.first_path(), self.cx.now.tick);
                self.hook_ran(lane, ran.output, ran.usage);
            }
            Err(failure) => self.hook_failed(lane, failure),
        }
    }

    /// Takes the failure of a hook.
    fn hook_failed(&mut self, lane: &Lane, failure: Failure) {
        let Some(hook) = self.lanes.doing(lane).map(|doing| &doing.hook) else {
            return;
        };
        let failure = self.cx.policy.mode.of_hook(hook, failure);
        self.hook_counts_as_failed(lane, failure);
    }

    /// Takes the output of a hook: commits its patches, or fails the hook.
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
        self.commits.wait(&owner, ran);
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
            // A section is saved as a whole, so it must be based on the current ConfigMap.
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

    /// Takes the refusal of a hook's patches: the hook counts as failed, at once or after its config patch was committed.
    fn refused(&mut self, owner: &Owner, mut ran: Ran, rejected: &Rejected) {
        let of_values = rejected.attempt == Attempt::Patch(PatchFile::Values);
        let (none, config) = (Patch::default(), &ran.output.config);
        let alone = of_values.then(|| self.values.propose_vetted(owner, &none, config, &ran.vetted));
        let alone = match alone.transpose() {
            Ok(alone) => alone,
            Err(unvetted) => return self.vet_patches(owner, ran, unvetted),
        };
        let failure = match &alone {
            // The config patch is committed first, so its error is reported first.
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

    /// Fails a hook whose config patch was not saved. None of its patches is committed.
    fn patch_not_saved(&mut self, owner: &Owner, lane: &Lane, failure: Failure) {
        let attempt = match owner {
            Owner::Global => "set kube config failed",
            Owner::Module(_) => "set kube module config failed",
        };
        let failure = self.of_doing(lane, failure.within(attempt));
        self.hook_counts_as_failed(lane, failure);
    }

    /// Starts a job that checks a hook's patches against schemas. Other hooks of the owner wait for it.
    fn vet_patches(&mut self, owner: &Owner, ran: Ran, unvetted: Unvetted) {
        if self.standing.is_stopping() {
            let report = "patched values are not held against their schema any more: the operator is stopping";
            let failure = self.of_doing(&ran.lane, Failure::new(Class::Cancelled, report));
            return self.hook_counts_as_failed(&ran.lane, failure);
        }
        self.commits.vetting_begins(owner, ran);
        self.jobs.begin(&mut self.cx, VetFor::Patches(owner.clone()), |ticket| {
            Job::Vet(unvetted, ticket)
        });
    }

    /// Takes the result of the check of patched values against their schema.
    pub(super) fn patches_vetted(&mut self, owner: &Owner, result: Result<Vetted, Failure>) {
        let Some(mut ran) = self.commits.vetting_ends(owner) else {
            return;
        };
        match result {
            Ok(vetted) => {
                ran.vetted.extend(vetted);
                self.begin_again(owner, ran);
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
        let owner = proposal.owner().clone();
        match (self.values.commit(proposal), ran.refused.clone()) {
            (Ok(change), None) => {
                self.note_given(&owner, &ran);
                self.hook_succeeded(&ran.lane, ran.usage, &change);
            }
            (Ok(change), Some(failure)) => self.hook_half_succeeded(&ran.lane, &change, failure),
            // No event comes between proposing and committing. If the proposal is outdated all the same, a new one is made.
            (Err(stale), _) => self.commit(stale.0.owner(), ran),
        }
    }

    /// Keeps the values that a global hook has given, for a later start at which it fails.
    fn note_given(&mut self, owner: &Owner, ran: &Ran) {
        let hook = self.lanes.doing(&ran.lane).map(|doing| &doing.hook.name);
        let accepted = ran.output.values.accept(owner);
        if let (Owner::Global, Some(hook), Ok(patch)) = (owner, hook, accepted) {
            self.stand_ins.gave(hook, patch, self.cx.now.wall);
        }
    }

    fn save(&mut self, owner: &Owner, ran: Ran, proposal: Proposal, text: String) {
        let key = owner.values_key();
        if self.standing.is_stopping() {
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
        self.commits.save_begins(owner, saving);
        self.jobs.begin(&mut self.cx, owner.clone(), |ticket| Job::SaveConfig {
            key,
            text: section,
            base,
            create,
            on_trial,
            ticket,
        });
    }

    /// Takes the end of a section's write.
    pub(super) fn save_finished(&mut self, owner: &Owner, result: Result<Saved, Failure>) {
        let Some(saving) = self.commits.save_ends(owner) else {
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

    /// The write found another ConfigMap than the known one. If a newer reading is known by now, the hook's patches are
    /// applied to that reading.
    fn not_saved(&mut self, owner: &Owner, saving: Saving, read: ConfigRead) {
        let news = saving.held.then(|| self.end_hold(owner));
        // A missing ConfigMap has no version to compare. If it is still missing, the watch of the ConfigMap will report that.
        if read != ConfigRead::Missing || !saving.seen {
            self.config_changed(read);
        }
        let knows_more = self.config.version() != saving.known || self.config.is_missing();
        // The reading may still wait for a check against schemas. Then the hook waits for it.
        if !knows_more && !self.config.has_readings() {
            let report = "the ConfigMap changed again while its section was being saved";
            self.patch_not_saved(owner, &saving.ran.lane, Failure::new(Class::Unavailable, report));
        } else {
            self.begin_again(owner, saving.ran);
        }
        if let Some(news) = news {
            self.follow(news);
        }
    }

    /// The section was written. Older readings do not undo it. Newer readings with another text are applied after it.
    fn saved(&mut self, owner: &Owner, saving: Saving, version: u64, created: bool) {
        let key = owner.values_key();
        self.config.wrote(&key, saving.text.clone(), version, created);
        self.loops.section_written(&saving.ran.lane, version);
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
        self.begin_again(owner, saving.ran);
        if let Some(news) = news {
            self.follow(news);
        }
    }

    /// Continues the commits of all owners with waiting hooks.
    pub(super) fn advance_commits(&mut self) {
        for owner in self.commits.awaited() {
            self.next_commit(&owner);
        }
    }

    /// Continues the commits of one owner until one of them has to wait.
    fn next_commit(&mut self, owner: &Owner) {
        while let Some(ran) = self.commits.next(owner, self.config.has_readings()) {
            self.commit(owner, ran);
        }
    }

    /// Works out the patches of a hook anew, before the patches of other hooks.
    fn begin_again(&mut self, owner: &Owner, ran: Ran) {
        self.commits.wait_first(owner, ran);
        self.next_commit(owner);
    }

    /// The failure with the name of the hook that the head of the lane runs or ran.
    fn of_doing(&self, lane: &Lane, failure: Failure) -> Failure {
        let Some(hook) = self.lanes.doing(lane).map(|doing| &doing.hook) else {
            return failure;
        };
        let name = &hook.name;
        match hook.owner {
            Owner::Global => failure.within(format_args!("global hook '{name}'")),
            Owner::Module(_) => failure.within(format_args!("module hook '{name}'")),
        }
    }

    /// The failure for refused patches, with the hook that made them.
    fn refusal(&self, lane: &Lane, rejected: &Rejected) -> Failure {
        let failure = refusal(rejected);
        match rejected.attempt {
            Attempt::Patch(_) if !is_of_flag(rejected) => self.of_doing(lane, failure),
            _ => failure,
        }
    }
}

/// Whether the patch sets a flag to a value that is not a boolean.
fn is_of_flag(rejected: &Rejected) -> bool {
    matches!(&rejected.reason, Reason::Unacceptable(Unacceptable::FlagValue { .. }))
}

/// The failure for refused patches, worded as in the original.
fn refusal(rejected: &Rejected) -> Failure {
    let Attempt::Patch(file) = rejected.attempt else {
        return Failure::of(Class::HookFailed, rejected);
    };
    if let Reason::Unacceptable(flag @ Unacceptable::FlagValue { .. }) = &rejected.reason {
        let file = match file {
            PatchFile::Values => "values",
            PatchFile::Config => "config",
        };
        return Failure::of(Class::HookFailed, flag)
            .within(format_args!("apply enabled patches from global {file} patch"));
    }
    let attempt = match (&rejected.owner, file) {
        (Owner::Global, PatchFile::Values) => "dynamic global values update error",
        (Owner::Global, PatchFile::Config) => "kube config global values update error",
        (Owner::Module(_), PatchFile::Values) => "dynamic module values update error",
        (Owner::Module(_), PatchFile::Config) => "kube module config values update error",
    };
    Failure::of(Class::HookFailed, rejected).within(attempt)
}
