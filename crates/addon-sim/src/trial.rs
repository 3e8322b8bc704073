//! A trial of the version whose lives the world sees: what it may not do, and what becomes of the sections that it saved.
//!
//! All of it is worked out from writes alone, and must never be asked of the operator.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::artifact::trial::record::Ruling;
use addon_core::operator::event::TrialStage;
use addon_core::operator::policy::OnTrial;
use serde::{Deserialize, Serialize};

use crate::dice::Dice;

/// The trial of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// Its end.
    pub outcome: Outcome,
    /// Modules whose CRDs are there in another form.
    pub other_crds: Vec<String>,
}

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The version stays.
    Passed,
    /// The one before comes back.
    Failed,
    /// So it does.
    Unclear,
    /// So it does.
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

/// The trial as it stands.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    /// Nothing in a world without one.
    pub stage: Option<TrialStage>,
    outcome: Option<Outcome>,
    /// Modules whose CRDs are there in another form.
    pub other_crds: BTreeSet<String>,
    /// The sections that were written on trial and by nobody else since, with the text that stood there before.
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

    /// The trial is not over.
    pub fn is_open(&self) -> bool {
        self.stage == Some(TrialStage::Open)
    }

    /// Its end has come, if it has not before. True if the version before comes back with it.
    pub fn judge(&mut self) -> bool {
        let Some(outcome) = self.outcome.filter(|_| self.is_open()) else {
            return false;
        };
        self.stage = Some(TrialStage::Ended(outcome.ruling()));
        outcome != Outcome::Passed
    }

    /// Whether a life that begins now is on trial. One that begins after it is passed may be a pod of the trial or another.
    pub fn of_new_life(&self, dice: &mut Dice) -> OnTrial {
        match self.stage {
            Some(TrialStage::Open) => OnTrial::Yes,
            Some(TrialStage::Ended(Ruling::Passed)) if dice.chance(50) => OnTrial::Yes,
            Some(TrialStage::Ended(_)) | None => OnTrial::No,
        }
    }

    /// A hook's section was written: this is what stood there.
    pub fn wrote(&mut self, key: &str, before: Option<&String>, on_trial: OnTrial) {
        match on_trial {
            OnTrial::Yes => {
                self.saved.entry(key.to_owned()).or_insert_with(|| before.cloned());
            }
            OnTrial::No => self.edited(key),
        }
    }

    /// Somebody else wrote it, or nobody can know any more what stood there.
    pub fn edited(&mut self, key: &str) {
        self.saved.remove(key);
    }

    /// Of none it can be known.
    pub fn forget(&mut self) {
        self.saved.clear();
    }

    /// A section that is not what it was before, although nobody but the version on trial has written it.
    pub fn left(&self, data: Option<&BTreeMap<String, String>>) -> Option<&String> {
        let differs = |(key, before): &(&String, &Option<String>)| {
            let now = data.and_then(|data| data.get(*key));
            now != before.as_ref()
        };
        self.saved.iter().find(differs).map(|(key, _)| key)
    }
}
