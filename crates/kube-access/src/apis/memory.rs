//! The memory of served kinds over several answers: an incomplete answer must not count as a shorter list.
//!
//! An aggregated API whose server is down is marked as stale, and an API server that has just started may leave out
//! what it does not know yet. Until a complete answer comes, the last list is used.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Kind;

/// How long the last list replaces a missing answer. After that the kinds count as unknown.
const PATIENCE: Duration = Duration::from_mins(5);
/// A group version counts as gone after this time in which it was neither listed nor found at its own path.
const GONE_AFTER: Duration = Duration::from_secs(15);

/// The kinds of a group version in one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// The API resources by kind.
    pub(super) kinds: BTreeMap<String, Kind>,
    /// Whether the aggregated API server did not answer the API server.
    pub(super) stale: bool,
}

#[derive(Debug)]
struct Remembered {
    listed: Listed,
    /// The time since which the list was not confirmed.
    doubted: Option<Instant>,
    /// The time since which the group version's own path answers 404.
    missed: Option<Instant>,
}

/// All group versions that were ever listed and are not known to be gone.
#[derive(Debug, Default)]
pub(super) struct Memory(BTreeMap<String, Remembered>);

impl Memory {
    /// The known group versions that an answer does not list.
    pub(super) fn left_out(&self, answer: &BTreeMap<String, Listed>) -> Vec<String> {
        let known = self.0.keys();
        known
            .filter(|version| !answer.contains_key(*version))
            .cloned()
            .collect()
    }

    /// Takes over an answer. `not_found` has the unlisted group versions whose own paths answer 404.
    pub(super) fn take(&mut self, answer: BTreeMap<String, Listed>, not_found: &BTreeSet<String>, now: Instant) {
        for version in self.left_out(&answer) {
            let Some(known) = self.0.get_mut(&version) else {
                continue;
            };
            if !not_found.contains(&version) {
                known.missed = None;
                known.doubted.get_or_insert(now);
                continue;
            }
            let since = *known.missed.get_or_insert(now);
            if now.duration_since(since) >= GONE_AFTER {
                self.0.remove(&version);
            }
        }
        for (version, listed) in answer {
            if !listed.stale {
                let (doubted, missed) = (None, None);
                self.0.insert(
                    version,
                    Remembered {
                        listed,
                        doubted,
                        missed,
                    },
                );
                continue;
            }
            let known = self.0.entry(version).or_insert_with(|| Remembered {
                listed,
                doubted: None,
                missed: None,
            });
            known.missed = None;
            known.doubted.get_or_insert(now);
        }
    }

    /// The served kinds, as far as known.
    pub(super) fn served(&self) -> impl Iterator<Item = (&String, &BTreeMap<String, Kind>)> {
        self.0.iter().map(|(version, known)| (version, &known.listed.kinds))
    }

    /// The group versions whose last known list is used, because the present answer is incomplete.
    pub(super) fn uncertain(&self) -> Vec<String> {
        let uncertain = self
            .0
            .iter()
            .filter(|(_, known)| known.doubted.is_some() || known.missed.is_some());
        uncertain.map(|(version, _)| version.clone()).collect()
    }

    /// The group versions whose own paths answer 404, and that are not known to be gone yet.
    pub(super) fn vanishing(&self) -> Vec<String> {
        let vanishing = self.0.iter().filter(|(_, known)| known.missed.is_some());
        vanishing.map(|(version, _)| version.clone()).collect()
    }

    /// The group versions whose kinds count as unknown, because the answers have been incomplete for too long.
    pub(super) fn doubtful(&self, now: Instant) -> Vec<String> {
        let is_doubtful = |known: &Remembered| {
            let never = known.listed.stale && known.listed.kinds.is_empty();
            known
                .doubted
                .is_some_and(|since| never || now.duration_since(since) >= PATIENCE)
        };
        let doubtful = self.0.iter().filter(|(_, known)| is_doubtful(known));
        doubtful.map(|(version, _)| version.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ApiResource, GroupVersionKind};

    use super::*;

    fn listed(kinds: &[&str], stale: bool) -> Listed {
        let kind = |kind: &&str| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", kind));
            (
                (*kind).to_owned(),
                Kind {
                    resource,
                    namespaced: true,
                },
            )
        };
        Listed {
            kinds: kinds.iter().map(kind).collect(),
            stale,
        }
    }

