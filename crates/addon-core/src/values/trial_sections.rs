//! Sections of the ConfigMap that hooks saved during a trial: their texts before the trial, and a check whether people
//! have edited the sections since.
//!
//! Must never revert an edit of a person.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The number of our own texts of a section whose digests are kept. If hooks write more often, the oldest are
/// forgotten.
const TEXTS: usize = 16;

/// All sections that were saved on trial, by key of the ConfigMap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrialSections(BTreeMap<String, Section>);

/// One section that was saved on trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Section {
    /// The text before our writes, as people last left it; `None` if the key was absent.
    before: Option<String>,
    /// The digests of the texts that we wrote since, the newest last. Each of these writes may have failed.
    written: Vec<Digest>,
}

/// The changes after a trial that was not passed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Return {
    /// The keys with their old texts; `None`: the key is deleted.
    pub put_back: BTreeMap<String, Option<String>>,
    /// The keys that stay: people have edited them, or none of our writes succeeded.
    pub left: BTreeSet<String>,
}

impl TrialSections {
    /// Whether no section was saved on trial.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys of the saved sections.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Notes a section before a hook's write: its key holds `base` now and will hold `text`.
    pub fn note(&mut self, key: &str, base: Option<&str>, text: &str) {
        let base_digest = base.map(digest);
        let section = self.0.entry(key.to_owned()).or_insert_with(|| Section {
            before: base.map(str::to_owned),
            written: Vec::new(),
        });
        let is_ours = base_digest.is_some_and(|base| section.written.contains(&base));
        if !is_ours && section.before.as_deref() != base {
            // People have edited the section meanwhile, so this is the text to put back.
            section.before = base.map(str::to_owned);
            section.written.clear();
        }
        let written = digest(text);
        section.written.retain(|known| *known != written);
        section.written.push(written);
        let surplus = section.written.len().saturating_sub(TEXTS);
        section.written.drain(..surplus);
    }

    /// Drops a section that has no room in the Secret.
    pub fn leave_out(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// The changes that put the sections back, given the current ConfigMap.
    pub fn give_back(&self, data: &BTreeMap<String, String>) -> Return {
        let mut all = Return::default();
        for (key, section) in &self.0 {
            let now = data.get(key);
            let is_ours = now.is_some_and(|text| section.written.contains(&digest(text)));
            if is_ours && now != section.before.as_ref() {
                all.put_back.insert(key.clone(), section.before.clone());
            } else {
                all.left.insert(key.clone());
            }
        }
        all
    }
}

fn digest(text: &str) -> Digest {
    Digest::of_bytes(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes one save after the other. Each is written as `key: base -> text`, with `-` for an absent key.
    fn noted(saves: &[(&str, &str, &str)]) -> TrialSections {
        let mut sections = TrialSections::default();
        for (key, base, text) in saves {
            sections.note(key, Some(*base).filter(|base| *base != "-"), text);
        }
        sections
    }

    fn returned(sections: &TrialSections, data: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let data = data.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        let Return { put_back, left } = sections.give_back(&data.collect());
        let put_back = put_back.into_iter();
        let put_back = put_back.map(|(key, text)| format!("{key}={}", text.as_deref().unwrap_or("-")));
        (put_back.collect(), left.into_iter().collect())
    }

    /// A name, keys with the texts before and after a save, the data of the ConfigMap then, the keys to put back, and the
    /// keys that stay.
    type Row = (
        &'static str,
        &'static [(&'static str, &'static str, &'static str)],
        &'static [(&'static str, &'static str)],
        &'static [&'static str],
        &'static [&'static str],
    );

    #[test]
    fn what_people_had_is_put_back_and_what_they_wrote_since_stays() {
        let rows: [Row; 9] = [
            ("saved once", &[("a", "1", "2")], &[("a", "2")], &["a=1"], &[]),
            ("made by a hook", &[("a", "-", "2")], &[("a", "2")], &["a=-"], &[]),
            (
                "saved twice",
                &[("a", "1", "2"), ("a", "2", "3")],
                &[("a", "3")],
                &["a=1"],
                &[],
            ),
            ("edited", &[("a", "1", "2")], &[("a", "x")], &[], &["a"]),
            ("removed by people", &[("a", "1", "2")], &[], &[], &["a"]),
            ("never written", &[("a", "1", "2")], &[("a", "1")], &[], &["a"]),
            (
                "edited between two saves",
                &[("a", "1", "2"), ("a", "x", "x+3")],
                &[("a", "x+3")],
                &["a=x"],
                &[],
            ),
            (
                "the answer to the first was lost, and it came late",
                &[("a", "1", "2"), ("a", "1", "3")],
                &[("a", "2")],
                &["a=1"],
                &[],
            ),
            (
                "each for itself",
                &[("a", "1", "2"), ("b", "1", "2")],
                &[("a", "2"), ("b", "x")],
                &["a=1"],
                &["b"],
            ),
        ];
        for (what, saves, data, put_back, left) in rows {
            let found = returned(&noted(saves), data);
            assert_eq!((found.0, found.1), (owned(put_back), owned(left)), "{what}");
        }
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn putting_back_twice_is_putting_back_once() {
        let sections = noted(&[("a", "1", "2"), ("b", "-", "2")]);
        let mut data: BTreeMap<String, String> = [("a", "2"), ("b", "2"), ("c", "3")]
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into();
        for (key, text) in sections.give_back(&data).put_back {
            match text {
                Some(text) => data.insert(key, text),
                None => data.remove(&key),
            };
        }
        assert_eq!(
            data,
            [("a", "1"), ("c", "3")]
                .map(|(key, text)| (key.to_owned(), text.to_owned()))
                .into()
        );
        assert_eq!(sections.give_back(&data).put_back, BTreeMap::new());
    }

    #[test]
    fn a_hook_that_writes_all_the_time_does_not_fill_the_note() {
        let texts: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let mut sections = TrialSections::default();
        for pair in texts.windows(2) {
            sections.note("a", Some(&pair[0]), &pair[1]);
        }
        assert_eq!(returned(&sections, &[("a", "99")]).0, ["a=0"]);
        assert!(serde_json::to_string(&sections).unwrap().len() < 1000);
        let read: TrialSections = serde_json::from_str(&serde_json::to_string(&sections).unwrap()).unwrap();
        assert_eq!(read, sections);
    }
}
