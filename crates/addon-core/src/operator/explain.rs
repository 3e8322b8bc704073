//! What people see: queues, modules, values, and what each waits for, by name.

mod converge;
mod module;
pub(super) mod survey;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use self::survey::Survey;
use super::Operator;
use super::converge::Phase;
use super::modules::{Turn, Unit};
use super::policy::Mode;
use super::query::{Answer, ChannelReport, ModuleReport, Query, QueueReport, Secrets, Status, TaskReport};
use super::standing::Standing;
use super::task::{Lane, RunReason, Task};
use crate::name::{ModuleName, Owner, QueueName};
use crate::queue::{Entry, State};

impl Operator {
    pub(super) fn explain(&self, query: &Query) -> Answer {
        match query {
            Query::Status => Answer::Status(self.status()),
            Query::Health => Answer::Health(self.health()),
            Query::Queues => Answer::Queues(self.queue_reports()),
            Query::Modules => Answer::Modules(self.module_reports()),
            Query::Values {
                module,
                with_global,
                secrets,
            } => self.document(module.as_ref(), *with_global, |operator, owner| {
                operator.section_shown(owner, &operator.values.effective(owner), *secrets)
            }),
            Query::ConfigValues {
                module,
                with_global,
                secrets,
            } => self.document(module.as_ref(), *with_global, |operator, owner| {
                let section = operator.values.config_section(owner);
                section.map_or(Value::Null, |section| operator.section_shown(owner, &section, *secrets))
            }),
            Query::ReleaseValues(module) => self
                .release_values(module)
                .map_or(Answer::NoSuchModule, Answer::ReleaseValues),
            Query::Patches { module, secrets } => self.document(module.as_ref(), false, |operator, owner| {
                let patches = operator.values.patches(owner);
                match secrets {
                    _ if patches.is_empty() => Value::Null,
                    Secrets::Shown => json!(patches),
                    Secrets::Masked => operator.values.masked_patches(owner),
                }
            }),
            Query::Monitors(owner) => self.monitor_report(owner),
            Query::Channel => Answer::Channel(ChannelReport {
                settings: self.channel_settings(),
                activity: self.activity(),
            }),
            Query::GlobalHooks => {
                let hooks = self.bindings.of_owner(&Owner::Global);
                let names = hooks.map(|(id, _)| id.name.as_str());
                Answer::Document(names.collect())
            }
        }
    }

    fn section_shown(&self, owner: &Owner, section: &Value, secrets: Secrets) -> Value {
        match secrets {
            Secrets::Shown => section.clone(),
            Secrets::Masked => self.values.masked(owner, section),
        }
    }

    fn monitor_report(&self, owner: &Owner) -> Answer {
        if owner.module().is_some_and(|name| !self.modules.contains_key(name)) {
            return Answer::NoSuchModule;
        }
        let hooks = self.bindings.of_owner(owner);
        Answer::Monitors(
            hooks
                .map(|(id, _)| (id.name.clone(), self.monitors.watched(&self.bindings, id)))
                .collect(),
        )
    }

    fn document(
        &self,
        module: Option<&ModuleName>,
        with_global: bool,
        part: impl Fn(&Self, &Owner) -> Value,
    ) -> Answer {
        let owner = match module {
            None => Owner::Global,
            Some(name) if self.modules.contains_key(name) => Owner::Module(name.clone()),
            Some(_) => return Answer::NoSuchModule,
        };
        let own = part(self, &owner);
        if !with_global || owner == Owner::Global {
            return Answer::Document(own);
        }
        Answer::Document(json!({ "global": part(self, &Owner::Global), owner.values_key(): own }))
    }

