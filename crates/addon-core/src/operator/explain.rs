//! The answers to questions: reports for people about queues, modules and values, which name the reason of each wait.

mod answers;
mod converge;
mod module;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use names::{ModuleName, QueueName};

use super::converge::Phase;
use super::modules::{Turn, Unit};
use super::policy::Mode;
use super::query::{ModuleReport, QueueReport, Status, TaskReport};
use super::survey::Survey;
use super::task::{Entry, Lane, RunReason, Task};
use crate::queue::State;

/// A question that the operator answers.
pub trait Query: Send + 'static {
    /// The answer to this question and to no other.
    type Answer: Send;

    /// Makes the answer from the state of the operator at one moment.
    fn answer(&self, survey: &Survey<'_>) -> Self::Answer;
}

impl Survey<'_> {
    /// The wait of the start for the copies of modules with sources.
    fn copies_wait(&self) -> Option<String> {
        let waits = !self.of.startup.has_begun() && self.of.supply.awaits_copies();
        waits.then(|| "the kept copies of modules with sources to be read".to_owned())
    }

    fn status(&self) -> Status {
        let mut waiting = self.start_waits();
        waiting.extend(self.of.config.readings_wait_for());
        waiting.extend(self.copies_wait());
        waiting.extend(self.of.directories.sources().waiting());
        waiting.extend(self.of.probation.waiting());
        if self.of.standing.is_standby() {
            waiting.insert(0, "to be elected leader".to_owned());
        }
        waiting.extend(self.of.reviews.publication().waiting());
        let ready = match self.of.cx.policy.mode {
            Mode::Addons => self.of.converge.is_first_over(),
            Mode::Hooks => self.of.startup.has_begun(),
        };
        if !ready {
            waiting.extend(self.describe_start());
        }
        Status {
            not_started: !ready && !self.of.converge.is_under_way(),
            ready,
            converge_tasks: self.converge_tasks(),
            waiting,
            config_problems: self.of.config.problems().clone(),
            held: self.certainty().held_removals(),
            held_upgrades: self.held_upgrades(),
            held_by_trial: self.modules_held_by_trial(),
            config_lost: self.of.config.losses().releases().to_vec(),
            unkept: self.of.config.unkept().to_vec(),
            late: self.late(),
            old_values: self.old_values(),
        }
    }

    /// The number of tasks of a converge: the converge itself and its remaining modules.
    fn converge_tasks(&self) -> usize {
        let Some(phase) = self.of.converge.phase() else {
            return 0;
        };
        let pending = |unit: &&Unit| unit.turn().is_awaited();
        let modules = match phase {
            Phase::Crds(_) | Phase::Conversions { .. } | Phase::Modules(_) => {
                self.of.modules.iter().filter(pending).count()
            }
            Phase::Settling | Phase::BeforeAll(_) | Phase::Enabling | Phase::AfterAll { .. } => 0,
        };
        modules + 1
    }

    /// The reports about the queues: `main` first, then the named queues.
    fn queue_reports(&self) -> Vec<QueueReport> {
        let named = self.of.lanes.all().filter_map(|(lane, tasks)| match lane {
            Lane::Named(name) => Some((name, lane, tasks)),
            Lane::Global | Lane::Module(_) | Lane::Release(_) | Lane::Aside(_) => None,
        });
        let mut reports: BTreeMap<&QueueName, QueueReport> = self.empty_queues().collect();
        for (name, lane, tasks) in named {
            let status = tasks.front().map(|head| self.head_status(lane, head));
            let report = QueueReport {
                name: name.to_string(),
                status: status.unwrap_or_else(|| self.idle_status(name)),
                tasks: tasks.iter().map(|entry| self.task_report(entry, name)).collect(),
            };
            reports.insert(name, report);
        }
        std::iter::once(self.main_report())
            .chain(reports.into_values())
            .collect()
    }

    /// Every queue that a binding names, even if no task ever came into it.
    fn empty_queues(&self) -> impl Iterator<Item = (&QueueName, QueueReport)> {
        let named = self.of.bindings.iter().flat_map(|(_, config)| {
            let schedules = config.schedules.iter().map(|binding| &binding.queue);
            schedules.chain(config.kubernetes.iter().map(|binding| &binding.queue))
        });
        named.filter(|name| **name != QueueName::main()).map(|name| {
            let report = QueueReport {
                name: name.to_string(),
                status: self.idle_status(name),
                tasks: Vec::new(),
            };
            (name, report)
        })
    }

    /// The queue `main` is made of many lanes: the running modules in their order, then the modules whose turn will come,
    /// then the global lane.
    fn main_report(&self) -> QueueReport {
        let main = QueueName::main();
        let mut entries: Vec<(&Lane, &Entry)> = Vec::new();
        let lanes = |wanted: fn(&Lane) -> bool| self.of.lanes.all().filter(move |(lane, _)| wanted(lane));
        let position = |lane: &Lane| match lane {
            Lane::Module(name) => self.of.modules.get(name).map(|unit| unit.found().order),
            Lane::Global | Lane::Release(_) | Lane::Named(_) | Lane::Aside(_) => None,
        };
        for (lane, tasks) in lanes(|lane| matches!(lane, Lane::Module(_) | Lane::Release(_) | Lane::Aside(_))) {
            entries.extend(tasks.iter().map(|entry| (lane, entry)));
        }
        entries.sort_by_key(|(lane, _)| position(lane));
        let mut tasks: Vec<_> = entries
            .iter()
            .map(|(_, entry)| self.task_report(entry, &main))
            .collect();
        tasks.extend(self.waiting_turns(&main));
        let global = self.of.lanes.all().find(|(lane, _)| **lane == Lane::Global);
        let converging = self.of.converge.is_under_way();
        if let Some((_, global)) = global {
            let reports = global.iter().map(|entry| self.task_report(entry, &main));
            if converging {
                tasks.extend(reports);
            } else {
                tasks.splice(0..0, reports);
            }
        }
        QueueReport {
            name: main.to_string(),
            status: self.main_status(&entries),
            tasks,
        }
    }

    /// The status of `main`. In the original `main` has one head; here it has many, of which the most informative one is shown.
    fn main_status(&self, entries: &[(&Lane, &Entry)]) -> String {
        let global = self.of.lanes.head(&Lane::Global).map(|head| (&Lane::Global, head));
        let heads = entries.iter().copied().chain(global);
        let heads: Vec<_> = heads
            .filter(|(lane, entry)| self.of.lanes.head(lane).is_some_and(|head| std::ptr::eq(head, *entry)))
            .collect();
        let failing = heads.iter().find(|(_, head)| matches!(head.state(), State::Backoff(_)));
        let shown = failing.or_else(|| heads.first());
        shown.map_or_else(
            || self.idle_status(&QueueName::main()),
            |(lane, head)| self.head_status(lane, head),
        )
    }

    fn waiting_turns(&self, queue: &QueueName) -> Vec<TaskReport> {
        let reason = if self.of.converge.is_first_over() {
            RunReason::Converge
        } else {
            RunReason::Startup
        };
        let waiting = self
            .of
            .modules
            .in_order()
            .into_iter()
            .filter(|name| self.of.converge.is_under_way() && self.of.modules.is_waiting(name));
        let report = |name: ModuleName| {
            let task = Task::ModuleRun {
                module: name.clone(),
                reason,
            };
            TaskReport {
                kind: task.kind(self.of.cx.policy.mode),
                module: name.to_string(),
                hook: String::new(),
                description: self.describe(&task, queue),
            }
        };
        waiting.map(report).collect()
    }

    fn task_report(&self, entry: &Entry, queue: &QueueName) -> TaskReport {
        let mut description = self.describe(&entry.task, queue);
        if entry.failures > 0 {
            let error = entry.error.as_deref().unwrap_or_default();
            let _ = write!(description, ":failures {}:{error}", entry.failures);
        }
        TaskReport {
            kind: entry.task.kind(self.of.cx.policy.mode),
            module: entry.task.module().map(ToString::to_string).unwrap_or_default(),
            hook: entry.task.hook().map(|hook| hook.name.to_string()).unwrap_or_default(),
            description,
        }
    }

    fn describe(&self, task: &Task, queue: &QueueName) -> String {
        match task {
            Task::ModuleRun { module, reason } => {
                let unit = self.of.modules.get(module);
                let first = unit.is_some_and(|unit| unit.life().is_starting_up()) || *reason == RunReason::Startup;
                let startup = if first { ":doStartup" } else { "" };
                format!("ModuleRun:{queue}:{module}{startup}:{reason}")
            }
            Task::Hook(_)
            | Task::EnableKubernetes(_)
            | Task::EnableSchedules(_)
            | Task::AwaitFirstRuns
            | Task::Converge(_)
            | Task::ModuleDelete { .. }
            | Task::Purge { .. } => task.describe(queue, self.of.cx.policy.mode),
        }
    }

    /// The status of a queue without tasks, with the time as Go writes it.
    fn idle_status(&self, queue: &QueueName) -> String {
        let seconds = (self.of.cx.now.tick - self.of.lanes.idle_since(queue)).as_secs();
        let time = match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
            (0, 0, s) => format!("{s}s"),
            (0, m, s) => format!("{m}m{s}s"),
            (h, m, s) => format!("{h}h{m}m{s}s"),
        };
        format!("waiting for task {time}")
    }

    fn head_status(&self, lane: &Lane, head: &Entry) -> String {
        match head.state() {
            State::Running => match self.of.commits.waits(lane) {
                Some(wait) => format!("waits for {wait}"),
                None => "run first task".to_owned(),
            },
            State::Ready => format!("waits for {}", self.describe_wait_for_slot(head)),
            State::Parked => "run first task".to_owned(),
            State::Backoff(until) => {
                format!(
                    "sleep after fail for {}s",
                    (until - self.of.cx.now.tick).as_secs_f64().ceil()
                )
            }
            State::Held(until) => {
                let wait = (until - self.of.cx.now.tick).as_secs_f64().ceil();
                format!(
                    "sleep for {wait}s: {}",
                    self.of.lanes.describe_rate_limit(&self.of.cx, lane)
                )
            }
        }
    }

    fn module_reports(&self) -> Vec<ModuleReport> {
        let units = self
            .of
            .modules
            .in_order()
            .into_iter()
            .filter_map(|name| self.of.modules.get(&name));
        units.map(|unit| self.module_report(unit)).collect()
    }

    /// The modules that wait for the end of the trial, each with the reason.
    fn modules_held_by_trial(&self) -> Vec<String> {
        let held = self.of.modules.iter().filter_map(|unit| match unit.turn() {
            Turn::Held(hold) if unit.is_enabled() && hold.is_for_trial => {
                Some(format!("module '{}': {}", unit.name(), hold.reason))
            }
            Turn::Held(_) | Turn::Out | Turn::Waiting | Turn::Running | Turn::Passed | Turn::Failed | Turn::Late => {
                None
            }
        });
        held.collect()
    }
}
