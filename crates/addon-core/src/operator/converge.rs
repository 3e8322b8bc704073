//! A converge: hooks before all modules, enabling, the modules in their order, hooks after all modules.
//!
//! It is one task of the global lane. A restart never interrupts what runs; it begins once that has ended.

use super::Operator;
use super::effect::Notice;
use super::lanes::Admission;
use super::task::{Lane, Reason, Task};
use super::wave::Wave;
use crate::failure::{Class, Failure};
use crate::hook::config::Stage;
use crate::name::Owner;
use crate::time::Tick;
use crate::values::Version;

/// The converge under way, and what is known of those before.
#[derive(Debug, Default)]
pub(super) struct Converge {
    pub(super) active: Option<Active>,
    /// The first one has ended: ready.
    pub(super) first_done: bool,
    /// Modules have been taken up at least once.
    taken_up_once: bool,
    /// When the last one ended, modules were lacking.
    pub(super) lacking_at_end: bool,
}

/// A converge under way.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) reason: Reason,
    began: Tick,
    pub(super) phase: Phase,
    restart: Option<Reason>,
}

/// How far it has come.
#[derive(Debug)]
pub(super) enum Phase {
    /// Runs of the one before are still under way.
    Settling,
    /// Hooks before all modules; this one is next.
    BeforeAll(usize),
    /// The enabled scripts are asked.
    Enabling,
    /// CRDs of the modules that were just switched on, before anything else is done for any module.
    Crds(Wave),
    /// Conversion webhooks of charts, before anything else is done for any module.
    Conversions { wave: Wave, asked: bool },
    /// Removals, then runs.
    Modules(Wave),
    /// Hooks after all modules.
    AfterAll {
        /// This one is next.
        next: usize,
        /// The version of the global values before the first.
        before: Version,
        /// A module was lacking then.
        lacked: bool,
    },
}

/// What one look at a converge led to.
pub(super) enum Look {
    /// Its phase changed; look again.
    Moved,
    /// A job of it runs.
    Started,
    /// It waits for something else than time.
    Waits,
    /// There is no slot for its next hook.
    NoSlot,
    /// It is over, or waits for a time.
    Over,
}

impl Converge {
    /// A converge has yet to come to the point where it looks at what is enabled, so nobody else need do that.
    pub(super) fn assesses_by_itself(&self) -> bool {
        let Some(active) = &self.active else {
            return !self.taken_up_once;
        };
        let before = matches!(active.phase, Phase::Settling | Phase::BeforeAll(_) | Phase::Enabling);
        active.restart.is_some() || before
    }

    /// Modules have been taken up at least once in this life.
    pub(super) fn first_took_up(&self) -> bool {
        self.taken_up_once
    }

    /// Hooks of a converge may have seen values that an edit changes now.
    pub(super) fn has_begun(&self) -> bool {
        self.active.is_some() || self.taken_up_once
    }

    /// It is about to start over, and then runs every module anyway.
    pub(super) fn restarts(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.restart.is_some())
    }

    /// `OperatorStartup` while the first converge has not ended, else empty.
    pub(super) fn activation(&self) -> &'static str {
        if self.first_done { "" } else { "OperatorStartup" }
    }
}

impl Operator {
    /// Asks for a converge. With `restart`, one that runs starts over; else a further one comes after it.
    pub(super) fn request_converge(&mut self, reason: Reason, restart: bool) {
        if restart && let Some(active) = &mut self.converge.active {
            active.restart = Some(reason);
            self.lanes.cut_wait_short(&Lane::Global);
            return;
        }
        let waiting = |task: &Task| task.converge_reason().is_some_and(|reason| reason != Reason::Recovered);
        let head_waits = self
            .lanes
            .head(&Lane::Global)
            .is_some_and(|head| !head.begun && waiting(&head.task));
        if !head_waits && !self.lanes.behind_head(&Lane::Global).any(|entry| waiting(&entry.task)) {
            self.lanes.push(&self.cx, Lane::Global, Task::Converge(reason));
        }
    }

