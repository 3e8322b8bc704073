//! Finds the part of a reading of the ConfigMap that can be used: keys that parse, and sections that keep to their schemas.
//!
//! A key that cannot be used is reported once. Must never apply anything.

use std::collections::BTreeMap;

use super::Config;
use crate::failure::{Class, Failure};
use crate::operator::commits::Commits;
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::operator::provenance::means_the_same;
use crate::values::section::ConfigDocument;
use crate::values::vetted::Unvetted;
use crate::values::{Rejected, Store};

/// The usable and the broken keys of a reading.
#[derive(Debug)]
pub(super) struct Sifted {
    /// The texts of usable keys, and the last good texts of broken keys.
    good: BTreeMap<String, String>,
    /// The errors of the broken keys.
    problems: BTreeMap<String, String>,
}

impl Config {
    /// Checks the contents of a ConfigMap, except sections that need a job.
    pub(super) fn sift(
        &self,
        values: &Store,
        commits: &Commits,
        data: &BTreeMap<String, String>,
    ) -> Result<Sifted, Unvetted> {
        let document = ConfigDocument::parse(data);
        let unfit = self.unfit(values, commits, data, &document)?;
        let problems: BTreeMap<_, _> = document
            .problems
            .into_iter()
            .map(|problem| (problem.key, problem.message))
            .chain(unfit)
            .collect();
        let last = &self.good;
        let mut good = BTreeMap::new();
        for (key, text) in data {
            let text = match last.get(key) {
                _ if !problems.contains_key(key) => text,
                Some(kept) if self.still_fits(values, commits, key, kept)? => kept,
                Some(_) | None => continue,
            };
            let kept = last.get(key).filter(|kept| means_the_same(key, kept, text));
            good.insert(key.clone(), kept.unwrap_or(text).clone());
        }
        Ok(Sifted { good, problems })
    }

    /// Reports the keys that cannot be used, and returns the texts that can.
    pub(super) fn note(&mut self, cx: &mut Cx, Sifted { good, problems }: Sifted) -> BTreeMap<String, String> {
        for (key, message) in &problems {
            if self.problems.get(key) != Some(message) {
                cx.tell(Notice::ConfigRejected {
                    key: key.clone(),
                    message: message.clone(),
                });
            }
        }
        self.problems = problems;
        self.vetted.clone_from(&good);
        good
    }

    /// Returns the applied texts that can still be used. The known problems stay as they were at the last ConfigMap.
    pub(super) fn keep_fitting(&mut self, Sifted { good, problems: _ }: Sifted) -> BTreeMap<String, String> {
        self.vetted.clone_from(&good);
        good
    }

    /// The sections that cannot be used, with their errors.
    fn unfit(
        &self,
        values: &Store,
        commits: &Commits,
        data: &BTreeMap<String, String>,
        document: &ConfigDocument,
    ) -> Result<Vec<(String, String)>, Unvetted> {
        let is_known = |key: &str| {
            let is_known = |text: &String| self.vetted.get(key) == Some(text) || commits.is_saving(key, text);
            data.get(key).is_some_and(is_known)
        };
        let unfit = values.unfit(document, is_known, &self.readings.vetted)?;
        let told = |rejected: Rejected| {
            let report = Failure::of(Class::Invalid, &rejected).report;
            (rejected.owner.values_key(), report)
        };
        Ok(unfit.into_iter().map(told).collect())
    }

    /// Whether a text that was good in an earlier life keeps to the schemas of this life, which may be newer.
    fn still_fits(&self, values: &Store, commits: &Commits, key: &str, text: &str) -> Result<bool, Unvetted> {
        let data = BTreeMap::from([(key.to_owned(), text.to_owned())]);
        let document = ConfigDocument::parse(&data);
        Ok(document.problems.is_empty() && self.unfit(values, commits, &data, &document)?.is_empty())
    }
}
