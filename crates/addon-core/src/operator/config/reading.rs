//! Readings of the ConfigMap that have not counted yet: all that come before the start is through, and later one whose
//! sections are being held against schemas that take their time.
//!
//! A reading counts as a whole. One that comes while another waits takes its place, for it says what is true now. Must
//! never let an older reading take the place of a newer one.

use std::collections::VecDeque;

use super::sift::Sifted;
use crate::failure::Failure;
use crate::operator::Operator;
use crate::operator::effect::{Job, Notice};
use crate::operator::event::ConfigRead;
use crate::operator::ticket::VetFor;
use crate::values::vetted::{Unvetted, Vetted};

/// How many are kept until the first of them counts. A standby may wait for weeks; the leader notes what was last good.
const MOST_KEPT: usize = 16;

/// What is bad stands in the ConfigMap until somebody mends it, and is read with every edit of anything else; beside it a
/// text of an earlier life may have been found bad.
const REFUSALS_KEPT: usize = 2;

/// What was read and does not count yet.
#[derive(Debug, Default)]
pub(in crate::operator) struct Readings {
    kept: VecDeque<ConfigRead>,
    /// What is known of the sections of those.
    pub(super) vetted: Vetted,
    /// What is being found out about them.
    vetting: Option<Unvetted>,
}

impl Readings {
    pub(in crate::operator) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Keeps a reading behind the others.
    pub(in crate::operator) fn keep(&mut self, read: ConfigRead) {
        self.kept.push_back(read);
        if self.kept.len() > MOST_KEPT {
            self.kept.pop_front();
        }
    }

    /// One that is as new waits already.
    fn knows(&self, read: &ConfigRead) -> bool {
        match (self.kept.back(), read) {
            (Some(ConfigRead::Present { version: known, .. }), ConfigRead::Present { version, .. }) => {
                *version != 0 && version <= known
            }
            _ => false,
        }
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.vetted.keep_refusals(REFUSALS_KEPT);
    }

    /// None of them is true any more.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
    }

    /// What holds them up, in words.
    pub(in crate::operator) fn waiting(&self) -> Option<String> {
        let owners = self.vetting.as_ref().filter(|_| !self.is_empty())?.owners();
        let keys: Vec<String> = owners.iter().map(|owner| format!("'{}'", owner.values_key())).collect();
        Some(format!("hold {} of the ConfigMap against the schema", keys.join(", ")))
    }
}

impl Operator {
    /// The ConfigMap was read. It counts at once, or as soon as all of it has been held against schemas.
    pub(in crate::operator) fn config_changed(&mut self, read: ConfigRead) {
        if read != ConfigRead::Missing {
            self.commits.note_sight();
        }
        if self.startup.begun {
            if self.config.readings.knows(&read) {
                return;
            }
            self.config.readings.kept.clear();
        }
        self.config.readings.keep(read);
        self.take_readings();
    }

    /// Lets readings count in their order, as far as it is known what of them can be used.
    pub(in crate::operator) fn take_readings(&mut self) {
        while let Some(read) = self.config.readings.kept.front().cloned() {
            if let Err(unvetted) = self.take_reading(read) {
                return self.vet_reading(unvetted);
            }
            self.config.readings.kept.pop_front();
        }
        self.config.readings.clear();
    }

    /// Applies what is sound in a reading and sets off what the change concerns.
    fn take_reading(&mut self, read: ConfigRead) -> Result<(), Unvetted> {
        match read {
            ConfigRead::Missing => {
                let first = self.config.version == 0;
                // The schemas may be others than in the life that found it good.
                let kept = if first {
                    Some(self.sift(&self.config.good)?)
                } else {
                    None
                };
                if first || self.config.present {
                    self.cx.tell(Notice::ConfigMissing);
                }
                self.config.present = false;
                self.config.is_gone();
                self.config.raw.clear();
                if let Some(sifted) = kept {
                    self.put_sifted_in_force(sifted);
                }
            }
            ConfigRead::Present {
                version,
                mut data,
                provenance,
            } => {
                if self.config.is_stale(version) {
                    return Ok(());
                }
                let read = data.clone();
                let later = self
                    .config
                    .written
                    .iter()
                    .filter(|(_, (written, _))| *written > version);
                data.extend(later.map(|(key, (_, text))| (key.clone(), text.clone())));
                let made = self.config.made(&provenance, &read);
                let data_in_force = self.config.with_unsaid(&data, made.as_ref());
                let sifted = self.sift(&data_in_force)?;
                self.config.version = version;
                self.config.written.retain(|_, (written, _)| *written > version);
                self.note_confirmation(&provenance, &data_in_force);
                self.config.comes_from(provenance, made);
                self.config.present = true;
                self.config.raw = data;
                self.put_sifted_in_force(sifted);
                if self.config.is_peoples_word() {
                    self.people_spoke();
                }
            }
        }
        Ok(())
    }

    fn put_sifted_in_force(&mut self, sifted: Sifted) {
        let good = self.note(sifted);
        self.put_in_force(good);
    }

    /// Finds out what the first reading lacks, unless something is being found out already: that ends first.
    fn vet_reading(&mut self, unvetted: Unvetted) {
        if self.stopping.is_some() {
            self.config.readings.clear();
        } else if self.config.readings.vetting.is_none() {
            self.config.readings.vetting = Some(unvetted.clone());
            self.jobs
                .begin(&mut self.cx, VetFor::Reading, |ticket| Job::Vet(unvetted, ticket));
        }
    }

    /// Sections of the ConfigMap were held against their schemas. What nobody can look at is not used.
    pub(in crate::operator) fn reading_vetted(&mut self, result: Result<Vetted, Failure>) {
        let Some(unvetted) = self.config.readings.vetting.take() else {
            return;
        };
        let vetted = match result {
            Ok(vetted) => vetted,
            Err(_) if self.stopping.is_some() => return self.config.readings.clear(),
            Err(failure) => unvetted.refuse(&failure.report),
        };
        self.config.readings.vetted.extend(vetted);
        self.take_readings();
        self.advance_commits();
    }
}
