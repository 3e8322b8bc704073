//! The converge: hooks before all modules, enabling, the modules in their order, hooks after all modules.
//!
//! A converge is one task of the global lane. A restart never interrupts a running job; the converge begins anew once
//! that job has ended. This state machine knows only how far the converge has come. It knows no module: the files in
//! `ways` do the steps of a converge.

pub(super) mod wave;

use std::collections::VecDeque;
use std::time::Duration;

use clock::Tick;

use self::wave::Wave;
use super::cx::Cx;
use super::effect::Notice;
use super::lanes::Lanes;
use super::query::PastConverge;
use super::task::{Lane, Reason, Task};
use crate::values::Version;

/// The number of converges that are remembered.
const REMEMBERED: usize = 20;

/// The running converge, and the results of earlier ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Converge {
    active: Option<Active>,
    /// The first converge has ended, so the operator is ready.
    first_done: bool,
    /// Modules have been taken up at least once.
    taken_up_once: bool,
    /// Some modules were lacking when the last converge ended.
    lacking_at_end: bool,
    /// The last converges, the newest last.
    past: VecDeque<PastConverge>,
}

/// A running converge.
#[derive(Debug, Clone)]
struct Active {
    reason: Reason,
    began: Tick,
    phase: Phase,
    restart: Option<Reason>,
}

/// The phase of a converge.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// Waits for runs of the previous converge that still go on.
    Settling,
    /// Runs the hooks before all modules; the number is the place of the next hook.
    BeforeAll(usize),
    /// Asks the enabled scripts.
    Enabling,
    /// Installs the CRDs of the modules that were just switched on, before any other work on modules.
    Crds(Wave),
    /// Publishes the conversion webhooks of charts, before any other work on modules.
    Conversions { wave: Wave, asked: bool },
    /// Removes modules, then runs modules.
    Modules(Wave),
    /// Runs the hooks after all modules.
    AfterAll {
        /// The index of the next hook to run.
        next: usize,
        /// The version of the global values before the first hook after all modules.
        before: Version,
        /// Whether a module was lacking when the hooks after all modules began.
        lacked: bool,
    },
}

/// The result of one attempt to advance a converge.
pub(super) enum Look {
    /// The phase changed: try again at once.
    Moved,
    /// A job of the converge has started.
    Started,
    /// The converge waits for something other than a time.
    Waits,
    /// There is no free slot for the next hook.
    NoSlot,
    /// The converge has ended, or waits for a time.
    Over,
}

/// A converge that has ended.
#[derive(Debug)]
#[must_use]
pub(super) struct Closed {
    pub(super) reason: Reason,
    pub(super) took: Duration,
    /// The version of the global values before the hooks after all modules.
    pub(super) before: Version,
    /// Whether this was the first converge of this life.
    pub(super) first: bool,
}

/// The state of the converge.
impl Converge {
    /// The phase of the running converge.
    pub(super) fn phase(&self) -> Option<&Phase> {
        self.active.as_ref().map(|active| &active.phase)
    }

    /// Whether a job of the converge may be installing CRDs or publishing conversion webhooks of modules.
    pub(super) fn is_installing(&self) -> bool {
        match self.phase() {
            Some(Phase::Crds(_) | Phase::Conversions { .. }) => true,
            Some(
                Phase::Settling | Phase::BeforeAll(_) | Phase::Enabling | Phase::Modules(_) | Phase::AfterAll { .. },
            )
            | None => false,
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.active.is_some()
    }

    /// Whether the first converge has ended, so that the operator is ready.
    pub(super) fn is_first_over(&self) -> bool {
        self.first_done
    }

    /// Whether a coming or running converge has not yet reached the phase in which it finds the verdicts. Then a round of
    /// verdicts outside of the converge is not needed.
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

    /// Whether a converge has begun in this life. Its hooks may have seen values that an edit changes now.
    pub(super) fn has_begun(&self) -> bool {
        self.active.is_some() || self.taken_up_once
    }

    /// Whether the converge is about to start over. It will then run every module.
    pub(super) fn restarts(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.restart.is_some())
    }

    /// `OperatorStartup` while the first converge has not ended, else empty.
    pub(super) fn activation(&self) -> &'static str {
        if self.first_done { "" } else { "OperatorStartup" }
    }

    /// Whether modules were lacking when the last converge ended and no converge is running.
    pub(super) fn awaits_recovery(&self) -> bool {
        self.active.is_none() && self.lacking_at_end
    }
}

