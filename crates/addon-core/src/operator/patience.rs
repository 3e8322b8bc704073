//! Runs that do not get on: those behind them are let go, and what they occupy is lent to others. They count when they end.
//!
//! Must never end a run, and never let anybody go on who needs the one that hangs.

use super::Operator;
use super::converge::{Look, Phase};
use super::effect::Notice;
use super::jobs::Slot;
use super::modules::Turn;
use super::query::Waiting;
use super::task::{Lane, Task};
use crate::module::lifecycle::Step;
use crate::name::ModuleName;
use crate::queue::{Entry, State};
use crate::time::Tick;

impl Operator {
    /// Slots that runs have held for long are lent to others. Runs that take up more room than may be lent keep theirs.
    pub(super) fn lend_slots(&mut self) {
        let patience = self.cx.policy.patience;
        for id in self.jobs.grow_late(self.cx.now.tick, patience) {
            let Some(holder) = self.jobs.holder(id) else { continue };
            let notice = Notice::RunLate {
                run: holder.words.to_owned(),
                waited: self.cx.now.tick - holder.since,
            };
            self.cx.tell(notice);
        }
    }

    /// The head of a module's lane has not got on for so long that nobody waits for it who does not need it.
    pub(super) fn hangs(&self, lane: &Lane) -> bool {
        self.hangs_from(lane).is_some_and(|from| from <= self.cx.now.tick)
    }

    fn hangs_from(&self, lane: &Lane) -> Option<Tick> {
        // In strict order all wait to its end.
        if self.cx.policy.strict_order {
            return None;
        }
        let head = self.lanes.head(lane)?;
        match head.state() {
            State::Running | State::Held(_) => Some(head.since + self.cx.policy.patience),
            State::Parked => {
                let awaited = self.awaited_since(head).chain([head.since]).min()?;
                Some(awaited + self.cx.policy.patience)
            }
            State::Backoff(_) => Some(head.queued + self.cx.policy.patience),
            // Slots come back, unless all who have them hang.
            State::Ready => {
                let starves = self
                    .wanted_slot(head)
                    .is_some_and(|slot| self.jobs.all_hang(slot, &self.cx.policy));
                starves.then_some(self.cx.now.tick)
            }
        }
    }

    /// Waits until no run or removal of a module is under way; failed ones that wait for their time are dropped. One that
    /// hangs is left to itself, and begins anew when it has come to the end of its step.
    pub(super) fn settle(&mut self) -> Look {
        let waits = |state: State| matches!(state, State::Parked | State::Held(_));
        let under_way = |task: &Task| task.module_at_work().is_some();
        // A run that waits for a first run in another queue, or for the rate limit of a hook, may wait for long. It is taken
        // up again where it is, or begins anew.
        let busy = self
            .lanes
            .heads()
            .filter(|(_, head)| under_way(&head.task) && head.is_active() && !waits(head.state()));
        let busy: Vec<Lane> = busy.map(|(lane, _)| lane.clone()).collect();
        if busy.iter().any(|lane| !self.hangs(lane)) {
            return Look::Waits;
        }
        for lane in &busy {
            self.lanes.renew(&self.cx, lane);
        }
        self.drop_waiting_runs();
        self.enter(Phase::BeforeAll(0))
    }

    /// Since when the first runs in other queues are under way for which the head of a module's lane waits.
    fn awaited_since(&self, head: &Entry<Task>) -> impl Iterator<Item = Tick> {
        let unit = head.task.module().and_then(|module| self.modules.get(module));
        let awaited = unit.map(|unit| unit.life.first_runs_elsewhere()).unwrap_or_default();
        let runs = awaited.into_iter().filter_map(|id| self.queued_first_run(id));
        runs.filter(|run| run.state() == State::Running).map(|run| run.since)
    }

