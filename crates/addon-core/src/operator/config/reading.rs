//! Readings of the ConfigMap that have not counted yet: all that come before the start is through, and later one whose
//! sections are being held against schemas that take their time.
//!
//! A reading counts as a whole. One that comes while another waits takes its place, for it says what is true now. Must
//! never let an older reading take the place of a newer one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Config;
use crate::failure::Failure;
use crate::name::ModuleName;
use crate::operator::commits::Commits;
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::operator::event::ConfigRead;
use crate::values::Store;
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

/// What came of a reading that counts.
#[derive(Debug)]
#[must_use]
pub(in crate::operator) struct Counted {
    /// The texts that are to come into force; nothing if those in force stay.
    pub(in crate::operator) good: Option<BTreeMap<String, String>>,
    /// It is the word of people.
    pub(in crate::operator) of_people: bool,
}

impl Config {
    /// Readings wait to count.
    pub(in crate::operator) fn has_readings(&self) -> bool {
        !self.readings.is_empty()
    }

    /// What holds up readings, in words.
    pub(in crate::operator) fn readings_wait_for(&self) -> Option<String> {
        self.readings.waiting()
    }

    /// Keeps a reading behind the others.
    pub(in crate::operator) fn keep_reading(&mut self, read: ConfigRead) {
        self.readings.keep(read);
    }

    /// Keeps a reading, which says what is true now, in the place of those that wait. False if one that is as new waits already.
    pub(in crate::operator) fn keep_latest(&mut self, read: ConfigRead) -> bool {
        if self.readings.knows(&read) {
            return false;
        }
        self.readings.kept.clear();
        self.readings.keep(read);
        true
    }

    /// None of the readings counts any more.
    pub(in crate::operator) fn drop_readings(&mut self) {
        self.readings.clear();
    }

    /// Lets the first reading count if all is known about its sections, else says what is to be found out. Nothing if none waits.
    pub(in crate::operator) fn next_reading(
        &mut self,
        cx: &mut Cx,
        values: &Store,
        commits: &Commits,
        omissible: &BTreeSet<ModuleName>,
    ) -> Option<Result<Counted, Unvetted>> {
        let read = self.readings.kept.front().cloned()?;
        let counted = self.count(cx, values, commits, omissible, read);
        if counted.is_ok() {
            self.readings.kept.pop_front();
        }
        Some(counted)
    }

    /// A job holds sections against their schemas.
    pub(in crate::operator) fn is_vetting(&self) -> bool {
        self.readings.vetting.is_some()
    }

    /// A job holds these sections against their schemas.
    pub(in crate::operator) fn vetting_begins(&mut self, unvetted: Unvetted) {
        self.readings.vetting = Some(unvetted);
    }

    /// Sections were held against their schemas. What nobody can look at is not used. False if nobody has asked, or if the answer
    /// is of no use any more because we are stopping.
    pub(in crate::operator) fn reading_vetted(&mut self, result: Result<Vetted, Failure>, is_stopping: bool) -> bool {
        let Some(unvetted) = self.readings.vetting.take() else {
            return false;
        };
        let vetted = match result {
            Ok(vetted) => vetted,
            Err(_) if is_stopping => {
                self.readings.clear();
                return false;
            }
            Err(failure) => unvetted.refuse(&failure.report),
        };
        self.readings.vetted.extend(vetted);
        true
    }

    /// Takes in what is sound in a reading.
    fn count(
        &mut self,
        cx: &mut Cx,
        values: &Store,
        commits: &Commits,
        omissible: &BTreeSet<ModuleName>,
        read: ConfigRead,
    ) -> Result<Counted, Unvetted> {
        match read {
            ConfigRead::Missing => {
                let first = self.version == 0;
                // The schemas may be others than in the life that found it good.
                let kept = if first {
                    Some(self.sift(values, commits, &self.good)?)
                } else {
                    None
                };
                if first || self.sight.is_present() {
                    cx.tell(Notice::ConfigMissing);
                }
                self.is_gone();
                self.raw.clear();
                Ok(Counted {
                    good: kept.map(|sifted| self.note(cx, sifted)),
                    of_people: false,
                })
            }
            ConfigRead::Present { version, .. } if self.is_stale(version) => Ok(Counted {
                good: None,
                of_people: false,
            }),
            ConfigRead::Present {
                version,
                mut data,
                provenance,
            } => {
                let read = data.clone();
                let later = self.written.iter().filter(|(_, (written, _))| *written > version);
                data.extend(later.map(|(key, (_, text))| (key.clone(), text.clone())));
                let made = self.made(&provenance, &read);
                let data_in_force = self.with_unsaid(&data, made.as_ref());
                let sifted = self.sift(values, commits, &data_in_force)?;
                self.version = version;
                self.written.retain(|_, (written, _)| *written > version);
                self.note_confirmation(omissible, &provenance, &data_in_force);
                self.comes_from(provenance, made);
                self.raw = data;
                let good = self.note(cx, sifted);
                Ok(Counted {
                    good: Some(good),
                    of_people: self.is_peoples_word(),
                })
            }
        }
    }
}