/// The course of the converge.
impl Converge {
    /// Asks for a converge. With `restart` a running converge starts over, else another converge follows it.
    pub(super) fn request(&mut self, cx: &Cx, lanes: &mut Lanes, reason: Reason, restart: bool) {
        if restart && let Some(active) = &mut self.active {
            active.restart = Some(reason);
            lanes.cut_wait_short(&Lane::Global);
            return;
        }
        let waiting = |task: &Task| task.converge_reason().is_some_and(|reason| reason != Reason::Recovered);
        let head = lanes.head(&Lane::Global);
        let head_waits = head.is_some_and(|head| !head.begun && waiting(&head.task));
        if !head_waits && !lanes.behind_head(&Lane::Global).any(|entry| waiting(&entry.task)) {
            lanes.push(cx, Lane::Global, Task::Converge(reason));
        }
    }

    /// Asks for another run of the hooks after all modules, because all lacking modules have succeeded.
    pub(super) fn recover(&mut self, cx: &Cx, lanes: &mut Lanes) {
        self.lacking_at_end = false;
        if !lanes.tasks(&Lane::Global).any(|entry| entry.task.is_converge()) {
            lanes.push(cx, Lane::Global, Task::Converge(Reason::Recovered));
        }
    }

    /// Begins a converge.
    pub(super) fn open(&mut self, cx: &mut Cx, reason: Reason, phase: Phase) {
        self.active = Some(Active {
            reason,
            began: cx.now.tick,
            phase,
            restart: None,
        });
        cx.tell(Notice::ConvergeStarted {
            reason: reason.to_string(),
        });
    }

    /// Clears the request to start over, and returns its reason if there was a request.
    pub(super) fn start_over(&mut self) -> Option<Reason> {
        let active = self.active.as_mut()?;
        let reason = active.restart.take()?;
        active.reason = reason;
        active.phase = Phase::Settling;
        Some(reason)
    }

    /// Enters the next phase.
    pub(super) fn enter(&mut self, phase: Phase) -> Look {
        if let Some(active) = &mut self.active {
            active.phase = phase;
        }
        Look::Moved
    }

    /// Notes that a hook before or after all modules succeeded.
    pub(super) fn hook_succeeded(&mut self) {
        if let Some(Active {
            phase: Phase::BeforeAll(next) | Phase::AfterAll { next, .. },
            ..
        }) = &mut self.active
        {
            *next += 1;
        }
    }

    /// Notes that the converge takes up the verdicts.
    pub(super) fn takes_up(&mut self) {
        self.taken_up_once = true;
    }

    /// Notes that a job publishes the conversion webhooks of charts, or that there are none.
    pub(super) fn conversions_asked(&mut self) {
        if let Some(Active {
            phase: Phase::Conversions { asked, .. },
            ..
        }) = &mut self.active
        {
            *asked = true;
        }
    }

    /// Takes out the modules that this converge has still to remove or run. The caller puts them back.
    pub(super) fn take_wave(&mut self) -> Option<Wave> {
        match &mut self.active.as_mut()?.phase {
            Phase::Crds(wave) | Phase::Conversions { wave, .. } | Phase::Modules(wave) => Some(std::mem::take(wave)),
            Phase::Settling | Phase::BeforeAll(_) | Phase::Enabling | Phase::AfterAll { .. } => None,
        }
    }

    /// Ends the converge after the hooks after all modules. `is_lacking`: modules are lacking now.
    pub(super) fn close(&mut self, cx: &Cx, is_lacking: bool) -> Option<Closed> {
        let active = self.active.take()?;
        let Phase::AfterAll { before, lacked, .. } = active.phase else {
            return None;
        };
        // If a module was lacking when these hooks began, they have not seen its later success.
        self.lacking_at_end = lacked || is_lacking;
        Some(Closed {
            reason: active.reason,
            took: cx.now.tick - active.began,
            before,
            first: !std::mem::replace(&mut self.first_done, true),
        })
    }

    /// Remembers a converge that has ended.
    pub(super) fn remember(&mut self, past: PastConverge) {
        if self.past.len() == REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back(past);
    }

    /// The last converges, the newest last.
    pub(super) fn past(&self) -> impl Iterator<Item = &PastConverge> {
        self.past.iter()
    }
}
