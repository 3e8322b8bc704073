//! The trial of the version that runs: the work that it must not do, and the sections that it saved.
//!
//! All of it is computed from writes alone, and never asked of the operator.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::event::TrialStage;
use addon_core::operator::policy::OnTrial;
use channel_core::trial::record::Ruling;
use serde::{Deserialize, Serialize};

use crate::dice::Dice;

/// The trial of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// The end of the trial.
    pub outcome: Outcome,
    /// Modules whose CRDs already exist, with definitions other than those in their files.
    pub other_crds: Vec<String>,
}

/// The end of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The version stays.
    Passed,
    /// The old version comes back.
    Failed,
    /// The old version comes back.
    Unclear,
    /// The old version comes back.
    Void,
}

impl Outcome {
    fn ruling(self) -> Ruling {
        match self {
            Self::Passed => Ruling::Passed,
            Self::Failed => Ruling::Failed,
            Self::Unclear => Ruling::Unclear,
            Self::Void => Ruling::Void,
        }
    }
}

/// The state of the trial.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    /// The stage; `None` in a world without a trial.
    pub stage: Option<TrialStage>,
    outcome: Option<Outcome>,
    /// Modules whose CRDs already exist, with definitions other than those in their files.
    pub other_crds: BTreeSet<String>,
    /// The sections that only the version on trial has written, each with its text from before the trial.
    saved: BTreeMap<String, Option<String>>,
}

impl Trial {
    /// The trial of a world.
    pub fn new(spec: Option<&TrialSpec>) -> Self {
        Self {
            stage: spec.map(|_| TrialStage::Open),
            outcome: spec.map(|spec| spec.outcome),
            other_crds: spec.iter().flat_map(|spec| spec.other_crds.iter().cloned()).collect(),
            saved: BTreeMap::new(),
        }
    }

    /// Whether the trial is not over.
    pub fn is_open(&self) -> bool {
        self.stage == Some(TrialStage::Open)
    }

    /// Ends the trial, if it has not ended. True if the old version comes back.
    pub fn judge(&mut self) -> bool {
        let Some(outcome) = self.outcome.filter(|_| self.is_open()) else {
            return false;
        };
        self.stage = Some(TrialStage::Ended(outcome.ruling()));
        outcome != Outcome::Passed
    }

    /// Whether a life that begins now is on trial. After a passed trial it may be a pod of the trial or of the Deployment.
    pub fn of_new_life(&self, dice: &mut Dice) -> OnTrial {
        match self.stage {
            Some(TrialStage::Open) => OnTrial::Yes,
            Some(TrialStage::Ended(Ruling::Passed)) if dice.chance(50) => OnTrial::Yes,
            Some(TrialStage::Ended(_)) | None => OnTrial::No,
        }
    }

    /// Notes the write of a hook's section. `before` is the text that was overwritten.
    pub fn wrote(&mut self, key: &str, before: Option<&String>, on_trial: OnTrial) {
        match on_trial {
            OnTrial::Yes => {
                self.saved.entry(key.to_owned()).or_insert_with(|| before.cloned());
            }
            OnTrial::No => self.edited(key),
        }
    }

    /// Notes that another writer wrote the section, or that its old text is not known any more.
    pub fn edited(&mut self, key: &str) {
        self.saved.remove(key);
    }

    /// Forgets all old texts.
    pub fn forget(&mut self) {
        self.saved.clear();
    }

    /// A section that differs from its old text although only the version on trial has written it.
    pub fn left(&self, data: Option<&BTreeMap<String, String>>) -> Option<&String> {
        let differs = |(key, before): &(&String, &Option<String>)| {
            let now = data.and_then(|data| data.get(*key));
            now != before.as_ref()
        };
        self.saved.iter().find(differs).map(|(key, _)| key)
    }
}
