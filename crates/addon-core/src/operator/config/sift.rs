//! What of a reading of the ConfigMap can be used: keys that are sound, and sections that keep to their schemas.
//!
//! What cannot be used is told once. Must never put anything in force.

use std::collections::BTreeMap;

use super::means_the_same;
use crate::failure::{Class, Failure};
use crate::operator::Operator;
use crate::operator::effect::Notice;
use crate::values::Rejected;
use crate::values::section::ConfigDocument;

impl Operator {
    /// The keys that can be used, and for those that cannot their last good texts.
    pub(super) fn sift(&mut self, data: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let document = ConfigDocument::parse(data);
        let unfit = self.unfit(data, &document);
        let problems: BTreeMap<_, _> = document
            .problems
            .into_iter()
            .map(|problem| (problem.key, problem.message))
            .chain(unfit)
            .collect();
        for (key, message) in &problems {
            if self.config.problems.get(key) != Some(message) {
                self.tell(Notice::ConfigRejected {
                    key: key.clone(),
                    message: message.clone(),
                });
            }
        }
        let last = &self.config.good;
        let sound = data.iter().filter_map(|(key, text)| {
            let text = if problems.contains_key(key) {
                last.get(key).filter(|kept| self.still_fits(key, kept))?
            } else {
                text
            };
            let kept = last
                .get(key)
                .filter(|kept| means_the_same(key, kept, text))
                .unwrap_or(text);
            Some((key.clone(), kept.clone()))
        });
        let good: BTreeMap<String, String> = sound.collect();
        self.config.problems = problems;
        self.config.vetted.clone_from(&good);
        good
    }

    /// The sections that cannot be used, with what is wrong.
    fn unfit(&self, data: &BTreeMap<String, String>, document: &ConfigDocument) -> Vec<(String, String)> {
        let is_known = |key: &str| {
            let vetted = self.config.vetted.get(key);
            vetted.is_some() && vetted == data.get(key)
        };
        let unfit = self.values.unfit(document, is_known).into_iter();
        let told = |rejected: Rejected| {
            let report = Failure::of(Class::Invalid, &rejected).report;
            (rejected.owner.values_key(), report)
        };
        unfit.map(told).collect()
    }

    /// A text that was good in an earlier life may break a schema that is newer.
    fn still_fits(&self, key: &str, text: &str) -> bool {
        let data = BTreeMap::from([(key.to_owned(), text.to_owned())]);
        let document = ConfigDocument::parse(&data);
        document.problems.is_empty() && self.unfit(&data, &document).is_empty()
    }
}
