//! The result as a table for people: the states that the kills left, and the time until recovery.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use testbed::campaign::percentile;

use crate::plan::{Phase, Victim};

/// The outcome of one kill.
#[derive(Clone, Debug)]
pub(crate) struct Healed {
    pub(crate) phase: Phase,
    pub(crate) victim: Victim,
    /// The status of the release's newest revision at the kill, or `none`.
    pub(crate) left: String,
    /// Whether the victim had already ended.
    pub(crate) missed: bool,
    /// From the start of the next operator, or from the kill of helm alone, until the state was as it should be.
    pub(crate) took: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Tally(Vec<Healed>);

impl Tally {
    pub(crate) fn add(&mut self, healed: Healed) {
        self.0.push(healed);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The number of kills that left a release in this status.
    pub(crate) fn hits(&self, state: &str) -> usize {
        self.0
            .iter()
            .filter(|healed| !healed.missed && healed.left == state)
            .count()
    }

    /// Rows of Markdown: the victim and the phase, by the status that was left.
    pub(crate) fn table(&self) -> String {
        let mut rows: BTreeMap<(Phase, &str), BTreeMap<Victim, usize>> = BTreeMap::new();
        for healed in self.0.iter().filter(|healed| !healed.missed) {
            let row = rows.entry((healed.phase, &healed.left)).or_default();
            *row.entry(healed.victim).or_default() += 1;
        }
        let mut table = "| phase | left | operator | helm | both |\n|---|---|---:|---:|---:|\n".to_owned();
        for ((phase, left), victims) in rows {
            let count = |victim| victims.get(&victim).copied().unwrap_or(0);
            let [operator, helm, both] = [Victim::Operator, Victim::Helm, Victim::Both].map(count);
            let _ = writeln!(table, "| {phase:?} | {left} | {operator} | {helm} | {both} |");
        }
        table
    }

    /// The recovery times in one line.
    pub(crate) fn times(&self) -> String {
        let times: Vec<_> = self
            .0
            .iter()
            .filter(|healed| !healed.missed)
            .map(|healed| healed.took)
            .collect();
        let seconds = |percent| percentile(times.iter().copied(), percent).map_or(0.0, |time| time.as_secs_f64());
        let missed = self.0.len() - times.len();
        format!(
            "{} kills, {missed} that met nobody; healed after {:.1} s (p50), {:.1} s (p99), {:.1} s at most",
            times.len(),
            seconds(50),
            seconds(99),
            seconds(100)
        )
    }
}