    fn answer(versions: &[(&str, Listed)]) -> BTreeMap<String, Listed> {
        versions
            .iter()
            .map(|(name, listed)| ((*name).to_owned(), listed.clone()))
            .collect()
    }

    fn served(memory: &Memory) -> Vec<String> {
        let names = |(version, kinds): (&String, &BTreeMap<String, Kind>)| {
            kinds.keys().map(|kind| format!("{version}/{kind}")).collect::<Vec<_>>()
        };
        memory.served().flat_map(names).collect()
    }

    #[test]
    fn the_last_list_stands_for_what_is_stale_until_nobody_knows() {
        let (mut memory, start) = (Memory::default(), Instant::now());
        let none = BTreeSet::new();
        memory.take(
            answer(&[("a/v1", listed(&["A"], false)), ("b/v1", listed(&["B"], false))]),
            &none,
            start,
        );
        let stale = || answer(&[("a/v1", listed(&["A"], false)), ("b/v1", listed(&[], true))]);
        memory.take(stale(), &none, start);
        assert_eq!(served(&memory), ["a/v1/A", "b/v1/B"]);
        assert_eq!(
            (memory.doubtful(start), memory.uncertain()),
            (Vec::new(), vec!["b/v1".to_owned()])
        );
        let later = start + PATIENCE;
        memory.take(stale(), &none, later);
        assert_eq!(served(&memory), ["a/v1/A", "b/v1/B"]);
        assert_eq!(memory.doubtful(later), ["b/v1"]);
        memory.take(
            answer(&[("a/v1", listed(&["A"], false)), ("b/v1", listed(&["C"], false))]),
            &none,
            later,
        );
        assert_eq!(served(&memory), ["a/v1/A", "b/v1/C"]);
        assert_eq!(memory.doubtful(later), [""; 0]);
    }

    #[test]
    fn of_what_was_stale_from_the_beginning_nobody_knows_more_than_was_listed() {
        let (mut memory, start) = (Memory::default(), Instant::now());
        memory.take(
            answer(&[("a/v1", listed(&["A"], true)), ("b/v1", listed(&[], true))]),
            &BTreeSet::new(),
            start,
        );
        assert_eq!(served(&memory), ["a/v1/A"]);
        assert_eq!(memory.doubtful(start), ["b/v1"]);
    }

    #[test]
    fn what_is_left_out_is_gone_only_if_it_is_not_found_either_and_that_twice() {
        let (mut memory, start) = (Memory::default(), Instant::now());
        let both = || answer(&[("a/v1", listed(&["A"], false)), ("b/v1", listed(&["B"], false))]);
        let one = || answer(&[("a/v1", listed(&["A"], false))]);
        let (found, not_found) = (BTreeSet::new(), BTreeSet::from(["b/v1".to_owned()]));
        memory.take(both(), &found, start);
        assert_eq!(memory.left_out(&one()), ["b/v1"]);

        memory.take(one(), &found, start);
        memory.take(one(), &found, start + PATIENCE);
        assert_eq!(served(&memory), ["a/v1/A", "b/v1/B"]);
        assert_eq!(memory.doubtful(start + PATIENCE), ["b/v1"]);

        let start = start + PATIENCE;
        memory.take(one(), &not_found, start);
        assert_eq!(served(&memory), ["a/v1/A", "b/v1/B"]);
        memory.take(both(), &found, start + GONE_AFTER);
        memory.take(one(), &not_found, start + GONE_AFTER);
        assert_eq!(served(&memory), ["a/v1/A", "b/v1/B"], "it was back in between");
        memory.take(one(), &not_found, start + GONE_AFTER * 2);
        assert_eq!(served(&memory), ["a/v1/A"]);
        assert_eq!(memory.left_out(&one()), [""; 0]);
    }
}
