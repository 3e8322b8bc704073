//! The operator's use of the machine at one moment, and its course over time.

use std::fmt;
use std::fmt::Write as _;

/// The largest allowed number of pool threads. A pool keeps every thread that it ever needed, so more threads mean work
/// that never ends.
const POOLED: u64 = 32;

/// The use at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Resident memory, in KiB.
    pub(crate) memory: u64,
    pub(crate) files: u64,
    pub(crate) connections: u64,
    /// Threads that belong to no pool.
    pub(crate) threads: u64,
    /// Threads of pools: for work with files, and for starting children.
    pub(crate) pooled: u64,
    /// Child processes of the operator.
    pub(crate) children: u64,
    /// Watches as the API server counts them: those of all clients within one namespace.
    pub(crate) watches: u64,
    pub(crate) temporary: u64,
}

impl Usage {
    /// The counts that must not grow, by name.
    pub(crate) fn counts(self) -> [(&'static str, u64); 6] {
        [
            ("open files", self.files),
            ("connections", self.connections),
            ("threads", self.threads),
            ("processes", self.children),
            ("watches", self.watches),
            ("temporary files", self.temporary),
        ]
    }

    /// The counts that a table shows.
    fn shown(self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts().into_iter().chain([("threads of pools", self.pooled)])
    }

    /// The name of the first count that is larger than in `then`; none if no count is larger.
    pub(crate) fn more_than(self, then: Self) -> Option<&'static str> {
        let mut pairs = self.counts().into_iter().zip(then.counts());
        let more = pairs.find_map(|((name, now), (_, then))| (now > then).then_some(name));
        more.or_else(|| (self.pooled > POOLED).then_some("threads of pools"))
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.1} MiB", mebibytes(self.memory))?;
        self.shown()
            .try_for_each(|(name, count)| write!(out, ", {count} {name}"))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Usage>);

impl Samples {
    pub(crate) fn add(&mut self, usage: Usage) {
        self.0.push(usage);
    }

    /// The mean memory of the first and of the last third, in KiB. The first tenth of the time is warming up and is
    /// left out.
    fn thirds(&self) -> (u64, u64) {
        let count = self.0.len();
        let mean = |part: &[Usage]| part.iter().map(|usage| usage.memory).sum::<u64>() / part.len().max(1) as u64;
        (mean(&self.0[count / 10..count / 3]), mean(&self.0[count * 2 / 3..]))
    }

    pub(crate) fn growth(&self) -> u64 {
        let (first, last) = self.thirds();
        last.saturating_sub(first)
    }

    /// The course of the memory in one sentence.
    pub(crate) fn memory(&self) -> String {
        let (first, last) = self.thirds();
        let peak = self.0.iter().map(|usage| usage.memory).max().unwrap_or_default();
        format!(
            "Resident memory: {:.1} MiB in the first third after a tenth of warming up, {:.1} MiB in the last, {:.1} MiB at most.",
            mebibytes(first),
            mebibytes(last),
            mebibytes(peak)
        )
    }

    /// Rows of Markdown: each count when quiet before and after, and under load.
    pub(crate) fn table(&self, before: &Usage, after: &Usage) -> String {
        let mut table =
            "| | quiet, before | p50 under load | most | quiet, after |\n|---|---:|---:|---:|---:|\n".to_owned();
        for (at, ((name, before), (_, after))) in before.shown().zip(after.shown()).enumerate() {
            let mut seen: Vec<u64> = self
                .0
                .iter()
                .filter_map(|usage| Some(usage.shown().nth(at)?.1))
                .collect();
            seen.sort_unstable();
            let middle = seen.get(seen.len() / 2).copied().unwrap_or_default();
            let most = seen.last().copied().unwrap_or_default();
            let _ = writeln!(table, "| {name} | {before} | {middle} | {most} | {after} |");
        }
        table
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one place")]
fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_between_the_first_third_and_the_last_and_warming_up_is_none() {
        let samples = |memory: &dyn Fn(u64) -> u64| {
            Samples(
                (0..60)
                    .map(|at| Usage {
                        memory: memory(at),
                        ..Usage::default()
                    })
                    .collect(),
            )
        };
        assert_eq!(samples(&|at| if at < 6 { 1000 } else { 50_000 }).growth(), 0);
        assert!(samples(&|at| 50_000 + at * 200).growth() > 5 * 1024);
        assert_eq!(samples(&|at| 50_000 - at * 200).growth(), 0, "less is no growth");
    }

    #[test]
    fn what_there_is_more_of_is_named() {
        let then = Usage::default();
        let now = Usage { watches: 1, ..then };
        assert_eq!(now.more_than(then), Some("watches"));
        assert_eq!(then.more_than(now), None);
        let pooled = |pooled| Usage { pooled, ..then };
        assert_eq!(pooled(POOLED).more_than(then), None);
        assert_eq!(pooled(POOLED + 1).more_than(then), Some("threads of pools"));
    }
}
