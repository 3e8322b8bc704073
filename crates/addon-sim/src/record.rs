//! A record of the core's behaviour: one digest for the steps of each hundred cases. A mere change of structure leaves
//! all digests as they are. Must never judge a step: the checks do that.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::str::FromStr;
use std::thread;

use addon_core::digest::Digest;

use crate::generate;
use crate::run::run;

/// The number of cases that share a digest.
const EACH: u64 = if cfg!(test) { 4 } else { 100 };

/// The cases of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first seed.
    pub seed: u64,
    /// The number of seeds that follow. The last group may be smaller.
    pub cases: u64,
    /// The most actions in one case.
    pub actions: usize,
}

/// The error for a line that is neither an extent nor a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine(String);

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no line of a record", self.0)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, cases, actions } = self;
        write!(f, "seed {seed} cases {cases} actions {actions}")
    }
}

impl Error for BadLine {}

impl FromStr for Extent {
    type Err = BadLine;

    fn from_str(line: &str) -> Result<Self, BadLine> {
        let bad = || BadLine(line.to_owned());
        let words: Vec<_> = line.split(' ').collect();
        let ["seed", seed, "cases", cases, "actions", actions] = words[..] else {
            return Err(bad());
        };
        Ok(Self {
            seed: seed.parse().map_err(|_| bad())?,
            cases: cases.parse().map_err(|_| bad())?,
            actions: actions.parse().map_err(|_| bad())?,
        })
    }
}

impl Extent {
    fn groups(self) -> u64 {
        self.cases.div_ceil(EACH)
    }

    fn seeds(self, group: u64) -> Range<u64> {
        let first = group * EACH;
        self.seed + first..self.seed + self.cases.min(first + EACH)
    }

    /// The digest of all events, effects, states and waits of these cases.
    fn digest(self, seeds: &Range<u64>) -> Digest {
        let mut digest = Digest::builder();
        for seed in seeds.clone() {
            for entry in run(&generate::case(seed, self.actions), true).log {
                digest = digest.part(format!("{:.6} {}", entry.at, entry.event));
                for line in entry.effects.iter().chain(&entry.states).chain(&entry.waits) {
                    digest = digest.part(line);
                }
            }
        }
        digest.finish()
    }

    /// Plays all groups in order, in parallel on all processors. Each becomes a line of the record.
    fn lines(self) -> impl Iterator<Item = (Range<u64>, String)> {
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        let begins = (0..self.groups()).step_by(at_once);
        begins.flat_map(move |group| {
            let batch = group..self.groups().min(group + at_once as u64);
            thread::scope(|scope| {
                let playing: Vec<_> = batch.map(|group| scope.spawn(move || self.line(group))).collect();
                let ended = playing.into_iter().map(thread::ScopedJoinHandle::join);
                let lines = ended.map(|line| line.expect("a run ends with a report, whatever happens in it"));
                lines.collect::<Vec<_>>()
            })
        })
    }

    fn line(self, group: u64) -> (Range<u64>, String) {
        let seeds = self.seeds(group);
        let line = format!("{} {}", seeds.start, self.digest(&seeds));
        (seeds, line)
    }

    /// Plays the cases, and writes the record.
    pub fn record(self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{self}")?;
        for (_, line) in self.lines() {
            writeln!(out, "{line}")?;
            out.flush()?;
        }
        Ok(())
    }
}

/// Plays the cases of a record again, up to the first group that differs. Returns the seeds of that group, if there is one.
pub fn compare(record: &str) -> Result<Option<Range<u64>>, BadLine> {
    let mut lines = record.lines();
    let extent: Extent = lines.next().unwrap_or_default().parse()?;
    let mut played = extent.lines();
    Ok(played.find_map(|(seeds, line)| (lines.next() != Some(&line)).then_some(seeds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent {
        seed: 7,
        cases: 6,
        actions: 3,
    };

    #[test]
    fn a_record_holds_until_a_case_differs() {
        let mut record = Vec::new();
        EXTENT.record(&mut record).unwrap();
        let record = String::from_utf8(record).unwrap();
        assert_eq!(compare(&record), Ok(None));
        let (rest, last) = record.trim_end().rsplit_once(' ').unwrap();
        let altered = format!("{rest} {}", last.replace(|digit: char| digit.is_ascii_digit(), "f"));
        assert_eq!(compare(&altered), Ok(Some(11..13)));
        // A record whose end is missing differs, too.
        assert_eq!(compare(rest.rsplit_once('\n').unwrap().0), Ok(Some(11..13)));
        assert_eq!(compare("seed 1"), Err(BadLine("seed 1".to_owned())));
    }
}
