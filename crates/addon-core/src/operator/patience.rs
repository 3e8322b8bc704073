//! Runs that hang, that is, take longer than `Policy::patience`: which runs, since when, and which slots they wait for.
//!
//! This file only reads state. The ways of the converge let other modules go on when a run hangs.

use clock::Tick;
use names::{HookId, ModuleName, MonitorId, Owner};

use super::converge::Phase;
use super::modules::Turn;
use super::monitors::Served;
use super::policy::Mode;
use super::query::Waiting;
use super::survey::Survey;
use super::task::{Entry, Lane, Slot, Task};
use crate::hook::config::Stage;
use crate::queue::State;

/// The time that a global hook may run while all modules wait for it, as a multiple of the patience. It is long,
/// because a start may be slow.
const HANGS: u32 = 5;

impl Survey<'_> {
    /// Whether the head of a module's lane has not advanced for so long that only modules that depend on it still wait for it.
    pub(super) fn hangs(&self, lane: &Lane) -> bool {
        let slots = self.of.jobs.hanging(&self.of.cx.policy);
        let head = self.of.lanes.head(lane);
        head.is_some_and(|head| self.has_hung(head, &slots))
    }

    /// The modules whose lanes hang (see `hangs`), by name.
    pub(super) fn hanging(&self) -> impl Iterator<Item = &ModuleName> {
        let slots = self.of.jobs.hanging(&self.of.cx.policy);
        let heads = self.of.lanes.heads();
        heads.filter_map(move |(lane, head)| lane.module().filter(|_| self.has_hung(head, &slots)))
    }

    fn has_hung(&self, head: &Entry, slots: &[Slot]) -> bool {
        let from = self.hangs_from(head, slots);
        from.is_some_and(|from| from <= self.of.cx.now.tick)
    }

    /// The time from which the head counts as hanging. `slots` are the kinds of slots of which all are held by jobs that hang.
    fn hangs_from(&self, head: &Entry, slots: &[Slot]) -> Option<Tick> {
        // In strict order all modules wait until the run ends.
        if self.of.cx.policy.strict_order {
            return None;
        }
        match head.state() {
            State::Running | State::Held(_) => Some(head.since + self.of.cx.policy.patience),
            State::Parked => {
                let awaited = self.awaited_since(head).chain([head.since]).min()?;
                Some(awaited + self.of.cx.policy.patience)
            }
            State::Backoff(_) => Some(head.queued + self.of.cx.policy.patience),
            // A slot of another kind will become free.
            State::Ready => {
                let starves = head.lacks().is_some_and(|slot| slots.contains(&slot));
                starves.then_some(self.of.cx.now.tick)
            }
        }
    }

    /// The starts of the first runs in other queues that the head of a module's lane waits for.
    fn awaited_since(&self, head: &Entry) -> impl Iterator<Item = Tick> {
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
        let slots = self.of.jobs.hanging(&self.of.cx.policy);
        let late_from = |head| self.hangs_from(head, &slots).filter(|at| *at > self.of.cx.now.tick);
        let heads = self.of.lanes.heads().filter(|_| waits);
        let lanes = heads.filter_map(|(lane, head)| Some((late_from(head)?, lane.module()?)));
        let run = lanes.min_by_key(|(at, _)| *at);
        let run = run.map(|(at, name)| (at, format!("module '{name}'")));
        let slot = self.of.jobs.next_late(&self.of.cx.policy);
        let slot = slot.map(|(at, holder)| (at, holder.words.to_owned()));
        let hook = self.hook_in_the_way().filter(|(_, at)| *at > self.of.cx.now.tick);
        let hook = hook.map(|(hook, at)| (at, self.of.cx.policy.mode.told(&hook).to_string()));
        let next = run.into_iter().chain(slot).chain(hook).min_by_key(|(at, _)| *at);
        next.map(|(at, run)| (at, Waiting::Patience(run)))
    }

    /// The text about the jobs that hold the slots which the head of a lane waits for, and since when.
    pub(super) fn describe_wait_for_slot(&self, head: &Entry) -> String {
        let Some(slot) = head.lacks() else {
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

/// Global hooks that all modules wait for.
impl Survey<'_> {
    /// The global hook that has held all modules up for too long, so that the operator goes on without it.
    pub(super) fn hook_to_pass(&self) -> Option<HookId> {
        let (hook, from) = self.hook_in_the_way()?;
        (from <= self.of.cx.now.tick).then_some(hook)
    }

    /// The global hook that fails or hangs and holds all modules up, if values of an earlier run may serve for it, and
    /// the time from which on they serve.
    fn hook_in_the_way(&self) -> Option<(HookId, Tick)> {
        let policy = &self.of.cx.policy;
        if policy.strict_order || policy.mode == Mode::Hooks || self.of.probation.is_on_trial() {
            return None;
        }
        let head = self.of.lanes.head(&Lane::Global)?;
        let starts = !self.of.converge.is_first_over();
        match &head.task {
            Task::Hook(task) if starts || self.of.lanes.is_aside(&task.hook.name) => self.goes_aside(&task.hook, head),
            Task::EnableKubernetes(hook) if starts => self.goes_aside(hook, head),
            Task::AwaitFirstRuns => {
                let awaited = self.of.monitors.awaited().filter_map(|id| self.awaited_in_vain(id));
                awaited.min_by_key(|(_, from)| *from)
            }
            Task::Converge(_) => match self.of.converge.phase() {
                Some(Phase::BeforeAll(next)) => {
                    let hooks = self.of.bindings.global_hooks(Stage::BeforeAll);
                    self.may_be_passed(hooks.get(*next)?, &Lane::Global)
                }
                _ => None,
            },
            Task::Hook(_)
            | Task::EnableKubernetes(_)
            | Task::EnableSchedules(_)
            | Task::ModuleRun { .. }
            | Task::ModuleDelete { .. }
            | Task::Purge { .. } => None,
        }
    }

    /// The hook of the task at the head of the global lane, and the time from which on the task may go aside. If
    /// earlier tasks of the hook are aside, a task that has not started follows them at once.
    fn goes_aside(&self, hook: &HookId, head: &Entry) -> Option<(HookId, Tick)> {
        if self.of.lanes.is_aside(&hook.name) && !head.is_active() {
            return Some((hook.clone(), self.of.cx.now.tick));
        }
        self.may_be_passed(hook, &Lane::Global)
    }

    /// The hook whose first run in another queue is awaited while the head of that queue fails or hangs, and the time
    /// from which on the operator goes on without it.
    fn awaited_in_vain(&self, id: MonitorId) -> Option<(HookId, Tick)> {
        let Served { hook, binding, .. } = self.of.monitors.binding_of(&self.of.bindings, id)?;
        if self.of.stand_ins.serves(&hook.name) {
            return Some((hook.clone(), self.of.cx.now.tick));
        }
        self.may_be_passed(hook, &Lane::of(&hook.owner, &binding.queue))
    }

    fn may_be_passed(&self, hook: &HookId, lane: &Lane) -> Option<(HookId, Tick)> {
        let (head, patience) = (self.of.lanes.head(lane)?, self.of.cx.policy.patience);
        let from = match head.state() {
            State::Backoff(_) => head.queued + patience,
            // The hook has ended and its patches wait, or another task of it is in the way.
            State::Running if self.of.commits.waits(lane).is_some() || self.of.lanes.is_aside(&hook.name) => {
                return None;
            }
            State::Running => self.of.lanes.doing(lane)?.began + patience * HANGS,
            State::Ready | State::Parked | State::Held(_) => return None,
        };
        self.of.stand_ins.are_known(&hook.name).then(|| (hook.clone(), from))
    }

    /// The global hooks that fail or hang while the values of their last good run serve for them, as texts for people.
    pub(super) fn old_values(&self) -> Vec<String> {
        let served = self.of.stand_ins.served();
        let told = served.map(|(name, as_of)| {
            let hook = HookId {
                owner: Owner::Global,
                name: name.clone(),
            };
            let deed = self.error_of(&hook).map_or("does not end", |_| "fails");
            format!("global hook '{name}' {deed}, so its values are as of {as_of}")
        });
        told.collect()
    }

    /// The error of the last run of a global hook that fails.
    pub(super) fn error_of(&self, hook: &HookId) -> Option<&str> {
        let is_its = |head: &Entry| head.task.hook() == Some(hook) || head.task.is_converge();
        let mut heads = self.of.lanes.heads().filter(|(_, head)| is_its(head));
        heads.find_map(|(_, head)| head.error.as_deref())
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
