//! The record of one source: which version is in use, which did well last, and which are bad. It survives restarts.

use std::collections::{BTreeMap, BTreeSet};

use channel_core::choice::{Memory, Target};
use channel_core::reference::{ImageDigest, Repository};
use serde::{Deserialize, Serialize};

/// The facts about a source that one process passes to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Record {
    /// The repository that the other facts are about.
    pub(super) repository: Option<Repository>,
    /// The version in use.
    pub(super) running: Option<Target>,
    /// The version with which a run of the module succeeded last.
    pub(super) good: Option<Target>,
    /// The version in use before the one that is in use now.
    pub(super) former: Option<Target>,
    /// Versions that failed where another did well, each with the error.
    pub(super) bad: BTreeMap<ImageDigest, String>,
    /// Bad versions that a person had approved before. The same approval does not permit another attempt.
    pub(super) spent: BTreeSet<ImageDigest>,
    /// The memory of the choice of versions.
    pub(super) memory: Memory,
}

impl Record {
    /// Notes that this version is in use from now on.
    pub(super) fn take(&mut self, target: Target) {
        self.bad.remove(&target.digest);
        self.former = self.running.replace(target);
    }

    /// Notes that a run succeeded with the version in use.
    pub(super) fn did_well(&mut self) {
        self.good.clone_from(&self.running);
    }

    /// Notes that the version in use is bad. The last good version is in use again, if there is one.
    pub(super) fn did_badly(&mut self, error: String, approved: &BTreeSet<ImageDigest>) {
        let bad = std::mem::replace(&mut self.running, self.good.clone());
        if let Some(bad) = bad {
            self.spent.extend(approved.get(&bad.digest).cloned());
            self.bad.insert(bad.digest, error);
        }
    }

    /// Whether the files of this version are to be kept.
    pub(super) fn needs(&self, digest: &str) -> bool {
        let kept = [&self.running, &self.good, &self.former];
        kept.into_iter()
            .flatten()
            .any(|target| target.digest.as_str() == digest)
    }

    /// Whether another version did well before the one in use.
    pub(super) fn has_former(&self) -> bool {
        self.good.is_some()
            && self.good.as_ref().map(|good| &good.digest) != self.running.as_ref().map(|running| &running.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(letter: char) -> Target {
        Target {
            tag: None,
            digest: ImageDigest::parse(&format!("sha256:{}", letter.to_string().repeat(64))).unwrap(),
            version: None,
        }
    }

    #[test]
    fn a_bad_version_gives_way_to_the_last_good_one() {
        let mut record = Record::default();
        record.take(target('a'));
        assert!(!record.has_former());
        record.did_well();
        assert!(!record.has_former());
        record.take(target('b'));
        assert!(record.has_former());
        record.did_badly("error".to_owned(), &BTreeSet::new());
        assert_eq!((record.running.as_ref(), record.bad.len()), (Some(&target('a')), 1));
        assert!(!record.has_former() && record.needs(target('a').digest.as_str()));
        // A person approves the bad version, and it is taken again.
        record.take(target('b'));
        assert!(record.bad.is_empty());
    }
}
