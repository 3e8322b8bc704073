//! The result as a table for people: the states, how each was left, and the time that it took.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use testbed::campaign::percentile;

use crate::plan::{Follow, State};

/// The help that a release needed to leave its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Help {
    Nothing,
    /// A person ran the command that the operator named.
    Command,
    /// A person did the deed that the operator named, for which there is no command.
    Deed,
}

/// The outcome of one round.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) state: State,
    pub(crate) follow: Follow,
    pub(crate) help: Help,
    /// From the event after the damage until the state was left, or until the command was named.
    pub(crate) alone: Duration,
    /// From the command until the state was left.
    pub(crate) helped: Option<Duration>,
    /// The number of objects that the removal left.
    pub(crate) behind: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Tally(Vec<Left>);

impl Tally {
    pub(crate) fn add(&mut self, left: Left) {
        self.0.push(left);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Rows of Markdown: the state, the events after it, and the help.
    pub(crate) fn table(&self) -> String {
        let mut rows: BTreeMap<State, Vec<&Left>> = BTreeMap::new();
        let mut names: BTreeMap<String, State> = BTreeMap::new();
        for left in &self.0 {
            let key = *names.entry(left.state.title()).or_insert(left.state);
            rows.entry(key).or_default().push(left);
        }
        let mut table =
            "| state | upgrade | removal | restart | original | alone | by a command | by a deed | longest, s | objects left |\n\
                         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
                .to_owned();
        for (state, lefts) in rows {
            let count = |fits: &dyn Fn(&&&Left) -> bool| lefts.iter().filter(fits).count();
            let follows = Follow::ALL.map(|follow| count(&|left| left.follow == follow));
            let helps = [Help::Nothing, Help::Command, Help::Deed].map(|help| count(&|left| left.help == help));
            let longest = lefts.iter().flat_map(|left| [Some(left.alone), left.helped]).flatten();
            let longest = longest.max().unwrap_or_default().as_secs_f64();
            let behind: usize = lefts.iter().map(|left| left.behind).sum();
            let [upgrade, removal, restart, original] = follows;
            let [alone, command, deed] = helps;
            let title = state.title();
            let _ = writeln!(
                table,
                "| {title} | {upgrade} | {removal} | {restart} | {original} | {alone} | {command} | {deed} | {longest:.1} | {behind} |"
            );
        }
        table
    }

    /// The result in one line.
    pub(crate) fn summary(&self) -> String {
        let seconds = |times: &[Duration], percent| {
            percentile(times.iter().copied(), percent).map_or(0.0, |time| time.as_secs_f64())
        };
        let of = |help| self.0.iter().filter(|left| left.help == help).count();
        let alone: Vec<_> = self.0.iter().filter(|left| left.help == Help::Nothing).collect();
        let alone: Vec<_> = alone.iter().map(|left| left.alone).collect();
        let helped: Vec<_> = self.0.iter().filter_map(|left| left.helped).collect();
        format!(
            "{} rounds: {} releases left their state by themselves after {:.1} s (p50), {:.1} s at most; {} after the \
             command and {} after the deed that the operator named, {:.1} s after it at most",
            self.0.len(),
            of(Help::Nothing),
            seconds(&alone, 50),
            seconds(&alone, 100),
            of(Help::Command),
            of(Help::Deed),
            seconds(&helped, 100),
        )
    }
}