    /// Lets the converge at the head of the global lane go on.
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
            | Reason::TrialPassed => {
                self.drop_waiting_runs();
                Phase::Settling
            }
        };
        self.converge.active = Some(Active {
            reason,
            began: self.cx.now.tick,
            phase,
            restart: None,
        });
        self.cx.tell(Notice::ConvergeStarted {
            reason: reason.to_string(),
        });
    }

    fn after_all_phase(&self) -> Phase {
        Phase::AfterAll {
            next: 0,
            before: self.values.version(&Owner::Global),
            lacked: !self.lacking().is_empty(),
        }
    }

    fn look_at_converge(&mut self) -> Look {
        let Some(active) = &mut self.converge.active else {
            return Look::Over;
        };
        if let Some(reason) = active.restart.take() {
            active.reason = reason;
            active.phase = Phase::Settling;
            self.drop_waiting_runs();
            self.cx.tell(Notice::ConvergeStarted {
                reason: reason.to_string(),
            });
            return Look::Moved;
        }
        match &mut active.phase {
            Phase::Settling => self.settle(),
            Phase::BeforeAll(next) => {
                let next = *next;
                self.run_all_hook(Stage::BeforeAll, next)
            }
            Phase::Enabling => self.enable(),
            // Also who lacks them gets its turn: its own run says so, and tries again.
            Phase::Crds(wave) => {
                let wave = std::mem::take(wave);
                self.enter(Phase::Conversions { wave, asked: false })
            }
            Phase::Conversions { asked: false, .. } => self.look_after_conversions(),
            Phase::Conversions { wave, .. } => {
                let wave = std::mem::take(wave);
                self.enter(Phase::Modules(wave))
            }
            Phase::Modules(_) => self.advance_wave_phase(),
            Phase::AfterAll { next, .. } => {
                let next = *next;
                self.run_all_hook(Stage::AfterAll, next)
            }
        }
    }

    pub(super) fn enter(&mut self, phase: Phase) -> Look {
        if let Some(active) = &mut self.converge.active {
            active.phase = phase;
        }
        Look::Moved
    }

    /// The runs and removals that have not begun will be decided anew.
    pub(super) fn drop_waiting_runs(&mut self) {
        let (modules, count) = self.lanes.drop_waiting_runs();
        for module in modules {
            self.apply_what_nothing_holds(&module);
        }
        if count > 0 {
            let reason = "a converge starts over";
            self.cx.tell(Notice::TasksDropped {
                queue: Lane::Global.queue(),
                count,
                reason,
            });
        }
    }

    /// Starts the hook at this place of the list, or passes on to what comes after the list.
    fn run_all_hook(&mut self, stage: Stage, next: usize) -> Look {
        let hooks = self.bindings.global_hooks(stage);
        let Some(hook) = hooks.get(next) else {
            return match stage {
                Stage::AfterAll => self.close_converge(),
                _ => self.enter(Phase::Enabling),
            };
        };
        match self
            .lanes
            .admit(&self.cx, &self.jobs, &self.bindings, (&Lane::Global, hook))
        {
            Admission::Now => {}
            Admission::NoSlot => return Look::NoSlot,
            Admission::Later => return Look::Over,
        }
        self.start_stage_hook(&Lane::Global, stage, hook.clone());
        Look::Started
    }

    /// A hook before or after all modules succeeded.
    pub(super) fn all_hook_succeeded(&mut self) {
        if let Some(Active {
            phase: Phase::BeforeAll(next) | Phase::AfterAll { next, .. },
            ..
        }) = &mut self.converge.active
        {
            *next += 1;
        }
        self.lanes.resume(&Lane::Global);
    }

    /// Waits for the verdicts and takes up what they say.
    fn enable(&mut self) -> Look {
        if !self.removal.is_listed() {
            return Look::Waits;
        }
        if !self.assessment.is_known() {
            if !self.assessment.is_asking() {
                self.begin_assessment();
                return Look::Moved;
            }
            return Look::Waits;
        }
        let undecided = self.assessment.undecided();
        let names: Vec<_> = undecided.map(|name| format!("'{name}'")).collect();
        if self.cx.policy.strict_order && !names.is_empty() {
            let error = format!(
                "couldn't recalculate graph: the enabled script of {} failed",
                names.join(", ")
            );
            self.assessment.forget();
            self.lanes
                .back_off(&mut self.cx, &Lane::Global, &Failure::new(Class::HookFailed, error));
            return Look::Over;
        }
        // What was asked for since the converge settled gets its turn with the others, or is held.
        self.drop_waiting_runs();
        if !self.assessment.is_known() {
            // A section that had been left for the end of such a run counts now, and a script is to be asked with it.
            return Look::Moved;
        }
        self.converge.taken_up_once = true;
        let wave = self.take_up();
        if self.start_new_crds() {
            self.enter(Phase::Crds(wave));
            return Look::Started;
        }
        self.enter(Phase::Conversions { wave, asked: false })
    }

    fn advance_wave_phase(&mut self) -> Look {
        let Some(active) = &mut self.converge.active else {
            return Look::Over;
        };
        let Phase::Modules(wave) = &mut active.phase else {
            return Look::Over;
        };
        let mut wave = std::mem::take(wave);
        let over = self.advance_wave(&mut wave);
        if over {
            let phase = self.after_all_phase();
            return self.enter(phase);
        }
        self.enter(Phase::Modules(wave));
        Look::Waits
    }

    /// The hooks after all modules are through.
    fn close_converge(&mut self) -> Look {
        let Some(active) = self.converge.active.take() else {
            return Look::Over;
        };
        let Phase::AfterAll { before, lacked, .. } = active.phase else {
            return Look::Over;
        };
        self.lanes.succeeded(&Lane::Global);
        self.lanes.finish(&Lane::Global);
        let failing = self.lacking();
        // These hooks have not seen the success of one that was lacking when they began.
        self.converge.lacking_at_end = lacked || !failing.is_empty();
        let first = !std::mem::replace(&mut self.converge.first_done, true);
        self.cool_down();
        let took = self.cx.now.tick - active.began;
        self.remember_sources();
        self.cx.tell(Notice::ConvergeFinished {
            reason: active.reason.to_string(),
            took,
            first,
            failing,
        });
        if self.values.version(&Owner::Global) != before {
            self.request_converge(Reason::AfterAllChange, false);
        }
        if first {
            self.purge();
        }
        self.recovered();
        Look::Over
    }
}
