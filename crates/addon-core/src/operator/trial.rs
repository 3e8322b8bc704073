//! A version on trial: it leads and brings everything to where it should be, and leaves alone what the version before it could
//! not take back. Removals, with the hooks that belong to them, and changes of CRDs that exist wait until it has passed, each
//! by name; what hooks save in the ConfigMap is noted, so that it can be put back.
//!
//! There is one format of our state, which both versions write; a newer one would wait here, too. Must never let a person's
//! word for a removal count as one for the trial.

use std::collections::BTreeSet;

use super::Operator;
use super::effect::Notice;
use super::event::{Settled, TrialStage};
use super::jobs::Chore;
use super::modules::{Hold, Turn};
use super::policy::OnTrial;
use super::query::{HeldBy, HeldRemoval};
use super::task::{Lane, Reason};
use super::wave::Wave;
use crate::artifact::trial::record::Ruling;
use crate::name::ModuleName;

/// Why a removal waits, in words that follow the name of it.
const REMOVAL: &str = "this version of the operator is on trial, and the one before could not take it back";

/// Our part in a trial, be it our own or that of the version that was tried last.
#[derive(Debug)]
pub(super) struct Probation {
    on_trial: OnTrial,
    /// The verdict on the last trial; nothing while there is none, or nobody has told us.
    ruling: Option<Ruling>,
    /// The keys of the sections that hooks saved on trial, and that nobody has seen to.
    noted: BTreeSet<String>,
}

impl Probation {
    pub(super) fn new(on_trial: OnTrial) -> Self {
        Self {
            on_trial,
            ruling: None,
            noted: BTreeSet::new(),
        }
    }

    pub(super) fn on_trial(&self) -> OnTrial {
        self.on_trial
    }

    /// The keys of the sections that are neither put back nor forgotten.
    pub(super) fn noted(&self) -> impl Iterator<Item = &String> {
        self.noted.iter()
    }

    /// The state was read: these sections are neither put back nor forgotten.
    pub(super) fn take_noted<'a>(&mut self, keys: impl Iterator<Item = &'a str>) {
        self.noted.extend(keys.map(str::to_owned));
    }

    /// A hook's section is about to be written.
    pub(super) fn notes(&mut self, key: &str) {
        if self.on_trial == OnTrial::Yes {
            self.noted.insert(key.to_owned());
        }
    }

    /// The ruling by which noted sections are put back or forgotten now, if it is for us to do.
    pub(super) fn settles_by(&self) -> Option<Ruling> {
        match self.on_trial {
            OnTrial::Yes => None,
            OnTrial::No => self.ruling.filter(|_| !self.noted.is_empty()),
        }
    }

    /// The knowledge that lacks for that, in words.
    pub(super) fn waiting(&self) -> Option<String> {
        let waits = self.on_trial == OnTrial::No && self.ruling.is_none() && !self.noted.is_empty();
        let keys: Vec<&str> = self.noted.iter().map(String::as_str).collect();
        waits.then(|| {
            format!(
                "the verdict on the trial in which hooks saved {} in the ConfigMap",
                keys.join(", ")
            )
        })
    }
}

impl Operator {
    pub(super) fn is_on_trial(&self) -> bool {
        self.probation.on_trial == OnTrial::Yes
    }

    pub(super) fn trial_seen(&mut self, stage: TrialStage) {
        match stage {
            // The verdict on an earlier one does not count for it.
            TrialStage::Open => self.probation.ruling = None,
            TrialStage::Ended(ruling) => self.trial_ended(ruling),
        }
    }

    /// The trial was judged. If it was ours and is passed, all that waited for that goes on.
    fn trial_ended(&mut self, ruling: Ruling) {
        self.probation.ruling = Some(ruling);
        match (self.probation.on_trial, ruling) {
            (OnTrial::Yes, Ruling::Passed) => {}
            // The old version leads again soon, and sees to the rest.
            (OnTrial::Yes, Ruling::Failed | Ruling::Unclear | Ruling::Void) | (OnTrial::No, _) => return,
        }
        self.probation.on_trial = OnTrial::No;
        self.cx.tell(Notice::TrialPassed);
        if self.stopping.is_some() {
            return;
        }
        let waits = self.modules.values().any(|unit| unit.turn.waits_for_trial());
        if waits && self.converge.has_begun() {
            self.request_converge(Reason::TrialPassed, true);
        }
        if self.converge.first_done {
            self.purge();
        }
    }

    /// A module that waits with its CRDs, and why.
    pub(super) fn hold_for_crds(&mut self, name: &ModuleName, crds: &[String]) {
        let reason = format!(
            "this version of the operator is on trial, and does not change before it has passed: {}",
            crds.join(", ")
        );
        self.hold_for_trial(name, reason);
    }

