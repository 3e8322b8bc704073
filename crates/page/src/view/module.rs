//! The view of one module: its state with the reason, its objects, values, revisions, hooks and queues.

use serde::Serialize;

use super::objects::{Kind, kinds};
use super::values::{self, Entry};
use super::{Head, Label, Place, Tone, health_label, needed_by, state_label};
use crate::facts::{self, Detail, Failing, Fleet, Module, Queue, Run};
use crate::text::{Moment, block, encoded, row};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModuleView {
    pub head: Head,
    pub name: String,
    pub state: Label,
    pub health: Option<Label>,
    /// The sentence about the object for which it is not healthy.
    pub unhealthy: String,
    /// The time since which it is not healthy.
    pub since: Option<Moment>,
    /// Short facts: a name and a text.
    pub facts: Vec<(&'static str, String)>,
    /// The obstacle that it waits for; empty if it waits for nothing.
    pub waits_for: String,
    /// The modules before it that are not done.
    pub after: Vec<Link>,
    /// The last failure; empty if there is none.
    pub error: String,
    /// The number of failures in a row.
    pub failures: u32,
    /// The remedies.
    pub hints: Vec<String>,
    /// The tasks that failed and are retried.
    pub failing: Vec<FailingTask>,
    /// The errors in its keys of the ConfigMap.
    pub config_problems: Vec<String>,
    /// Warnings about its objects.
    pub remarks: Vec<String>,
    /// Differences that are left to other writers.
    pub drift: Vec<String>,
    /// The modules that it needs.
    pub needs: Vec<Link>,
    /// The modules that need it.
    pub needed_by: Vec<Link>,
    /// The path of its graph, from the root.
    pub graph: String,
    /// Its objects, by namespace and kind. Those that do not work come first.
    pub objects: Vec<Kind>,
    /// The number of objects.
    pub object_count: usize,
    /// The number of objects that are not shown.
    pub more_objects: usize,
    pub values: Vec<Entry>,
    /// The number of keys that are not shown.
    pub more_values: usize,
    /// Its section of the ConfigMap as JSON; empty if there is none.
    pub section: String,
    /// The path of its Events, from the root.
    pub events: String,
    /// The revisions of its release, the newest first.
    pub history: Vec<Revision>,
    pub hooks: Vec<Hook>,
    /// The recorded runs of its hooks.
    pub runs: Vec<RunRow>,
    /// The queues with a task of the module.
    pub queues: Vec<Queue>,
    /// Commands that help.
    pub commands: Vec<Command>,
}

/// A link to a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    pub name: String,
    /// The path, from the root.
    pub link: String,
    /// Its state; none if there is no such module.
    pub state: Option<Label>,
}

/// A task that failed and is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailingTask {
    /// The task with its hook and queue.
    pub title: String,
    pub error: String,
    /// The time of the next attempt.
    pub next: Option<Moment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revision {
    pub number: u32,
    /// The word of helm.
    pub status: Label,
    /// The time of helm's last write.
    pub written: Option<Moment>,
    /// Whether the section of the ConfigMap was another one before; none if that is not known.
    pub change: &'static str,
    /// The difference to the revision before: a text, and the path from the root. None for the oldest one.
    pub difference: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hook {
    pub name: String,
    /// Its kubernetes bindings.
    pub bindings: String,
    /// None if it has not run since the start of the operator.
    pub last: Option<LastRun>,
}

/// The last run of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastRun {
    pub began: Option<Moment>,
    pub binding: String,
    /// The time that it took.
    pub took: String,
    pub end: Label,
    /// The failure; empty if it succeeded, or if the output tells it.
    pub failure: String,
    /// The last lines of its output; empty if it printed nothing.
    pub output: String,
}

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRow {
    pub hook: String,
    pub binding: String,
    /// The time of its beginning.
    pub began: String,
    /// The time that it took.
    pub took: String,
    pub end: Label,
    pub failure: String,
    /// The command that shows the record.
    pub command: String,
}

/// A command with its purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    pub purpose: &'static str,
    pub command: String,
}

impl ModuleView {
    /// The view of a module of the fleet.
    pub fn of(fleet: &Fleet, module: &Module, detail: &Detail) -> Self {
        let (objects, more_objects) = kinds(&detail.objects);
        let (entries, more_values) = values::entries(detail);
        let to = |name: &String| link(fleet, name);
        let blocks = |texts: &[String]| texts.iter().map(|text| block(text)).collect();
        Self {
            head: Head::of(&fleet.operator, Place::Module, &module.name),
            name: row(&module.name),
            state: state_label(module),
            health: health_label(module),
            unhealthy: module.unhealthy.as_deref().map(block).unwrap_or_default(),
            since: module.unhealthy_since.and_then(Moment::at),
            facts: facts(module),
            waits_for: block(&module.waits_for),
            after: module.after.iter().map(to).collect(),
            error: module
                .error
                .as_deref()
                .filter(|_| module.fails)
                .map(block)
                .unwrap_or_default(),
            failures: module.failures,
            hints: blocks(&module.hints),
            failing: module
                .failing
                .iter()
                .filter(|task| !task.hook.is_empty())
                .map(failing)
                .collect(),
            config_problems: blocks(&module.config_problems),
            remarks: blocks(&module.remarks),
            drift: blocks(&module.drift),
            needs: module.depends_on.iter().map(to).collect(),
            needed_by: needed_by(fleet, &module.name).map(|other| to(&other.name)).collect(),
            graph: format!("graph/{}", encoded(&module.name)),
            objects,
            object_count: detail.objects.len(),
            more_objects,
            values: entries,
            more_values,
            section: section(detail),
            events: format!("modules/{}/events", encoded(&module.name)),
            history: history(&module.name, detail),
            hooks: hooks(detail),
            runs: detail.runs.iter().rev().map(run).collect(),
            queues: detail.queues.iter().map(queue).collect(),
            commands: commands(module),
        }
    }
}

