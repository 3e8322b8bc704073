//! What of a reading of the ConfigMap can be used: keys that are sound, and sections that keep to their schemas.
//!
//! What cannot be used is told once. Must never put anything in force.

use std::collections::BTreeMap;

use serde_json::Value;

use super::means_the_same;
use crate::failure::{Class, Failure};
use crate::name::Owner;
use crate::operator::Operator;
use crate::operator::effect::Notice;
use crate::values::section::{ConfigDocument, Entry};

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

    /// The sections that break their schemas, with what is wrong.
    fn unfit(&self, data: &BTreeMap<String, String>, document: &ConfigDocument) -> Vec<(String, String)> {
        let global = (Owner::Global, &document.global);
        let sections = document.sections.iter();
        let modules = sections.map(|(name, section)| (Owner::Module(name.clone()), &section.values));
        let of_owner = |(owner, entry): (Owner, &Entry<Value>)| {
            let key = owner.values_key();
            let vetted = self.config.vetted.get(&key);
            let is_in_force = vetted.is_some() && vetted == data.get(&key);
            let section = entry.good().filter(|_| !is_in_force)?;
            let rejected = self.values.vet_section(&owner, section).err()?;
            Some((key, Failure::of(Class::Invalid, &rejected).report))
        };
        std::iter::once(global).chain(modules).filter_map(of_owner).collect()
    }

    /// A text that was good in an earlier life may break a schema that is newer.
    fn still_fits(&self, key: &str, text: &str) -> bool {
        let data = BTreeMap::from([(key.to_owned(), text.to_owned())]);
        let document = ConfigDocument::parse(&data);
        document.problems.is_empty() && self.unfit(&data, &document).is_empty()
    }
}
