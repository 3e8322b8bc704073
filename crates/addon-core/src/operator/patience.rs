//! Runs that hang, that is, take longer than `Policy::patience`: which runs, since when, and which slots they wait for.
//!
//! This file only reads state. The ways of the converge let other modules go on when a run hangs.

use super::converge::Phase;
use super::jobs::Slot;
use super::modules::Turn;
use super::query::Waiting;
use super::survey::Survey;
use super::task::{Lane, Task};
use crate::module::lifecycle::ModuleStep;
use crate::queue::{Entry, State};
use crate::time::Tick;

impl Survey<'_> {
    /// Whether the head of a module's lane has not advanced for so long that only modules that depend on it still wait for it.
    pub(super) fn hangs(&self, lane: &Lane) -> bool {
        self.hangs_from(lane).is_some_and(|from| from <= self.of.cx.now.tick)
    }

    fn hangs_from(&self, lane: &Lane) -> Option<Tick> {
        // In strict order all modules wait until the run ends.
        if self.of.cx.policy.strict_order {
            return None;
        }
        let head = self.of.lanes.head(lane)?;
        match head.state() {
            State::Running | State::Held(_) => Some(head.since + self.of.cx.policy.patience),
            State::Parked => {
                let awaited = self.awaited_since(head).chain([head.since]).min()?;
                Some(awaited + self.of.cx.policy.patience)
            }
            State::Backoff(_) => Some(head.queued + self.of.cx.policy.patience),
            // A slot will become free, unless all jobs with slots hang. This is asked first, because it is known without a look
            // at the module, and hundreds of modules may wait.
            State::Ready => {
                let all_hang = |slot| self.of.jobs.all_hang(slot, &self.of.cx.policy);
                let may_starve = all_hang(Slot::Hook) || all_hang(Slot::Helm);
                let starves = may_starve && self.wanted_slot(head).is_some_and(all_hang);
                starves.then_some(self.of.cx.now.tick)
            }
        }
    }

    /// The starts of the first runs in other queues that the head of a module's lane waits for.
    fn awaited_since(&self, head: &Entry<Task>) -> impl Iterator<Item = Tick> {
        let unit = head.task.module().and_then(|module| self.of.modules.get(module));
        let awaited = unit.map(|unit| unit.life().first_runs_elsewhere()).unwrap_or_default();
        let runs = awaited.into_iter().filter_map(|id| self.queued_first_run(id));
        runs.filter(|run| run.state() == State::Running).map(|run| run.since)
    }

    /// The time at which the next run will count as hanging, among the runs for which other modules wait.
    pub(super) fn patience_timeout(&self) -> Option<(Tick, Waiting)> {
        let phase = self.of.converge.phase();
        let waits = phase
            .is_some_and(|phase| matches!(phase, Phase::Settling | Phase::Modules(_)) || self.of.converge.restarts());
        let late_from = |lane| self.hangs_from(lane).filter(|at| *at > self.of.cx.now.tick);
        let lanes = self.of.lanes.all().filter_map(|(lane, _)| match lane {
            Lane::Module(name) if waits => Some((late_from(lane)?, name)),
            Lane::Module(_) | Lane::Global | Lane::Release(_) | Lane::Named(_) => None,
        });
        let run = lanes.min_by_key(|(at, _)| *at);
        let run = run.map(|(at, name)| (at, format!("module '{name}'")));
        let slot = self.of.jobs.next_late(&self.of.cx.policy);
        let slot = slot.map(|(at, holder)| (at, holder.words.to_owned()));
        let next = run.into_iter().chain(slot).min_by_key(|(at, _)| *at);
        next.map(|(at, run)| (at, Waiting::Patience(run)))
    }

    /// The kind of slot that the head of a lane needs to advance.
    fn wanted_slot(&self, head: &Entry<Task>) -> Option<Slot> {
        match &head.task {
            Task::Hook(_) => Some(Slot::Hook),
            Task::Purge { .. } => Some(Slot::Helm),
            Task::ModuleRun { module, .. } | Task::ModuleDelete { module, .. } => {
                let unit = self.of.modules.get(module)?;
                let mut life = unit.life().clone();
                if !head.begun && head.task.is_run() {
                    life.begin_run();
                }
                match life.step(unit.order(), self.facts(module)) {
                    ModuleStep::Configure | ModuleStep::Hook(..) | ModuleStep::FirstRun(_) => Some(Slot::Hook),
                    ModuleStep::EnsureConversions | ModuleStep::Release | ModuleStep::Uninstall => Some(Slot::Helm),
                    ModuleStep::EnsureCrds | ModuleStep::Watch(_) | ModuleStep::AwaitFirstRuns | ModuleStep::Done => {
                        None
                    }
                }
            }
            Task::EnableKubernetes(_) | Task::EnableSchedules(_) | Task::AwaitFirstRuns | Task::Converge(_) => None,
        }
    }

    /// The text about the jobs that hold the slots which the head of a lane waits for, and since when.
    pub(super) fn describe_wait_for_slot(&self, head: &Entry<Task>) -> String {
        let Some(slot) = self.wanted_slot(head) else {
            return "a free slot".to_owned();
        };
        let holders = self.of.jobs.holders(slot).map(|holder| {
            let seconds = (self.of.cx.now.tick - holder.since).as_secs();
            format!("{} for {seconds}s", holder.words)
        });
        match holders.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => format!("a free slot for {}", slot.describe()),
            by => format!("a free slot for {}, held by {by}", slot.describe()),
        }
    }

    /// The modules whose runs hang, each with the reason of its wait.
    pub(super) fn late(&self) -> Vec<String> {
        let names = self
            .of
            .modules
            .names_of(|unit| unit.is_enabled() && *unit.turn() == Turn::Late);
        let late = names.iter();
        late.map(|name| format!("module '{name}': {}", self.module_waits_for(name)))
            .collect()
    }
}

impl Slot {
    fn describe(self) -> &'static str {
        match self {
            Self::Hook => "hooks",
            Self::Helm => "helm",
            Self::Review => "hooks that the API server asks",
            Self::None => "nothing",
        }
    }
}
