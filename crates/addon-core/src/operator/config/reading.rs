//! The readings of the ConfigMap that have not been applied yet: all readings that come before the start is over, and
//! later readings whose sections are still being checked against schemas.
//!
//! A reading is applied as a whole. After the start a newer reading replaces a waiting one. Must never let an older
//! reading replace a newer one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use names::ModuleName;

use super::Config;
use crate::failure::Failure;
use crate::operator::commits::Commits;
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::operator::event::ConfigRead;
use crate::values::Store;
use crate::values::vetted::{Unvetted, Vetted};

/// The number of readings that are kept until the first of them is applied. The number is limited, because a standby
/// may wait for weeks. Readings may be dropped, because the leader saves the last good texts.
const MOST_KEPT: usize = 16;

/// The number of results kept for texts that break their schemas. A bad text stays in the ConfigMap until a person mends
/// it, and is read again with every edit of other keys. A text of an earlier life may be bad, too.
const REFUSALS_KEPT: usize = 2;

/// The readings that have not been applied yet.
#[derive(Debug, Clone, Default)]
pub(in crate::operator) struct Readings {
    kept: VecDeque<ConfigRead>,
    /// The known results of schema checks for the sections of these readings.
    pub(super) vetted: Vetted,
    /// The sections that a job is checking.
    vetting: Option<Unvetted>,
    /// Whether the texts that were read last have to be checked again, because schemas have changed.
    again: bool,
}

impl Readings {
    /// Whether nothing has to be checked or applied.
    pub(in crate::operator) fn is_empty(&self) -> bool {
        self.kept.is_empty() && !self.again
    }

    /// Puts a reading at the end of the queue of readings.
    pub(in crate::operator) fn keep(&mut self, read: ConfigRead) {
        self.kept.push_back(read);
        if self.kept.len() > MOST_KEPT {
            self.kept.pop_front();
        }
    }

    /// Whether the last waiting reading is at least as new as `read`.
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
        self.again = false;
        self.vetted.keep_refusals(REFUSALS_KEPT);
    }

    /// Drops all readings, because none of them is true any more.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
    }

    /// The reason for which readings wait; a text for people.
    pub(in crate::operator) fn waiting(&self) -> Option<String> {
        let owners = self.vetting.as_ref().filter(|_| !self.is_empty())?.owners();
        let keys: Vec<String> = owners.iter().map(|owner| format!("'{}'", owner.values_key())).collect();
        Some(format!("hold {} of the ConfigMap against the schema", keys.join(", ")))
    }
}

/// The result of applying a reading.
#[derive(Debug)]
#[must_use]
pub(in crate::operator) struct Counted {
    /// The texts to apply; `None` if the applied texts stay.
    pub(in crate::operator) good: Option<BTreeMap<String, String>>,
    /// Whether people, not a program, wrote the ConfigMap that was read.
    pub(in crate::operator) of_people: bool,
}

impl Config {
    /// Whether readings wait.
    pub(in crate::operator) fn has_readings(&self) -> bool {
        !self.readings.is_empty()
    }

    /// The reason for which readings wait; a text for people.
    pub(in crate::operator) fn readings_wait_for(&self) -> Option<String> {
        self.readings.waiting()
    }

    /// Puts a reading of the ConfigMap at the end of the queue of readings.
    pub(in crate::operator) fn keep_reading(&mut self, read: ConfigRead) {
        self.readings.keep(read);
    }

    /// Keeps a reading in the place of all waiting readings. False if a waiting reading is at least as new.
    pub(in crate::operator) fn keep_latest(&mut self, read: ConfigRead) -> bool {
        if self.readings.knows(&read) {
            return false;
        }
        self.readings.kept.clear();
        self.readings.keep(read);
        true
    }

    pub(in crate::operator) fn drop_readings(&mut self) {
        self.readings.clear();
    }

    /// Returns the first reading if its sections are all checked, else the sections that have still to be checked; `None`
    /// if no reading waits.
    pub(in crate::operator) fn next_reading(
        &mut self,
        cx: &mut Cx,
        values: &Store,
        commits: &Commits,
        omissible: &BTreeSet<ModuleName>,
    ) -> Option<Result<Counted, Unvetted>> {
        let Some(read) = self.readings.kept.front().cloned() else {
            return self.readings.again.then(|| self.count_again(cx, values, commits));
        };
        let counted = self.count(cx, values, commits, omissible, read);
        if counted.is_ok() {
            self.readings.kept.pop_front();
        }
        Some(counted)
    }

    /// Whether a job is checking sections against their schemas.
    pub(in crate::operator) fn is_vetting(&self) -> bool {
        self.readings.vetting.is_some()
    }

    /// Notes that a job has started to check these sections against their schemas.
    pub(in crate::operator) fn vetting_begins(&mut self, unvetted: Unvetted) {
        self.readings.vetting = Some(unvetted);
    }

    /// Takes the results of the job that checked the sections. Sections whose check failed are not used. False if no
    /// job was expected, or if we are stopping and the results are of no use.
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

    /// Makes the operator check and apply the texts that were read last once more, because the module has other
    /// schemas.
    pub(in crate::operator) fn files_changed(&mut self, module: &ModuleName) {
        self.vetted.remove(&module.values_key());
        self.readings.again = true;
    }

    /// Applies the sound keys of the texts that were read last.
    fn count_again(&mut self, cx: &mut Cx, values: &Store, commits: &Commits) -> Result<Counted, Unvetted> {
        let is_missing = self.is_missing();
        let data = if is_missing {
            self.good.clone()
        } else {
            self.with_unsaid(&self.raw, self.made.as_ref())
        };
        let sifted = self.sift(values, commits, &data)?;
        self.readings.again = false;
        let good = if is_missing {
            self.keep_fitting(sifted)
        } else {
            self.note(cx, sifted)
        };
        Ok(Counted {
            good: Some(good),
            of_people: false,
        })
    }

    /// Applies the sound keys of a reading.
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
                // The schemas of this life may differ from those of the life in which the text was found good.
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
