//! Upgrades that are taken back: what helm and the notes on revisions do for it, and whether one is done again.

use std::collections::BTreeSet;

use addon_core::failure::{Class, Failure};
use addon_core::release::returned::Returned;
use addon_core::release::{Facts, ReleaseStep, Status};

use super::{Release, Rendering};
use crate::world::World;

/// The last revision whose objects did their work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Good {
    pub(super) revision: u32,
    inputs: String,
    checksum: String,
    objects: BTreeSet<String>,
}

impl Release {
    /// Remembers the newest revision if its objects do their work; otherwise the one before stays remembered.
    pub(super) fn remember_good(&mut self) {
        let Some((_, checksum)) = self.marks.clone().filter(|_| self.is_healthy) else {
            return;
        };
        self.good = Some(Good {
            revision: self.revision,
            inputs: self.inputs.clone(),
            checksum,
            objects: self.objects.clone(),
        });
    }

    /// Whether its last upgrade was taken back and stays so.
    pub fn stays_back(&self) -> bool {
        let note = self.returned.as_ref();
        note.is_some_and(|note| note.kept.is_none() && !note.again) && self.status == Status::Deployed
    }
}

impl World {
    /// Does the steps up to the last one. A return is one of them.
    pub(super) fn approach_and_return(
        &mut self,
        facts: &mut Facts,
        rendering: &Rendering,
    ) -> Result<ReleaseStep, Failure> {
        loop {
            match self.approach(facts, rendering)? {
                ReleaseStep::Return { note, to } => {
                    self.take_back(facts, note, to)?;
                    self.observe(facts);
                }
                step => return Ok(step),
            }
        }
    }

    /// Writes the note, if it is not there yet. The record of the good revision may be lost.
    pub(super) fn note_return(&mut self, facts: &Facts, mut note: Returned) -> Returned {
        let is_lost = self.fails(&format!("lost/{}", facts.release));
        let Some(release) = self.releases.get_mut(&facts.release) else {
            return note;
        };
        if release.returned.as_ref() != Some(&note) {
            note.kept = is_lost.then(|| "it is no longer recorded".to_owned());
            release.returned = Some(note.clone());
        }
        if note.kept.is_none() {
            self.ledger.spoilt.insert(facts.release.clone(), note.inputs.clone());
        }
        note
    }

    fn take_back(&mut self, facts: &Facts, note: Returned, to: u32) -> Result<(), Failure> {
        let module = facts.release.as_str();
        let note = self.note_return(facts, note);
        if note.kept.is_some() {
            return Ok(());
        }
        let (fails, now) = (self.fails(&format!("return/{module}")), self.seconds());
        let Some(release) = self.releases.get_mut(module) else {
            return Err(Failure::new(Class::Unavailable, "the release is gone"));
        };
        let Some(good) = release.good.clone() else {
            return Err(Failure::defect("a return without a revision to return to".to_owned()));
        };
        release.begin(if fails { Status::Failed } else { Status::Deployed }, now);
        if fails {
            return Err(Failure::new(Class::Unavailable, "helm rollback failed"));
        }
        release.marks = Some((note.inputs, good.checksum.clone()));
        release.inputs.clone_from(&good.inputs);
        release.objects.clone_from(&good.objects);
        release.missing.clear();
        release.asked = Some(facts.asked.clone());
        let objects = good.objects.clone();
        release.good = Some(Good { revision: to, ..good });
        self.consists_of(module, &objects);
        Ok(())
    }

    /// Lets an upgrade be tried again that was taken back.
    pub fn try_again(&mut self, name: &str) {
        let release = self.releases.get_mut(name);
        if let Some(note) = release.and_then(|release| release.returned.as_mut()) {
            note.again = true;
            self.ledger.spoilt.remove(name);
        }
    }

    /// Forgets the inputs that were taken back, if they have changed.
    pub(super) fn note_inputs(&mut self, facts: &Facts) {
        let spoilt = self.ledger.spoilt.get(&facts.release);
        if spoilt.is_some_and(|inputs| *inputs != facts.inputs) {
            self.ledger.spoilt.remove(&facts.release);
        }
    }

    /// Notes an upgrade with inputs that were taken back.
    pub(super) fn note_retry(&mut self, facts: &Facts) {
        if self.ledger.spoilt.get(&facts.release) == Some(&facts.inputs) {
            self.ledger.retried.push(facts.release.clone());
        }
    }

    /// Notes whether the objects of a revision do their work.
    pub fn note_health(&mut self, name: &str, revision: u32, is_healthy: bool) {
        let release = self.releases.get_mut(name);
        if let Some(release) = release.filter(|release| release.revision == revision) {
            release.is_healthy = is_healthy;
        }
    }
}
