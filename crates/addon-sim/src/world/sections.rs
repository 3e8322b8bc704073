//! Writes into sections of the `ConfigMap`, and the return of those that were made on trial.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::failure::{Class, Failure};
use addon_core::operator::event::{ConfigRead, CrdObstacle, Saved, Settled};
use addon_core::operator::policy::OnTrial;
use channel_core::trial::record::Ruling;
use names::ModuleName;

use super::World;

/// One write of a section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write<'a> {
    pub(super) key: &'a str,
    pub(super) text: &'a str,
    pub(super) base: Option<&'a String>,
    pub(super) create: bool,
    pub(super) on_trial: OnTrial,
}

impl World {
    /// Whether a life that begins now is on trial.
    pub fn on_trial(&mut self) -> OnTrial {
        let mut dice = self.dice("on-trial");
        self.trial.of_new_life(&mut dice)
    }

    /// Deletes the state Secret with all its notes.
    pub fn lose_state(&mut self) {
        self.secret = None;
        self.trial.forget();
    }

    /// Notes the sections that people have changed: they are not put back.
    pub(super) fn note_edits(&mut self, before: &BTreeMap<String, String>) {
        let none = BTreeMap::new();
        let after = self.config.data.as_ref().unwrap_or(&none);
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
        let changed: Vec<String> = changed.cloned().collect();
        for key in changed {
            self.trial.edited(&key);
        }
    }

    pub(super) fn save_config(&mut self, write: Write<'_>) -> Result<Saved, Failure> {
        self.fault("save-config", Class::Refused)?;
        self.note(write);
        let created = self.config.read() == ConfigRead::Missing;
        Ok(match self.write(write) {
            Some(version) => Saved::Written { version, created },
            None => Saved::Conflict(self.config.read()),
        })
    }

    /// Notes the old text of a section on trial, before it is overwritten.
    pub(super) fn note(&mut self, write: Write<'_>) {
        if write.on_trial == OnTrial::Yes {
            let secret = self.secret.get_or_insert_default();
            let base = write.base.map(String::as_str);
            secret.trial_sections.note(write.key, base, write.text);
        }
    }

    pub(super) fn write(&mut self, write: Write<'_>) -> Option<u64> {
        let Write {
            key,
            text,
            base,
            create,
            on_trial,
        } = write;
        let version = self.config.write(key, text, base, create)?;
        self.trial.wrote(key, base, on_trial);
        Some(version)
    }

    /// Puts back the sections that were saved on trial, unless it was passed, and forgets them.
    pub(super) fn settle_sections(&mut self, ruling: Ruling) -> Result<Settled, Failure> {
        self.fault("settle-sections", Class::Refused)?;
        let sections = self.secret.as_ref().map(|secret| secret.trial_sections.clone());
        let mut settled = Settled::default();
        if ruling != Ruling::Passed {
            let back = sections
                .unwrap_or_default()
                .give_back(&self.config.data.clone().unwrap_or_default());
            settled.put_back = back.put_back.keys().cloned().collect();
            settled.edited = back.left.into_iter().collect();
            if self.config.put_back(back.put_back) {
                settled.read = Some(self.config.read());
            }
        }
        // If the job is cut off here, the next attempt repeats the whole job.
        self.fault("forget-sections", Class::TimedOut)?;
        if let Some(secret) = &mut self.secret {
            secret.trial_sections = addon_core::values::trial_sections::TrialSections::default();
        }
        if ruling == Ruling::Passed {
            self.trial.forget();
        }
        Ok(settled)
    }

    /// Installs CRDs. Each module fails or succeeds by itself. On trial an existing CRD in another form stays.
    pub(super) fn ensure_crds(
        &mut self,
        modules: &[ModuleName],
        on_trial: OnTrial,
    ) -> BTreeMap<ModuleName, CrdObstacle> {
        let mut obstacles = BTreeMap::new();
        for name in modules {
            if let Err(failure) = self.fault(&format!("crds/{name}"), Class::Refused) {
                obstacles.insert(name.clone(), CrdObstacle::Failed(failure));
            } else if on_trial == OnTrial::Yes && self.trial.other_crds.contains(name.as_str()) {
                obstacles.insert(name.clone(), CrdObstacle::Held(vec![format!("CRD of {name}")]));
            } else {
                self.trial.other_crds.remove(name.as_str());
            }
        }
        obstacles
    }
}
