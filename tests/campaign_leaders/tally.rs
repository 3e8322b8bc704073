//! The result as a table for people: how soon another replica led and the state was as it should be.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use testbed::campaign::percentile;

use crate::plan::Way;

/// The outcome of one change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// The time from the change until the next term of a leader began; none if the old leader led on.
    pub(crate) led: Option<Duration>,
    /// The time from the change until the state was as people want it.
    pub(crate) settled: Duration,
    /// The number of edits during the round.
    pub(crate) edits: usize,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.led {
            Some(led) => write!(out, "another time as leader after {:.1} s", led.as_secs_f64())?,
            None => write!(out, "the same leader")?,
        }
        let Self { settled, edits, .. } = self;
        write!(out, ", {edits} edits in force after {:.1} s", settled.as_secs_f64())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tally(Vec<(Way, Outcome)>);

impl Tally {
    pub(crate) fn add(&mut self, way: Way, outcome: Outcome) {
        self.0.push((way, outcome));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Rows of Markdown, one for each way.
    pub(crate) fn table(&self) -> String {
        let mut rows: BTreeMap<Way, Vec<Outcome>> = BTreeMap::new();
        for (way, outcome) in &self.0 {
            rows.entry(*way).or_default().push(*outcome);
        }
        let mut table =
            "| the leader | rounds | changes | another leads, s: p50 | most | all is well, s: p50 | most |\n\
                         |---|---:|---:|---:|---:|---:|---:|\n"
                .to_owned();
        for (way, outcomes) in rows {
            let led: Vec<Duration> = outcomes.iter().filter_map(|outcome| outcome.led).collect();
            let settled: Vec<Duration> = outcomes.iter().map(|outcome| outcome.settled).collect();
            let (rounds, changes) = (outcomes.len(), led.len());
            let [led, led_most] = [50, 100].map(|percent| shown(&led, percent));
            let [settled, settled_most] = [50, 100].map(|percent| shown(&settled, percent));
            let _ = writeln!(
                table,
                "| {way} | {rounds} | {changes} | {led} | {led_most} | {settled} | {settled_most} |"
            );
        }
        table
    }

    /// A summary in one line.
    pub(crate) fn line(&self) -> String {
        let led: Vec<Duration> = self.0.iter().filter_map(|(_, outcome)| outcome.led).collect();
        let settled: Vec<Duration> = self.0.iter().map(|(_, outcome)| outcome.settled).collect();
        let edits: usize = self.0.iter().map(|(_, outcome)| outcome.edits).sum();
        format!(
            "{} rounds, {} changes of leader, {edits} edits; another leads after {} s (p50), {} s at most; all is as it should be after {} s (p50), {} s at most",
            self.0.len(),
            led.len(),
            shown(&led, 50),
            shown(&led, 100),
            shown(&settled, 50),
            shown(&settled, 100)
        )
    }
}

fn shown(times: &[Duration], percent: usize) -> String {
    percentile(times.iter().copied(), percent)
        .map_or_else(|| "–".to_owned(), |time| format!("{:.1}", time.as_secs_f64()))
}
