//! The page with the results of the campaign: durations of the steps, compared with their bounds.
//!
//! It must never hide a round. A round with a pod killed on the way is counted separately, and each round that took too
//! long is listed with its steps.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use testbed::campaign::percentile;

use super::steps::MARKS;
use super::{KINDS, Outcome, Plan};

/// Bounds in seconds, as set when the channel was designed. The first two are for rounds without an earlier kill.
pub(super) const LEADS_NOTIFIED: u64 = 30;
pub(super) const LEADS_POLLED: u64 = 100;
const FOLLOWS: u64 = 15;
const RETURNS: u64 = 60;

/// A round's number, plan and outcome.
type Round = (usize, Plan, Outcome);

pub(super) fn page(done: &[Round]) -> String {
    let killed = done.iter().filter(|(_, _, outcome)| outcome.is_killed).count();
    let mut page = format!(
        "{} bad versions, {killed} pods killed; after each the old version led, and the Deployment named no other one.\n\n",
        done.len()
    );
    let rulings: BTreeSet<&str> = done.iter().map(|(_, _, outcome)| outcome.ruling.as_str()).collect();
    for ruling in rulings {
        let count = done.iter().filter(|(_, _, outcome)| outcome.ruling == ruling).count();
        let _ = writeln!(page, "- {ruling}: {count}");
    }
    times(&mut page, done);
    steps(&mut page, done);
    late(&mut page, done);
    page
}

fn times(page: &mut String, done: &[Round]) {
    head(page, "from, to");
    for (is_notified, name, bound) in [
        (true, "pushed and told, to the new version leads", LEADS_NOTIFIED),
        (false, "pushed, to the new version leads", LEADS_POLLED),
    ] {
        let of = |is_disturbed| {
            let those = done.iter().filter(move |(_, plan, outcome)| {
                plan.is_notified == is_notified && outcome.is_disturbed == is_disturbed
            });
            those.filter_map(|(_, _, outcome)| outcome.led).collect::<Vec<_>>()
        };
        line(page, name, &of(false), Some(bound));
        line(page, &format!("{name}, a pod killed on the way"), &of(true), None);
    }
    for kind in KINDS {
        let those = || done.iter().filter(|(_, plan, _)| plan.kind == kind);
        let followed: Vec<Duration> = those().filter_map(|(_, _, outcome)| outcome.followed).collect();
        line(
            page,
            &format!("{kind:?}: verdict, to the old version leads"),
            &followed,
            Some(FOLLOWS),
        );
        let returned: Vec<Duration> = those().filter_map(|(_, _, outcome)| outcome.returned).collect();
        let name = format!("{kind:?}: last sign as a leader, to the old version leads");
        line(page, &name, &returned, Some(RETURNS));
    }
}

/// Writes the durations of the steps, for rounds with a notification and without an earlier kill.
fn steps(page: &mut String, done: &[Round]) {
    let those = done
        .iter()
        .filter(|(_, plan, outcome)| plan.is_notified && !outcome.is_disturbed && outcome.led.is_some());
    let waits: Vec<_> = those.flat_map(|(_, _, outcome)| outcome.steps.waits()).collect();
    if waits.is_empty() {
        return;
    }
    page.push_str("\nThe steps of those that were told, if no pod was killed on the way:\n");
    head(page, "step");
    for mark in MARKS {
        let of_it = waits.iter().filter(|(step, _)| *step == mark);
        let times: Vec<Duration> = of_it.map(|(_, wait)| *wait).collect();
        line(page, mark.wait(), &times, None);
    }
}

/// Writes the rounds that took longer than allowed.
fn late(page: &mut String, done: &[Round]) {
    let bound = |plan: &Plan| if plan.is_notified { LEADS_NOTIFIED } else { LEADS_POLLED };
    let is_late = |(_, plan, outcome): &&Round| outcome.led.is_some_and(|led| led > Duration::from_secs(bound(plan)));
    let late: Vec<&Round> = done.iter().filter(is_late).collect();
    if late.is_empty() {
        return;
    }
    page.push_str("\nRounds that took longer than the bound:\n\n");
    for (number, plan, outcome) in late {
        let steps = outcome
            .steps
            .waits()
            .into_iter()
            .map(|(mark, wait)| format!("{}: {}", mark.wait(), shown(wait)));
        let killed = if outcome.is_disturbed {
            ", a pod killed on the way"
        } else {
            ""
        };
        let _ = writeln!(
            page,
            "- round {number}, {:?}{killed}, {} pods on trial before the one that led: {}",
            plan.kind,
            outcome.steps.lost,
            steps.collect::<Vec<_>>().join("; ")
        );
    }
}

fn head(page: &mut String, first: &str) {
    let _ = writeln!(
        page,
        "\n| {first} | rounds | p50, s | p90, s | most, s | bound, s |\n|---|---:|---:|---:|---:|---:|"
    );
}

fn line(page: &mut String, name: &str, times: &[Duration], bound: Option<u64>) {
    let at = |percent| percentile(times.iter().copied(), percent).map_or_else(none, shown);
    if !times.is_empty() {
        let (rounds, bound) = (times.len(), bound.map_or_else(none, |bound| bound.to_string()));
        let _ = writeln!(
            page,
            "| {name} | {rounds} | {} | {} | {} | {bound} |",
            at(50),
            at(90),
            at(100)
        );
    }
}

fn none() -> String {
    "–".to_owned()
}

fn shown(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}
