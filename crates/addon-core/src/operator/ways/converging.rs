//! The way of a converge through its phases, at the head of the global lane.

use std::collections::BTreeSet;

use names::{HookName, ModuleName, Owner};

use crate::failure::{Class, Failure};
use crate::hook::config::Stage;
use crate::operator::Operator;
use crate::operator::converge::{Look, Phase};
use crate::operator::effect::{Job, Notice};
use crate::operator::lanes::Admission;
use crate::operator::modules::Turn;
use crate::operator::policy::Mode;
use crate::operator::query::PastConverge;
use crate::operator::task::{Lane, Reason, Slot, Task};
use crate::queue::State;

impl Operator {
    /// Advances the converge at the head of the global lane.
    pub(super) fn advance_converge(&mut self) -> bool {
        if self.lanes.begin_head(&mut self.cx, &Lane::Global) {
            self.open_converge();
        }
        let mut progress = false;
        loop {
            match self.look_at_converge() {
                Look::Moved => progress = true,
                Look::Started | Look::Over => return true,
                Look::Waits => {
                    self.lanes.park(&self.cx, &Lane::Global);
                    return progress;
                }
                Look::NoSlot => return progress,
            }
        }
    }

    fn open_converge(&mut self) {
        self.loops.converge_begins();
        let Some(Task::Converge(reason)) = self.lanes.head(&Lane::Global).map(|head| &head.task) else {
            return;
        };
        let reason = *reason;
        let phase = match reason {
            Reason::Recovered => self.after_all_phase(),
            Reason::Startup
            | Reason::ConfigChanged
            | Reason::DynamicUpdate
            | Reason::ScheduleChange
            | Reason::KubernetesChange
            | Reason::AfterAllChange
            | Reason::ScriptAnswered
            | Reason::RemovalCertain
            | Reason::FilesRead
            | Reason::TrialPassed => {
                self.drop_waiting_runs();
                Phase::Settling
            }
        };
        self.converge.open(&mut self.cx, reason, phase);
    }

    fn after_all_phase(&self) -> Phase {
        Phase::AfterAll {
            next: 0,
            before: self.values.version(&Owner::Global),
            lacked: !self.modules.lacking().is_empty(),
        }
    }

    fn look_at_converge(&mut self) -> Look {
        if let Some(reason) = self.converge.start_over() {
            self.loops.converge_begins();
            self.drop_waiting_runs();
            self.cx.tell(Notice::ConvergeStarted {
                reason: reason.to_string(),
            });
            return Look::Moved;
        }
        match self.converge.phase() {
            None => Look::Over,
            Some(Phase::Settling) => self.settle(),
            Some(Phase::BeforeAll(next)) => self.run_all_hook(Stage::BeforeAll, *next),
            Some(Phase::Enabling) => self.enable(),
            // A module without its CRDs gets its turn, too: its own run reports the failure and tries again.
            Some(Phase::Crds(_)) => {
                let wave = self.converge.take_wave().unwrap_or_default();
                self.converge.enter(Phase::Conversions { wave, asked: false })
            }
            Some(Phase::Conversions { asked: false, .. }) => self.look_after_conversions(),
            Some(Phase::Conversions { .. }) => {
                let wave = self.converge.take_wave().unwrap_or_default();
                self.converge.enter(Phase::Modules(wave))
            }
            Some(Phase::Modules(_)) => self.advance_wave_phase(),
            Some(Phase::AfterAll { next, .. }) => self.run_all_hook(Stage::AfterAll, *next),
        }
    }

    /// Starts the hook at this place of the list, or goes on to the next phase at the end of the list.
    fn run_all_hook(&mut self, stage: Stage, next: usize) -> Look {
        let hooks = self.bindings.global_hooks(stage);
        let Some(hook) = hooks.get(next) else {
            return match stage {
                Stage::AfterAll => self.close_converge(),
                _ => self.converge.enter(Phase::Enabling),
            };
        };
        if self.lanes.is_aside(&hook.name) {
            self.run_aside(stage, hook.clone());
            return Look::Moved;
        }
        match self
            .lanes
            .admit(&self.cx, &self.jobs, &self.bindings, &Lane::Global, hook)
        {
            Admission::Now => {}
            Admission::NoSlot => return Look::NoSlot,
            Admission::Later => return Look::Over,
        }
        self.start_stage_hook(&Lane::Global, stage, hook.clone());
        Look::Started
    }

    /// Waits for the verdicts on all modules and takes them up.
    fn enable(&mut self) -> Look {
        if !self.removal.is_listed() {
            return Look::Waits;
        }
        if !self.verdicts.is_known() {
            if !self.verdicts.is_asking() {
                self.verdicts.begin(&self.modules);
                return Look::Moved;
            }
            return Look::Waits;
        }
        let undecided = self.verdicts.undecided();
        let names: Vec<_> = undecided.map(|name| format!("'{name}'")).collect();
        if self.cx.policy.strict_order && !names.is_empty() {
            let error = format!(
                "couldn't recalculate graph: the enabled script of {} failed",
                names.join(", ")
            );
            self.verdicts.forget();
            self.lanes
                .back_off(&mut self.cx, &Lane::Global, &Failure::new(Class::HookFailed, error));
            return Look::Over;
        }
        // Runs that were queued after the phase `Settling` are dropped: their modules get a turn in this converge, or are held.
        self.drop_waiting_runs();
        if !self.verdicts.is_known() {
            // A section that waited for one of the dropped runs was applied. An enabled script must run again with the new
            // values.
            return Look::Moved;
        }
        self.converge.takes_up();
        let wave = self.take_up();
        if self.start_new_crds() {
            self.converge.enter(Phase::Crds(wave));
            return Look::Started;
        }
        self.converge.enter(Phase::Conversions { wave, asked: false })
    }

