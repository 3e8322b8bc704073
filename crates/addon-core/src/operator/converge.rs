//! The converge: hooks before all modules, enabling, the modules in their order, hooks after all modules.
//!
//! A converge is one task of the global lane. A restart never interrupts a running job; the converge begins anew once
//! that job has ended. This machine knows how far the converge has come, and no module: the ways of a converge do its
//! steps.

pub(super) mod wave;

use std::time::Duration;

use self::wave::Wave;
use super::cx::Cx;
use super::effect::Notice;
use super::lanes::Lanes;
use super::task::{Lane, Reason, Task};
use crate::time::Tick;
use crate::values::Version;

/// The converge under way, and what is known of those before.
#[derive(Debug, Default)]
pub(super) struct Converge {
    active: Option<Active>,
    /// The first one has ended: ready.
    first_done: bool,
    /// Modules have been taken up at least once.
    taken_up_once: bool,
    /// When the last one ended, modules were lacking.
    lacking_at_end: bool,
}

/// A converge under way.
#[derive(Debug)]
struct Active {
    reason: Reason,
    began: Tick,
    phase: Phase,
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

/// A converge that has ended.
#[derive(Debug)]
#[must_use]
pub(super) struct Closed {
    pub(super) reason: Reason,
    pub(super) took: Duration,
    /// The version of the global values before the hooks after all modules.
    pub(super) before: Version,
    /// It was the first one of this life.
    pub(super) first: bool,
}

/// What is known of it.
impl Converge {
    /// How far the one under way has come.
    pub(super) fn phase(&self) -> Option<&Phase> {
        self.active.as_ref().map(|active| &active.phase)
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.active.is_some()
    }

    /// The first one has ended: we are ready.
    pub(super) fn is_first_over(&self) -> bool {
        self.first_done
    }

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

    /// Modules were lacking when the last one ended, and none is under way.
    pub(super) fn awaits_recovery(&self) -> bool {
        self.active.is_none() && self.lacking_at_end
    }
}

/// How it goes on.
impl Converge {
    /// Asks for a converge. With `restart`, one that runs starts over; else a further one comes after it.
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

    /// All modules have succeeded that were lacking: the hooks after all modules are to run again.
    pub(super) fn recover(&mut self, cx: &Cx, lanes: &mut Lanes) {
        self.lacking_at_end = false;
        if !lanes.tasks(&Lane::Global).any(|entry| entry.task.is_converge()) {
            lanes.push(cx, Lane::Global, Task::Converge(Reason::Recovered));
        }
    }

    /// One begins.
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

    /// Starts over if that was asked for, and says for which reason.
    pub(super) fn start_over(&mut self) -> Option<Reason> {
        let active = self.active.as_mut()?;
        let reason = active.restart.take()?;
        active.reason = reason;
        active.phase = Phase::Settling;
        Some(reason)
    }

    /// Its next phase begins.
    pub(super) fn enter(&mut self, phase: Phase) -> Look {
        if let Some(active) = &mut self.active {
            active.phase = phase;
        }
        Look::Moved
    }

    /// A hook before or after all modules succeeded.
    pub(super) fn hook_succeeded(&mut self) {
        if let Some(Active {
            phase: Phase::BeforeAll(next) | Phase::AfterAll { next, .. },
            ..
        }) = &mut self.active
        {
            *next += 1;
        }
    }

    /// It takes up what the verdicts say.
    pub(super) fn takes_up(&mut self) {
        self.taken_up_once = true;
    }

    /// The conversion webhooks of charts are being looked after, or need not be.
    pub(super) fn conversions_asked(&mut self) {
        if let Some(Active {
            phase: Phase::Conversions { asked, .. },
            ..
        }) = &mut self.active
        {
            *asked = true;
        }
    }

    /// The modules that it has still to get through, to be worked on and given back.
    pub(super) fn take_wave(&mut self) -> Option<Wave> {
        match &mut self.active.as_mut()?.phase {
            Phase::Crds(wave) | Phase::Conversions { wave, .. } | Phase::Modules(wave) => Some(std::mem::take(wave)),
            Phase::Settling | Phase::BeforeAll(_) | Phase::Enabling | Phase::AfterAll { .. } => None,
        }
    }

    /// The hooks after all modules are through; `is_lacking` if modules are lacking now.
    pub(super) fn close(&mut self, cx: &Cx, is_lacking: bool) -> Option<Closed> {
        let active = self.active.take()?;
        let Phase::AfterAll { before, lacked, .. } = active.phase else {
            return None;
        };
        // These hooks have not seen the success of one that was lacking when they began.
        self.lacking_at_end = lacked || is_lacking;
        Some(Closed {
            reason: active.reason,
            took: cx.now.tick - active.began,
            before,
            first: !std::mem::replace(&mut self.first_done, true),
        })
    }
}