    fn status(&self) -> Status {
        let mut waiting = self.startup.waiting(self.cx.policy.mode, &self.config.readings);
        waiting.extend(self.config.readings.waiting());
        waiting.extend(self.sources.waiting());
        waiting.extend(self.probation.waiting());
        if self.standing == Standing::Standby {
            waiting.insert(0, "to be elected leader".to_owned());
        }
        waiting.extend(self.reviews.publication.waiting());
        let ready = match self.cx.policy.mode {
            Mode::Addons => self.converge.first_done,
            Mode::Hooks => self.startup.begun,
        };
        if !ready {
            waiting.extend(self.describe_start());
        }
        Status {
            not_started: !ready && self.converge.active.is_none(),
            ready,
            converge_tasks: self.converge_tasks(),
            waiting,
            config_problems: self.config.problems.clone(),
            held: self.held_removals(),
            held_upgrades: self.held_upgrades(),
            held_by_trial: self.modules_held_by_trial(),
            config_lost: self.config.losses.releases().to_vec(),
            unkept: self.config.unkept.clone(),
            late: self.late(),
        }
    }

    /// The converge itself and the modules that it has still to get through.
    fn converge_tasks(&self) -> usize {
        let Some(active) = &self.converge.active else { return 0 };
        let pending = |unit: &&Unit| unit.turn.is_awaited();
        let modules = match active.phase {
            Phase::Crds(_) | Phase::Conversions { .. } | Phase::Modules(_) => {
                self.modules.values().filter(pending).count()
            }
            Phase::Settling | Phase::BeforeAll(_) | Phase::Enabling | Phase::AfterAll { .. } => 0,
        };
        modules + 1
    }

    /// `main` first, then the named queues.
    fn queue_reports(&self) -> Vec<QueueReport> {
        let named = self.lanes.all().filter_map(|(lane, tasks)| match lane {
            Lane::Named(name) => Some((name, lane, tasks)),
            Lane::Global | Lane::Module(_) | Lane::Release(_) => None,
        });
        let mut reports: BTreeMap<&QueueName, QueueReport> = self.empty_queues().collect();
        for (name, lane, tasks) in named {
            let status = tasks.front().map(|head| self.head_status(lane, head));
            let report = QueueReport {
                name: name.to_string(),
                status: status.unwrap_or_default(),
                tasks: tasks.iter().map(|entry| self.task_report(entry, name)).collect(),
            };
            reports.insert(name, report);
        }
        std::iter::once(self.main_report())
            .chain(reports.into_values())
            .collect()
    }

    /// Every queue that a binding names, whether it was ever used or not.
    fn empty_queues(&self) -> impl Iterator<Item = (&QueueName, QueueReport)> {
        let named = self.bindings.iter().flat_map(|(_, config)| {
            let schedules = config.schedules.iter().map(|binding| &binding.queue);
            schedules.chain(config.kubernetes.iter().map(|binding| &binding.queue))
        });
        named.filter(|name| **name != QueueName::main()).map(|name| {
            let report = QueueReport {
                name: name.to_string(),
                status: String::new(),
                tasks: Vec::new(),
            };
            (name, report)
        })
    }

