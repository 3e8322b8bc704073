//! Whether the operator may act at all: not before it leads, and nothing new once it is to end.
//!
//! Where several replicas run, the leader is told when it begins to lead, and when that is over. Until then nothing is done that another program
//! could notice.

use std::time::Duration;

use super::cx::Cx;
use super::effect::Effect;
use super::jobs::Jobs;
use super::policy::{Leadership, Policy};
use super::query::Waiting;
use crate::time::Tick;

/// Whether it is our turn, and whether we are to end.
#[derive(Debug)]
pub(super) struct Standing {
    leads: bool,
    stopping: Option<Stopping>,
}

/// A shutdown under way.
#[derive(Debug, Clone, Copy)]
struct Stopping {
    /// When what still runs is cancelled.
    deadline: Tick,
    cancelled: bool,
    exited: bool,
}

impl Standing {
    pub(super) fn at_start(policy: &Policy) -> Self {
        let leads = match policy.leadership {
            Leadership::Alone => true,
            Leadership::Elected => false,
        };
        Self { leads, stopping: None }
    }

    /// It is, or may be, somebody else's turn.
    pub(super) fn is_standby(&self) -> bool {
        !self.leads
    }

    /// We are to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// It is our turn from now on.
    pub(super) fn lead(&mut self) {
        self.leads = true;
    }

    /// Nothing new begins from now on; what runs has its grace. A second time it changes nothing.
    pub(super) fn stop(&mut self, cx: &Cx) {
        let deadline = cx.now.tick + cx.policy.shutdown_grace;
        self.stopping.get_or_insert(Stopping {
            deadline,
            cancelled: false,
            exited: false,
        });
    }

    /// What runs gets no time.
    pub(super) fn shorten(&mut self, cx: &Cx) {
        if let Some(stopping) = &mut self.stopping {
            stopping.deadline = cx.now.tick;
        }
    }

    /// Nothing more is done.
    pub(super) fn stop_now(&mut self, cx: &Cx) {
        self.stopping = Some(Stopping {
            deadline: cx.now.tick,
            cancelled: true,
            exited: true,
        });
    }

    /// Ends the process when nothing runs, and what runs when its time is over.
    pub(super) fn advance_stop(&mut self, cx: &mut Cx, jobs: &Jobs) {
        let Some(stopping) = &mut self.stopping else { return };
        if jobs.len() == 0 && !stopping.exited {
            stopping.exited = true;
            cx.effect(Effect::Exit);
        } else if cx.now.tick >= stopping.deadline && !stopping.cancelled {
            stopping.cancelled = true;
            for id in jobs.ids() {
                cx.effect(Effect::CancelJob(id));
            }
        }
    }

    /// When what still runs is cancelled, if we are to end.
    pub(super) fn timeout(&self, cx: &Cx) -> Option<(Tick, Waiting)> {
        let stopping = self.stopping.filter(|stopping| !stopping.cancelled)?;
        let grace: Duration = cx.policy.shutdown_grace;
        Some((stopping.deadline, Waiting::Shutdown(grace)))
    }
}