fn facts(module: &Module) -> Vec<(&'static str, String)> {
    let enabled = match (module.enabled, module.decided) {
        (true, _) => format!("yes, by {}", module.enabled_by),
        (false, true) => format!("no, by {}", module.enabled_by),
        (false, false) => module.enabled_by.clone(),
    };
    let maintenance = module
        .in_maintenance
        .then(|| "yes: objects are left to people".to_owned());
    let all = [
        ("Enabled", Some(enabled)),
        ("Order", Some(module.order.to_string())),
        ("Chart", module.version.clone()),
        ("Revision", module.revision.map(|number| number.to_string())),
        ("Source", module.source.clone()),
        ("Maintenance", maintenance),
    ];
    let told = all.into_iter().filter_map(|(name, text)| Some((name, row(&text?))));
    told.collect()
}

pub(super) fn link(fleet: &Fleet, name: &str) -> Link {
    let found = fleet.modules.iter().find(|module| module.name == name);
    Link {
        name: row(name),
        link: format!("modules/{}", encoded(name)),
        state: found.map(state_label),
    }
}

fn failing(task: &Failing) -> FailingTask {
    let Failing {
        queue,
        task: kind,
        hook,
        failures,
        error,
        next_try,
    } = task;
    FailingTask {
        title: row(&format!(
            "{kind} of hook {hook} in queue {queue}, {failures} failures in a row"
        )),
        error: block(error),
        next: next_try.and_then(Moment::at),
    }
}

fn section(detail: &Detail) -> String {
    let is_empty = detail.section.as_object().is_none_or(serde_json::Map::is_empty);
    if is_empty {
        return String::new();
    }
    block(&format!("{:#}", detail.section))
}

fn history(module: &str, detail: &Detail) -> Vec<Revision> {
    let mut sorted: Vec<_> = detail.history.iter().collect();
    sorted.sort_by_key(|revision| revision.number);
    let mut before: Option<&facts::Revision> = None;
    let mut all = Vec::new();
    for revision in sorted {
        let change = match before.map(|before| &before.config) {
            Some(Some(earlier)) if revision.config.as_ref().is_some_and(|own| own != earlier) => {
                "the ConfigMap's section"
            }
            Some(Some(_)) if revision.config.is_some() => "files, or values of hooks",
            _ => "",
        };
        let difference = before.map(|before| {
            let (from, to) = (before.number, revision.number);
            let path = format!("modules/{}/revisions/{from}/{to}", encoded(module));
            (format!("{from} → {to}"), path)
        });
        before = Some(revision);
        let tone = match revision.status.as_str() {
            "deployed" => Tone::Good,
            "failed" => Tone::Bad,
            "superseded" => Tone::Off,
            _ => Tone::Busy,
        };
        all.push(Revision {
            number: revision.number,
            status: Label::new(tone, row(&revision.status)),
            written: Moment::at(revision.written).filter(|_| revision.written > 0),
            change,
            difference,
        });
    }
    all.reverse();
    all
}

fn hooks(detail: &Detail) -> Vec<Hook> {
    let shown = detail.hooks.iter().map(|(name, bindings)| Hook {
        name: row(name),
        bindings: row(&bindings.join(", ")),
        last: detail.last_runs.get(name).map(last_run),
    });
    shown.collect()
}

fn last_run(run: &facts::LastRun) -> LastRun {
    let output = run.output.join("\n");
    let is_told = output.contains(run.failure.trim());
    LastRun {
        began: Moment::at(run.began),
        binding: row(&run.binding),
        took: took(run.seconds),
        end: ended(&run.end, !run.failure.is_empty()),
        failure: if is_told { String::new() } else { block(&run.failure) },
        output: block(&output),
    }
}

fn took(seconds: f64) -> String {
    format!("{seconds:.2} s")
}

fn ended(end: &str, has_failed: bool) -> Label {
    Label::new(if has_failed { Tone::Bad } else { Tone::Good }, row(end))
}

fn run(run: &Run) -> RunRow {
    RunRow {
        hook: row(&run.hook),
        binding: row(&run.binding),
        began: row(&run.began),
        took: took(run.seconds),
        end: ended(&run.end, run.failure.is_some()),
        failure: run.failure.as_deref().map(block).unwrap_or_default(),
        command: format!("addon-operator hook records {}", row(&run.id)),
    }
}

pub(super) fn queue(queue: &Queue) -> Queue {
    Queue {
        name: row(&queue.name),
        status: row(&queue.status),
        length: queue.length,
        head: row(&queue.head),
    }
}

fn commands(module: &Module) -> Vec<Command> {
    let name = row(&module.name);
    let mut all = vec![
        Command {
            purpose: "The state and its reason",
            command: format!("addon-operator why {name}"),
        },
        Command {
            purpose: "The difference between the chart and the cluster",
            command: format!("addon-operator module render {name} --diff"),
        },
    ];
    if module.upgrade_held {
        all.insert(
            0,
            Command {
                purpose: "The reason why the upgrade is held, and the way to let it go on",
                command: format!("addon-operator module upgrade {name}"),
            },
        );
    }
    all
}