    /// Modules whose runs hang hold up nobody of this converge any longer. True if there are such that did before.
    pub(super) fn leave_behind(&mut self) -> bool {
        let hangs = |name: &ModuleName| self.hangs(&Lane::Module(name.clone()));
        let running = self.modules.values().filter(|unit| unit.turn == Turn::Running);
        let names = running.map(|unit| unit.found.name.clone()).filter(hangs);
        let names: Vec<ModuleName> = names.collect();
        let found = !names.is_empty();
        for name in names {
            if let Some(unit) = self.modules.get_mut(&name) {
                unit.turn = Turn::Late;
            }
            let notice = Notice::ModuleLate {
                waits_for: self.module_waits_for(&name),
                module: name,
            };
            self.cx.tell(notice);
        }
        found
    }

    /// When patience ends with a run that is waited for.
    pub(super) fn patience_timeout(&self) -> Option<(Tick, Waiting)> {
        let waits = self.converge.active.as_ref().is_some_and(|active| {
            matches!(active.phase, Phase::Settling | Phase::Modules(_)) || self.converge.restarts()
        });
        let lanes = self.lanes.all().filter_map(|(lane, _)| match lane {
            Lane::Module(name) if waits => {
                Some((self.hangs_from(lane)?, Waiting::Patience(format!("module '{name}'"))))
            }
            Lane::Module(_) | Lane::Global | Lane::Release(_) | Lane::Named(_) => None,
        });
        let to_come = lanes.filter(|(at, _)| *at > self.cx.now.tick);
        let slots = self.jobs.next_late(&self.cx.policy);
        let slots = slots.map(|(at, holder)| (at, Waiting::Patience(holder.words.to_owned())));
        to_come.chain(slots).min_by_key(|(at, _)| *at)
    }

    /// The slot that the head of a lane needs before it can go on.
    fn wanted_slot(&self, head: &Entry<Task>) -> Option<Slot> {
        match &head.task {
            Task::Hook(_) => Some(Slot::Hook),
            Task::Purge { .. } => Some(Slot::Helm),
            Task::ModuleRun { module, .. } | Task::ModuleDelete { module } => {
                let unit = self.modules.get(module)?;
                let mut life = unit.life.clone();
                if !head.begun && head.task.is_run() {
                    life.begin_run();
                }
                match life.step(&unit.order, self.facts(module)) {
                    Step::Configure | Step::Hook(..) | Step::FirstRun(_) => Some(Slot::Hook),
                    Step::EnsureConversions | Step::Release | Step::Uninstall => Some(Slot::Helm),
                    Step::EnsureCrds | Step::Watch(_) | Step::AwaitFirstRuns | Step::Done => None,
                }
            }
            Task::EnableKubernetes(_) | Task::EnableSchedules(_) | Task::AwaitFirstRuns | Task::Converge(_) => None,
        }
    }

    /// The reason for which the head of a lane has no slot: the jobs that have them, and since when.
    pub(super) fn describe_wait_for_slot(&self, head: &Entry<Task>) -> String {
        let Some(slot) = self.wanted_slot(head) else {
            return "a free slot".to_owned();
        };
        let holders = self.jobs.holders(slot).map(|holder| {
            let seconds = (self.cx.now.tick - holder.since).as_secs();
            format!("{} for {seconds}s", holder.words)
        });
        match holders.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => format!("a free slot for {}", slot.describe()),
            by => format!("a free slot for {}, held by {by}", slot.describe()),
        }
    }

    /// The modules that others go on without, each with what it waits for.
    pub(super) fn late(&self) -> Vec<String> {
        let units = self
            .modules
            .values()
            .filter(|unit| unit.enabled && unit.turn == Turn::Late);
        let names = units.map(|unit| &unit.found.name);
        names
            .map(|name| format!("module '{name}': {}", self.module_waits_for(name)))
            .collect()
    }

    /// Nothing is asked of a module any more whose run is only at the end of a step.
    pub(super) fn is_disowned(&self, lane: &Lane) -> bool {
        let Some(Task::ModuleRun { module, .. }) = self.lanes.head(lane).map(|head| &head.task) else {
            return false;
        };
        !self.modules.get(module).is_some_and(|unit| unit.enabled)
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