    /// All lanes that the name `main` stands for: modules in their order, then those whose turn will come, then what
    /// is global.
    fn main_report(&self) -> QueueReport {
        let main = QueueName::main();
        let mut entries: Vec<(&Lane, &Entry<Task>)> = Vec::new();
        let lanes = |wanted: fn(&Lane) -> bool| self.lanes.all().filter(move |(lane, _)| wanted(lane));
        let position = |lane: &Lane| match lane {
            Lane::Module(name) => self.modules.get(name).map(|unit| unit.found.order),
            Lane::Global | Lane::Release(_) | Lane::Named(_) => None,
        };
        for (lane, tasks) in lanes(|lane| matches!(lane, Lane::Module(_) | Lane::Release(_))) {
            entries.extend(tasks.iter().map(|entry| (lane, entry)));
        }
        entries.sort_by_key(|(lane, _)| position(lane));
        let mut tasks: Vec<_> = entries
            .iter()
            .map(|(_, entry)| self.task_report(entry, &main))
            .collect();
        tasks.extend(self.waiting_turns(&main));
        let global = self.lanes.all().find(|(lane, _)| **lane == Lane::Global);
        let converging = self.converge.active.is_some();
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

    /// The original has one head in `main`; of ours the most telling one is shown.
    fn main_status(&self, entries: &[(&Lane, &Entry<Task>)]) -> String {
        let global = self.lanes.head(&Lane::Global).map(|head| (&Lane::Global, head));
        let heads = entries.iter().copied().chain(global);
        let heads: Vec<_> = heads
            .filter(|(lane, entry)| self.lanes.head(lane).is_some_and(|head| std::ptr::eq(head, *entry)))
            .collect();
        let failing = heads.iter().find(|(_, head)| matches!(head.state(), State::Backoff(_)));
        let shown = failing.or_else(|| heads.first());
        shown
            .map(|(lane, head)| self.head_status(lane, head))
            .unwrap_or_default()
    }

    fn waiting_turns(&self, queue: &QueueName) -> Vec<TaskReport> {
        let reason = if self.converge.first_done {
            RunReason::Converge
        } else {
            RunReason::Startup
        };
        let waiting = self.modules_in_order().into_iter().filter(|name| {
            self.converge.active.is_some() && self.modules.get(name).is_some_and(|unit| unit.turn == Turn::Waiting)
        });
        let report = |name: ModuleName| {
            let task = Task::ModuleRun {
                module: name.clone(),
                reason,
            };
            TaskReport {
                kind: task.kind(self.cx.policy.mode),
                module: name.to_string(),
                hook: String::new(),
                description: self.describe(&task, queue),
            }
        };
        waiting.map(report).collect()
    }

    fn task_report(&self, entry: &Entry<Task>, queue: &QueueName) -> TaskReport {
        let mut description = self.describe(&entry.task, queue);
        if entry.failures > 0 {
            let error = entry.error.as_deref().unwrap_or_default();
            let _ = write!(description, ":failures {}:{error}", entry.failures);
        }
        TaskReport {
            kind: entry.task.kind(self.cx.policy.mode),
            module: entry.task.module().map(ToString::to_string).unwrap_or_default(),
            hook: entry.task.hook().map(|hook| hook.name.to_string()).unwrap_or_default(),
            description,
        }
    }

    fn describe(&self, task: &Task, queue: &QueueName) -> String {
        match task {
            Task::ModuleRun { module, reason } => {
                let unit = self.modules.get(module);
                let first = unit.is_some_and(|unit| unit.life.is_starting_up()) || *reason == RunReason::Startup;
                let startup = if first { ":doStartup" } else { "" };
                format!("ModuleRun:{queue}:{module}{startup}:{reason}")
            }
            Task::Hook(_)
            | Task::EnableKubernetes(_)
            | Task::EnableSchedules(_)
            | Task::AwaitFirstRuns
            | Task::Converge(_)
            | Task::ModuleDelete { .. }
            | Task::Purge { .. } => task.describe(queue, self.cx.policy.mode),
        }
    }

    fn head_status(&self, lane: &Lane, head: &Entry<Task>) -> String {
        match head.state() {
            State::Running => match self.commits.waits(lane) {
                Some(wait) => format!("waits for {wait}"),
                None => "run first task".to_owned(),
            },
            State::Ready => format!("waits for {}", self.describe_wait_for_slot(head)),
            State::Parked => "run first task".to_owned(),
            State::Backoff(until) => {
                format!(
                    "sleep after fail for {}s",
                    (until - self.cx.now.tick).as_secs_f64().ceil()
                )
            }
            State::Held(until) => {
                let wait = (until - self.cx.now.tick).as_secs_f64().ceil();
                format!("sleep for {wait}s: {}", self.lanes.describe_rate_limit(lane))
            }
        }
    }

    fn module_reports(&self) -> Vec<ModuleReport> {
        let units = self
            .modules_in_order()
            .into_iter()
            .filter_map(|name| self.modules.get(&name));
        let survey = Survey::of(self);
        units.map(|unit| self.module_report(unit, &survey)).collect()
    }

    /// The first runs in other queues that a module waits for.
    fn outstanding(&self, unit: &Unit) -> Vec<String> {
        let elsewhere = unit.life.first_runs_elsewhere().into_iter();
        elsewhere.map(|id| self.describe_first_run(id)).collect()
    }
}
