//! The view of the operator: its state, queues, channel, and everything that waits for a person.

use serde::Serialize;

use super::module::{Link, link, queue};
use super::overview::{Alarm, alarms};
use super::{Head, Place, Tone, tone_of};
use crate::facts::{Converge, Fleet, Machinery, Queue, Slots, TrialStep};
use crate::text::{Moment, block, bytes, row};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperatorView {
    pub head: Head,
    /// Short facts: a name and a text.
    pub facts: Vec<(&'static str, String)>,
    /// The time of the start of the process.
    pub started: Option<Moment>,
    /// The obstacles of the first converge.
    pub waiting: Vec<String>,
    /// The facts that need the attention of a person.
    pub alarms: Vec<Alarm>,
    /// The modules whose upgrade waits for a person.
    pub held_upgrades: Vec<Link>,
    /// The modules that wait until the trial of this version is passed.
    pub held_by_trial: Vec<String>,
    /// The queues with tasks.
    pub queues: Vec<Queue>,
    /// The number of queues without a task.
    pub idle_queues: usize,
    /// The slots that limit the number of jobs at once.
    pub slots: Vec<SlotsRow>,
    /// The last converges, the newest first.
    pub converges: Vec<ConvergeRow>,
    /// The last converges on an axis of time; none without one.
    pub time_line: Option<TimeLine>,
    /// The report of `channel status`.
    pub channel: Vec<(String, String)>,
    /// The steps of the version on trial.
    pub steps: Vec<TrialStep>,
}

/// The last converges on an axis of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeLine {
    pub begin: Moment,
    pub end: Moment,
    pub bars: Vec<Bar>,
}

/// A converge on the axis, which is a thousand wide.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    pub at: i64,
    pub width: i64,
    pub is_bad: bool,
    pub title: String,
}

/// The slots of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlotsRow {
    pub kind: String,
    /// The number of jobs that hold one.
    pub held: usize,
    pub number: usize,
    /// The jobs that hold one.
    pub jobs: Vec<String>,
}

/// A converge in the table of the last ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConvergeRow {
    pub ended: Option<Moment>,
    pub reason: String,
    /// The time that it took, for people.
    pub took: String,
    /// The length of its bar, in thousandths of the longest one.
    pub bar: u64,
    /// The number of modules that had not succeeded at its end.
    pub failing: usize,
}

impl OperatorView {
    /// The view of these facts.
    pub fn of(fleet: &Fleet, machinery: &Machinery) -> Self {
        let operator = &fleet.operator;
        let tasks = operator.converge_tasks;
        let counted = |tone: Tone| fleet.modules.iter().filter(|module| tone_of(module) == tone).count();
        let modules = format!(
            "{}: {} need attention, {} in progress, {} ready, {} off",
            fleet.modules.len(),
            counted(Tone::Bad),
            counted(Tone::Busy),
            counted(Tone::Good),
            counted(Tone::Off)
        );
        let converge = match (operator.ready, tasks) {
            (false, _) => "the first one goes on".to_owned(),
            (true, 0) => "none runs".to_owned(),
            (true, tasks) => format!("runs, {tasks} tasks left"),
        };
        let pod = Some(operator.pod.clone()).filter(|pod| !pod.is_empty());
        let facts = [
            ("Version", Some(operator.version.clone())),
            ("Leader", pod),
            ("Namespace", Some(operator.namespace.clone())),
            ("Modules", Some(modules)),
            ("Converge", Some(converge)),
            ("Memory", machinery.memory.map(bytes)),
            (
                "Requests",
                machinery
                    .requests_per_second
                    .map(|number| format!("{number:.1} a second in the last minute")),
            ),
        ];
        let upgrades = fleet.modules.iter().filter(|module| module.upgrade_held);
        Self {
            head: Head::of(operator, Place::Operator, "Operator"),
            facts: facts
                .into_iter()
                .filter_map(|(name, text)| Some((name, row(&text?))))
                .collect(),
            started: machinery.started.and_then(Moment::at),
            waiting: operator.waiting.iter().map(|text| block(text)).collect(),
            alarms: alarms(operator),
            held_upgrades: upgrades.map(|module| link(fleet, &module.name)).collect(),
            held_by_trial: operator.held_by_trial.iter().map(|text| block(text)).collect(),
            queues: machinery.queues.iter().map(queue).collect(),
            idle_queues: machinery.idle_queues,
            slots: machinery.slots.iter().map(slots).collect(),
            converges: converges(&machinery.converges),
            time_line: time_line(&machinery.converges),
            channel: machinery
                .channel
                .iter()
                .map(|(name, text)| (row(name), block(text)))
                .collect(),
            steps: machinery.trial.iter().map(step).collect(),
        }
    }
}

