//! The texts about the waits of the start and of a converge.

use names::ModuleName;

use super::super::converge::Phase;
use super::super::converge::wave::Wave;
use super::super::policy::Mode;
use super::super::survey::{Survey, failed};
use super::super::task::{Lane, Task};
use crate::queue::State;

impl Survey<'_> {
    /// The obstacles of the start, by name.
    pub(in crate::operator) fn start_waits(&self) -> Vec<String> {
        let mode = self.of.cx.policy.mode;
        let mut waiting = Vec::new();
        if !self.of.directories.are_known() {
            let directories = match mode {
                Mode::Addons => "the modules directories are being read",
                Mode::Hooks => "the hooks directory is being read",
            };
            waiting.push(directories.to_owned());
        }
        if mode == Mode::Addons && !self.of.config.has_readings() && !self.of.startup.has_begun() {
            waiting.push("the ConfigMap has not been read yet".to_owned());
        }
        waiting.extend(self.of.chores.waiting(mode));
        waiting
    }

    /// The texts about the hooks without a module that have still to run before the first converge.
    pub(in crate::operator) fn describe_start(&self) -> Vec<String> {
        let (head, mode) = (self.of.lanes.head(&Lane::Global), self.of.cx.policy.mode);
        let own = head.and_then(|head| match &head.task {
            Task::EnableKubernetes(hook) => {
                let hook = mode.told(hook);
                Some(format!("the monitors of {hook} to start{}", failed(head)))
            }
            Task::Hook(task) => Some(match task.first_runs.first() {
                Some(first) => self.describe_first_run(*first),
                None => format!("{} ({}){}", mode.told(&task.hook), task.labels.cause, failed(head)),
            }),
            Task::Converge(_) => self.converge_waits(),
            Task::EnableSchedules(_)
            | Task::AwaitFirstRuns
            | Task::ModuleRun { .. }
            | Task::ModuleDelete { .. }
            | Task::Purge { .. } => None,
        });
        let elsewhere = self.of.monitors.awaited().map(|id| self.describe_first_run(id));
        own.into_iter().chain(elsewhere).collect()
    }

    /// The text about the modules that the converge waits for, and the step of each.
    fn wave_waits(&self, wave: &Wave) -> String {
        let strict = self.of.cx.policy.strict_order;
        let is_over = |name: &&ModuleName| self.of.modules.is_over(name, strict);
        let at = |name: &ModuleName| {
            let head = self.of.lanes.head(&Lane::Module(name.clone()));
            match head.filter(|head| head.state() != State::Ready) {
                Some(_) => format!("'{name}' ({})", self.module_waits_for(name)),
                None => format!("'{name}'"),
            }
        };
        match (wave.removing(), wave.group()) {
            (Some(name), _) => format!("module {} to be removed", at(name)),
            (None, Some(group)) => {
                let names: Vec<_> = group.iter().filter(|name| !is_over(name)).map(at).collect();
                format!("modules {}", names.join(", "))
            }
            (None, None) => "modules".to_owned(),
        }
    }

    /// The reason of the running converge's wait, as a text for people.
    pub(in crate::operator) fn converge_waits(&self) -> Option<String> {
        let phase = self.of.converge.phase()?;
        let of_stage = |stage: &str| match (self.of.lanes.doing(&Lane::Global), self.of.lanes.head(&Lane::Global)) {
            (Some(doing), _) => format!("the hooks {stage} all modules: '{}'", doing.hook.name),
            (None, Some(head)) => format!("the hooks {stage} all modules{}", failed(head)),
            (None, None) => format!("the hooks {stage} all modules"),
        };
        Some(match phase {
            _ if self.of.converge.restarts() => "what runs, to begin anew".to_owned(),
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
