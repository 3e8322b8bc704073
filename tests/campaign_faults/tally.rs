//! The result as tables for people: the faults, and the time until the state was as without them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use testbed::campaign::percentile;

use crate::plan::{Harm, Outage, Plan, SILENCE_OF_HELM, Target};

/// The outcome of one round.
#[derive(Clone, Debug)]
pub(crate) struct Healed {
    pub(crate) plan: Plan,
    /// The number of requests and parts of answers that were hit.
    pub(crate) hits: u64,
    /// From the end of the last fault until the state was as it should be.
    pub(crate) took: Duration,
    /// Whether the operator lost its lease during the round.
    pub(crate) deposed: bool,
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

    /// Rows of Markdown: each fault, its targets, and the longest recovery of a round with it.
    pub(crate) fn table(&self) -> String {
        let mut rows: BTreeMap<Harm, (BTreeMap<Target, usize>, Duration)> = BTreeMap::new();
        let mut outages: BTreeMap<Outage, (usize, Duration)> = BTreeMap::new();
        for healed in &self.0 {
            for stroke in &healed.plan.strokes {
                let (targets, longest) = rows.entry(stroke.harm).or_default();
                *targets.entry(stroke.target).or_default() += 1;
                *longest = healed.took.max(*longest);
            }
            if let Some((_, outage)) = healed.plan.outage {
                let (count, longest) = outages.entry(outage).or_default();
                *count += 1;
                *longest = healed.took.max(*longest);
            }
        }
        let mut table =
            "| fault | for the operator | for helm | for both | longest healing |\n|---|---:|---:|---:|---:|\n"
                .to_owned();
        for (harm, (targets, longest)) in rows {
            let count = |target| targets.get(&target).copied().unwrap_or(0);
            let [operator, helm, both] = Target::ALL.map(count);
            let longest = longest.as_secs_f64();
            let _ = writeln!(table, "| {harm:?} | {operator} | {helm} | {both} | {longest:.1} s |");
        }
        for (outage, (count, longest)) in outages {
            let longest = longest.as_secs_f64();
            let _ = writeln!(table, "| {outage:?} | | | {count} | {longest:.1} s |");
        }
        table
    }

    /// How many rounds recovered within how many seconds.
    pub(crate) fn histogram(&self) -> String {
        const STEPS: [u64; 8] = [1, 2, 5, 10, 20, 40, 60, 120];
        let mut text = "| healed within | rounds |\n|---|---:|\n".to_owned();
        let mut from = Duration::ZERO;
        for step in STEPS.into_iter().map(Duration::from_secs).chain([Duration::MAX]) {
            let is_in = |healed: &&Healed| healed.took >= from && healed.took < step;
            let count = self.0.iter().filter(is_in).count();
            let _ = match step {
                Duration::MAX => writeln!(text, "| longer | {count} |"),
                step => writeln!(text, "| {} s | {count} |", step.as_secs()),
            };
            from = step;
        }
        text
    }

    /// A summary in one line.
    pub(crate) fn summary(&self, bound: Duration) -> String {
        let times = || self.0.iter().map(|healed| healed.took);
        let at = |percent| percentile(times(), percent).map_or(0.0, |time| time.as_secs_f64());
        let hits: u64 = self.0.iter().map(|healed| healed.hits).sum();
        let deposed = self.0.iter().filter(|healed| healed.deposed).count();
        format!(
            "{} plans, {hits} requests or parts of answers hit, {deposed} leases lost; the same end as without faults after \
             {:.1} s (p50), {:.1} s (p99), {:.1} s at most; bound {} s, and up to {} s more where connections are left that say nothing",
            self.0.len(),
            at(50),
            at(99),
            at(100),
            bound.as_secs(),
            SILENCE_OF_HELM.as_secs()
        )
    }
}
