//! What holds up the start and a converge, in words.

use super::super::Operator;
use super::super::converge::Phase;
use super::super::enable::failed;
use super::super::task::{Lane, Task};
use super::super::wave::Wave;
use crate::name::ModuleName;
use crate::queue::State;

impl Operator {
    /// What the hooks without a module still have to do before the first converge, in words.
    pub(in super::super) fn describe_start(&self) -> Vec<String> {
        let head = self.lanes.head(&Lane::Global);
        let own = head.and_then(|head| match &head.task {
            Task::EnableKubernetes(hook) => Some(format!("the monitors of {hook} to start{}", failed(head))),
            Task::Hook(task) => Some(match task.first_runs.first() {
                Some(first) => self.describe_first_run(*first),
                None => format!("{} ({}){}", task.hook, task.labels.cause, failed(head)),
            }),
            Task::Converge(_) => self.converge_waits(),
            Task::EnableSchedules(_)
            | Task::AwaitFirstRuns
            | Task::ModuleRun { .. }
            | Task::ModuleDelete { .. }
            | Task::Purge { .. } => None,
        });
        let elsewhere = self.monitors.awaited().map(|id| self.describe_first_run(id));
        own.into_iter().chain(elsewhere).collect()
    }

    /// The modules that it waits for, and the step of each.
    fn wave_waits(&self, wave: &Wave) -> String {
        let strict = self.cx.policy.strict_order;
        let is_over = |name: &&ModuleName| self.modules.get(*name).is_none_or(|unit| unit.turn.is_over(strict));
        let at = |name: &ModuleName| {
            let head = self.lanes.head(&Lane::Module(name.clone()));
            match head.filter(|head| head.state() != State::Ready) {
                Some(_) => format!("'{name}' ({})", self.module_waits_for(name)),
                None => format!("'{name}'"),
            }
        };
        match (&wave.removing, wave.groups.front()) {
            (Some(name), _) => format!("module {} to be removed", at(name)),
            (None, Some(group)) => {
                let names: Vec<_> = group.iter().filter(|name| !is_over(name)).map(at).collect();
                format!("modules {}", names.join(", "))
            }
            (None, None) => "modules".to_owned(),
        }
    }

    /// What the converge under way waits for, in words.
    pub(in super::super) fn converge_waits(&self) -> Option<String> {
        let active = self.converge.active.as_ref()?;
        let of_stage = |stage: &str| match (self.lanes.doing(&Lane::Global), self.lanes.head(&Lane::Global)) {
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
            Phase::Modules(wave) => self.wave_waits(wave),
            Phase::AfterAll { .. } => of_stage("after"),
        })
    }
}