    fn advance_wave_phase(&mut self) -> Look {
        let Some(mut wave) = self.converge.take_wave() else {
            return Look::Over;
        };
        if self.advance_wave(&mut wave) {
            let phase = self.after_all_phase();
            return self.converge.enter(phase);
        }
        self.converge.enter(Phase::Modules(wave));
        Look::Waits
    }

    /// Ends the converge after the hooks after all modules.
    fn close_converge(&mut self) -> Look {
        let failing = self.modules.lacking();
        let Some(closed) = self.converge.close(&self.cx, !failing.is_empty()) else {
            return Look::Over;
        };
        self.lanes.succeeded(&Lane::Global);
        self.lanes.finish(&self.cx, &Lane::Global);
        self.cool_down();
        self.remember_sources();
        self.remember_given();
        self.converge.remember(PastConverge {
            reason: closed.reason.to_string(),
            ended: self.cx.now.wall,
            took: closed.took,
            failing: failing.len(),
        });
        self.cx.tell(Notice::ConvergeFinished {
            reason: closed.reason.to_string(),
            took: closed.took,
            first: closed.first,
            failing,
        });
        if self.values.version(&Owner::Global) != closed.before {
            let (hooks, lineage) = self.loops.take_changers(&Lane::Global);
            self.converge_for(Reason::AfterAllChange, &hooks, lineage);
        }
        self.purge();
        self.recovered();
        Look::Over
    }

    /// Keeps the values that global hooks have given, because a converge has finished. On trial, the values that the
    /// version before has kept stay.
    fn remember_given(&mut self) {
        if self.probation.is_on_trial() || self.cx.policy.mode == Mode::Hooks {
            return;
        }
        let hooks: BTreeSet<&HookName> = self
            .bindings
            .of_owner(&Owner::Global)
            .map(|(hook, _)| &hook.name)
            .collect();
        self.stand_ins.remember(|hook| hooks.contains(hook));
    }

    /// Keeps the outlines of the values files, because a converge has finished.
    fn remember_sources(&mut self) {
        let certainty = self.certainty();
        let silent = |name: &ModuleName| certainty.is_silently_off(name);
        if self.directories.sources().unheard().is_some() && self.modules.names().any(silent) {
            return;
        }
        self.directories.sources_mut().remember();
    }

    /// Waits until no run or removal is under way, and drops failed runs and removals that wait for their retry. The
    /// converge does not wait for a run that hangs: that run begins anew when its current step has ended.
    pub(super) fn settle(&mut self) -> Look {
        let waits = |state: State| matches!(state, State::Parked | State::Held(_));
        let under_way = |task: &Task| task.module_at_work().is_some();
        // A run that waits for a first run in another queue, or for the rate limit of a hook, may wait for long. Such a
        // run does not count: later it goes on where it was, or begins anew.
        let busy = self
            .lanes
            .heads()
            .filter(|(_, head)| under_way(&head.task) && head.is_active() && !waits(head.state()));
        let busy: Vec<Lane> = busy.map(|(lane, _)| lane.clone()).collect();
        let survey = self.survey();
        if busy.iter().any(|lane| !survey.hangs(lane)) {
            return Look::Waits;
        }
        for lane in &busy {
            self.lanes.renew(&self.cx, lane);
        }
        self.drop_waiting_runs();
        self.converge.enter(Phase::BeforeAll(0))
    }

    /// Starts the job that installs the CRDs of newly enabled modules, before the converge does any other work on
    /// modules. False if no CRDs have to be installed.
    pub(super) fn start_new_crds(&mut self) -> bool {
        let new = self.without_crds();
        let are_some = !new.is_empty();
        if are_some {
            self.start_crds(&Lane::Global, new);
        }
        are_some
    }

    /// The modules of the running converge whose CRDs were not installed in their current life.
    fn without_crds(&mut self) -> Vec<ModuleName> {
        let mut names = Vec::new();
        for name in self.modules.in_order() {
            let Some(unit) = self.modules.get_mut(&name).filter(|unit| *unit.turn() == Turn::Waiting) else {
                continue;
            };
            unit.forget_old_crds();
            if unit.needs_crds() {
                names.push(name);
            }
        }
        names
    }

    /// Publishes the conversion webhooks of all modules that the converge has just taken up.
    pub(super) fn look_after_conversions(&mut self) -> Look {
        let survey = self.survey();
        let waiting = |name: &ModuleName| {
            let unit = self.modules.get(name).filter(|unit| *unit.turn() == Turn::Waiting);
            unit.is_some_and(|unit| survey.needs_conversions(unit))
        };
        let names = self.modules.in_order().into_iter().filter(waiting);
        let globals = self.values.globals();
        let conversions: Vec<_> = names.filter_map(|name| self.conversions_of(&name, &globals)).collect();
        let is_needed = !conversions.is_empty();
        // If all helm slots hang, one more helm process is better than a wait of all modules.
        let has_slot =
            self.jobs.has_room(Slot::Helm, &self.cx.policy) || self.jobs.all_hang(Slot::Helm, &self.cx.policy);
        if is_needed && !has_slot {
            return Look::NoSlot;
        }
        self.converge.conversions_asked();
        if !is_needed {
            return Look::Moved;
        }
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, &Lane::Global, |ticket| {
                Job::EnsureConversions(conversions, ticket)
            });
        Look::Started
    }
}
