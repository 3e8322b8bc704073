//! A version on trial: it leads and brings everything to where it should be, and leaves alone what the version before it could
//! not take back. Removals, with the hooks that belong to them, and changes of CRDs that exist wait until it has passed, each
//! by name; what hooks save in the ConfigMap is noted, so that it can be put back.
//!
//! There is one format of our state, which both versions write; a newer one would wait here, too. Must never let a person's
//! word for a removal count as one for the trial.

use std::collections::BTreeSet;

use super::event::TrialStage;
use super::policy::OnTrial;
use crate::artifact::trial::record::Ruling;

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

    /// This version is on trial.
    pub(super) fn is_on_trial(&self) -> bool {
        self.on_trial == OnTrial::Yes
    }

    /// The stage of the last trial was read. True if it was ours and is passed.
    pub(super) fn hear(&mut self, stage: TrialStage) -> bool {
        let ruling = match stage {
            // The verdict on an earlier one does not count for it.
            TrialStage::Open => {
                self.ruling = None;
                return false;
            }
            TrialStage::Ended(ruling) => ruling,
        };
        self.ruling = Some(ruling);
        match (self.on_trial, ruling) {
            (OnTrial::Yes, Ruling::Passed) => {
                self.on_trial = OnTrial::No;
                true
            }
            // The old version leads again soon, and sees to the rest.
            (OnTrial::Yes, Ruling::Failed | Ruling::Unclear | Ruling::Void) | (OnTrial::No, _) => false,
        }
    }

    /// Nothing is noted any more of what hooks saved on trial.
    pub(super) fn settled(&mut self) {
        self.noted.clear();
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