fn step(step: &TrialStep) -> TrialStep {
    TrialStep {
        text: row(&step.text),
        is: row(&step.is),
    }
}

fn slots(slots: &Slots) -> SlotsRow {
    SlotsRow {
        kind: row(&slots.kind),
        held: slots.jobs.len(),
        number: slots.number,
        jobs: slots.jobs.iter().map(|job| row(job)).collect(),
    }
}

fn converges(past: &[Converge]) -> Vec<ConvergeRow> {
    let longest = past
        .iter()
        .map(|converge| converge.took)
        .max()
        .unwrap_or_default()
        .max(1);
    let row_of = |converge: &Converge| ConvergeRow {
        ended: Moment::at(converge.ended),
        reason: row(&converge.reason),
        took: took(converge),
        // A short one is seen, too.
        bar: (converge.took.saturating_mul(1000) / longest).max(10),
        failing: converge.failing,
    };
    past.iter().map(row_of).collect()
}

/// The axis from the begin of the oldest converge to the end of the newest one, if there are several.
fn time_line(past: &[Converge]) -> Option<TimeLine> {
    if past.len() < 2 {
        return None;
    }
    let begin_of = |converge: &Converge| converge.ended.saturating_sub_unsigned(converge.took.div_ceil(1000));
    let begin = past.iter().map(begin_of).min()?;
    let end = past.iter().map(|converge| converge.ended).max()?;
    let span = (end - begin).max(1);
    let bar = |converge: &Converge| {
        let at = (begin_of(converge) - begin) * 1000 / span;
        let until = (converge.ended - begin) * 1000 / span;
        // A short one is seen, too.
        let width = (until - at).max(4);
        Bar {
            at: at.min(1000 - width),
            width,
            is_bad: converge.failing > 0,
            title: row(&format!("{}, {}", took(converge), converge.reason)),
        }
    };
    Some(TimeLine {
        begin: Moment::at(begin)?,
        end: Moment::at(end)?,
        bars: past.iter().map(bar).collect(),
    })
}

fn took(converge: &Converge) -> String {
    format!("{}.{} s", converge.took / 1000, converge.took % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_converge_has_the_longest_bar() {
        let of = |took| Converge {
            took,
            ..Converge::default()
        };
        let rows = converges(&[of(2_560), of(640), of(1)]);
        let told: Vec<(&str, u64)> = rows.iter().map(|row| (row.took.as_str(), row.bar)).collect();
        assert_eq!(told, [("2.5 s", 1000), ("0.6 s", 250), ("0.0 s", 10)]);
        assert_eq!(converges(&[]), []);
    }
    #[test]
    fn converges_lie_on_the_axis_where_they_were() {
        let of = |ended, took, failing| Converge {
            ended,
            took,
            failing,
            ..Converge::default()
        };
        let line = time_line(&[of(1100, 100, 1), of(1050, 25_000, 0), of(101, 1_000, 0)]).unwrap();
        assert_eq!(line.begin.shown, "1970-01-01 00:01:40 UTC");
        let told: Vec<(i64, i64, bool)> = line.bars.iter().map(|bar| (bar.at, bar.width, bar.is_bad)).collect();
        assert_eq!(told, [(996, 4, true), (925, 25, false), (0, 4, false)]);
        assert_eq!(time_line(&[of(1100, 100, 1)]), None);
    }
}
