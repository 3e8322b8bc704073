//! What holds up the start and a converge, in words.

use super::super::Operator;
use super::super::converge::Phase;
use super::super::enable::failed;
use super::super::task::{Lane, Task};

impl Operator {
    /// What the hooks without a module still have to do before the first converge, in words.
    pub(in super::super) fn describe_start(&self) -> Vec<String> {
        let head = self.queues.head(&Lane::Global);
        let own = head.and_then(|head| match &head.task {
            Task::EnableKubernetes(hook) => Some(format!("the monitors of {hook} to start{}", failed(head))),
            Task::Hook(task) => Some(match task.first_runs.first() {
                Some(first) => self.describe_first_run(*first),
                None => format!("{} ({}){}", task.hook, task.labels.binding, failed(head)),
            }),
            Task::Converge(_) => self.converge_waits(),
            Task::EnableSchedules(_)
            | Task::AwaitFirstRuns
            | Task::ModuleRun { .. }
            | Task::ModuleDelete { .. }
            | Task::Purge { .. } => None,
        });
        let elsewhere = self.monitors.awaited.iter().map(|id| self.describe_first_run(*id));
        own.into_iter().chain(elsewhere).collect()
    }

    /// What the converge under way waits for, in words.
    pub(in super::super) fn converge_waits(&self) -> Option<String> {
        let active = self.converge.active.as_ref()?;
        let of_stage = |stage: &str| match (self.doing.get(&Lane::Global), self.queues.head(&Lane::Global)) {
            (Some(doing), _) => format!("the hooks {stage} all modules: '{}'", doing.hook.name),
            (None, Some(head)) => format!("the hooks {stage} all modules{}", failed(head)),
            (None, None) => format!("the hooks {stage} all modules"),
        };
        Some(match &active.phase {
            _ if self.converge.restarts() => "what runs, to begin anew".to_owned(),
            Phase::Settling => "runs and removals from before it to end".to_owned(),
            Phase::BeforeAll(_) => of_stage("before"),
            Phase::Enabling => "the enabled scripts".to_owned(),
            Phase::Crds(_) => "CRDs to be put into the cluster".to_owned(),
            Phase::Conversions { .. } => "conversion webhooks to be put into the cluster".to_owned(),
            Phase::Modules(wave) => wave.describe(),
            Phase::AfterAll { .. } => of_stage("after"),
        })
    }
}