    fn hold_for_trial(&mut self, name: &ModuleName, reason: String) {
        let Some(unit) = self.modules.get_mut(name) else { return };
        unit.turn = Turn::Held(Hold {
            reason: reason.clone(),
            need: None,
            is_own_fault: false,
            is_for_trial: true,
        });
        unit.failures = 0;
        self.cx.tell(Notice::ModuleWaitsForTrial {
            module: name.clone(),
            reason,
        });
    }

    /// In strict order nobody overtakes a module that waits for the trial, and the trial waits for the converge: those behind it
    /// wait for the trial, too. True if that is so, and nobody else is waited for.
    pub(super) fn strict_order_waits_for_trial(&mut self, wave: &mut Wave) -> bool {
        let Some(group) = wave.groups.front().filter(|_| self.cx.policy.strict_order) else {
            return false;
        };
        let turn_of = |name: &ModuleName| self.modules.get(name).map(|unit| &unit.turn);
        let is_settled =
            |name: &ModuleName| turn_of(name).is_none_or(|turn| turn.is_over(true) || turn.waits_for_trial());
        let first = group
            .iter()
            .find(|name| turn_of(name).is_some_and(Turn::waits_for_trial));
        let Some(first) = first.filter(|_| group.iter().all(is_settled)).cloned() else {
            return false;
        };
        for name in wave.groups.drain(..).skip(1).flatten() {
            if self.modules.get(&name).is_some_and(|unit| unit.turn == Turn::Waiting) {
                let reason =
                    format!("in strict order it comes after module '{first}', which waits for the end of a trial");
                self.hold_for_trial(&name, reason);
            }
        }
        true
    }

    /// The module would be removed if we were not on trial.
    pub(super) fn trial_keeps(&self, name: &ModuleName) -> bool {
        self.is_on_trial() && self.is_unwanted(name)
    }

    /// Why it is not removed, in words.
    pub(super) fn trial_obstacle(&self, name: &ModuleName) -> Option<String> {
        let keeps = self.trial_keeps(name);
        keeps.then(|| format!("the end of a trial before it is removed: {REMOVAL}"))
    }

    /// The removals that wait for the trial and for nothing else.
    pub(super) fn removals_held_by_trial(&self) -> Vec<HeldRemoval> {
        if !self.is_on_trial() {
            return Vec::new();
        }
        let held = |release: String, sign: &'static str| HeldRemoval {
            release,
            sign,
            reason: REMOVAL.to_owned(),
            by: HeldBy::Trial,
        };
        let modules = self.modules.keys().filter(|name| self.is_unwanted(name));
        let modules = modules.map(|name| held(name.to_string(), "its module is switched off"));
        let orphans = self.orphans().filter(|_| self.startup.inventory_complete);
        let orphans = orphans.map(|release| held(release, "its module is gone from the directories"));
        let free = |held: &HeldRemoval| !self.removal.brake.holds(&held.release);
        modules.chain(orphans).filter(free).collect()
    }

    /// The modules that wait for the trial, each with the reason.
    pub(super) fn modules_held_by_trial(&self) -> Vec<String> {
        let held = self.modules.values().filter_map(|unit| match &unit.turn {
            Turn::Held(hold) if unit.enabled && hold.is_for_trial => {
                Some(format!("module '{}': {}", unit.found.name, hold.reason))
            }
            Turn::Held(_) | Turn::Out | Turn::Waiting | Turn::Running | Turn::Passed | Turn::Failed | Turn::Late => {
                None
            }
        });
        held.collect()
    }

    /// Puts back or forgets what hooks saved on trial, as soon as it is known which, and nothing of it is on its way.
    pub(super) fn settle_sections(&mut self) {
        if self.probation.settles_by().is_some() && !self.commits.are_saving() {
            self.run_chore(Chore::SettleSections);
        }
    }

    /// The first converge does not begin with sections that are about to be put back. One attempt is waited for: they may be
    /// refused, and the others are to go on.
    pub(super) fn awaits_sections(&self) -> bool {
        let puts_back = match self.probation.settles_by() {
            Some(Ruling::Failed | Ruling::Unclear | Ruling::Void) => true,
            Some(Ruling::Passed) | None => false,
        };
        puts_back && self.startup.is_first_try(Chore::SettleSections)
    }

    pub(super) fn sections_settled(&mut self, settled: Settled) {
        self.probation.noted.clear();
        let Settled { put_back, edited, read } = settled;
        if !put_back.is_empty() || !edited.is_empty() {
            self.cx.tell(Notice::SectionsPutBack { keys: put_back, edited });
        }
        if let Some(read) = read {
            self.config_read(read);
        }
    }

    /// The run at the head of a lane ends here, as its module waits for something else than a next try.
    pub(super) fn end_run_for_trial(&mut self, lane: &Lane, name: &ModuleName, crds: &[String]) {
        self.lanes.succeeded(lane);
        self.lanes.finish(lane);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.run = None;
        }
        self.apply_what_nothing_holds(name);
        self.hold_for_crds(name, crds);
    }
}
