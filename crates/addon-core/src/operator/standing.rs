//! Whether we may act at all: not before we lead, and nothing new once we are to end.
//!
//! Where several of us may run, whoever leads is told so, and told when that is over; until then nothing is done that
//! anybody else could notice.

use super::Operator;
use super::effect::{Effect, Notice};
use super::policy::{Leadership, Policy};
use crate::time::Tick;

/// Whether it is our turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is, or may be, somebody else's.
    Standby,
    /// It is ours.
    Leads,
}

impl Standing {
    pub(super) fn at_start(policy: &Policy) -> Self {
        match policy.leadership {
            Leadership::Alone => Self::Leads,
            Leadership::Elected => Self::Standby,
        }
    }
}

/// A shutdown under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopping {
    /// When what still runs is cancelled.
    pub(super) deadline: Tick,
    pub(super) cancelled: bool,
    pub(super) exited: bool,
}

impl Operator {
    /// It is our turn from now on.
    pub(super) fn lead(&mut self) {
        self.standing = Standing::Leads;
        self.end_warming();
    }

    pub(super) fn stop(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        let deadline = self.cx.now.tick + self.cx.policy.shutdown_grace;
        self.stopping = Some(Stopping {
            deadline,
            cancelled: false,
            exited: false,
        });
        self.close_reviews();
        self.cx.tell(Notice::ShuttingDown {
            running: self.jobs.len(),
        });
    }

    /// Nothing more is done.
    pub(super) fn stop_now(&mut self) {
        self.stopping = Some(Stopping {
            deadline: self.cx.now.tick,
            cancelled: true,
            exited: true,
        });
    }

    pub(super) fn advance_stop(&mut self) {
        let Some(mut stopping) = self.stopping else { return };
        if self.jobs.len() == 0 && !stopping.exited {
            stopping.exited = true;
            self.cx.effect(Effect::Exit);
        } else if self.cx.now.tick >= stopping.deadline && !stopping.cancelled {
            stopping.cancelled = true;
            for id in self.jobs.ids() {
                self.cx.effect(Effect::CancelJob(id));
            }
        }
        self.stopping = Some(stopping);
    }

    /// Somebody else may lead soon: what runs gets no time.
    pub(super) fn stop_at_once(&mut self) {
        self.stop();
        if let Some(stopping) = &mut self.stopping {
            stopping.deadline = self.cx.now.tick;
        }
    }
}
