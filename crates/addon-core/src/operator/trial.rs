//! The behaviour of a version on trial. It leads and converges, but does nothing that the version before it could not
//! undo. Removals, with the hooks that belong to them, and changes of existing CRDs wait until the trial is passed.
//! Sections that hooks save in the ConfigMap are noted, so that they can be put back.
//!
//! Both versions write the same format of the state Secret. A newer format would have to wait for the end of the trial,
//! too. Must never take a person's confirmation of a removal for permission to remove during the trial.

use std::collections::BTreeSet;

use channel_core::trial::record::Ruling;

use super::event::TrialStage;
use super::policy::OnTrial;

/// The role of this version in the last trial, which was its own or that of another version.
#[derive(Debug, Clone)]
pub(super) struct Probation {
    on_trial: OnTrial,
    /// The ruling on the last trial; `None` while there is no ruling, or no ruling was reported.
    ruling: Option<Ruling>,
    /// The keys of sections that hooks saved on trial and that were neither put back nor forgotten.
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

    /// Whether this version is on trial.
    pub(super) fn is_on_trial(&self) -> bool {
        self.on_trial == OnTrial::Yes
    }

    /// Takes the stage of the last trial. True if it was the trial of this version and is passed.
    pub(super) fn hear(&mut self, stage: TrialStage) -> bool {
        let ruling = match stage {
            // The ruling on an earlier trial does not count for this one.
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
            // The old version will lead again soon, and puts the sections back.
            (OnTrial::Yes, Ruling::Failed | Ruling::Unclear | Ruling::Void) | (OnTrial::No, _) => false,
        }
    }

    /// Forgets the noted sections.
    pub(super) fn settled(&mut self) {
        self.noted.clear();
    }

    /// The keys of the noted sections.
    pub(super) fn noted(&self) -> impl Iterator<Item = &String> {
        self.noted.iter()
    }

    /// Takes the noted sections from the state Secret.
    pub(super) fn take_noted<'a>(&mut self, keys: impl Iterator<Item = &'a str>) {
        self.noted.extend(keys.map(str::to_owned));
    }

    /// Notes a section that a hook is about to save.
    pub(super) fn notes(&mut self, key: &str) {
        if self.on_trial == OnTrial::Yes {
            self.noted.insert(key.to_owned());
        }
    }

    /// The ruling by which the noted sections are put back or forgotten now. `None` while this version is on trial
    /// itself, or there is no ruling.
    pub(super) fn settles_by(&self) -> Option<Ruling> {
        match self.on_trial {
            OnTrial::Yes => None,
            OnTrial::No => self.ruling.filter(|_| !self.noted.is_empty()),
        }
    }

    /// The text about the ruling that the noted sections wait for.
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
