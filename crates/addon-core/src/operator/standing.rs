//! Whether the operator may act: it must lead, and while it shuts down it starts nothing new.
//!
//! With several replicas, the process learns when it becomes the leader and when it ceases to be one. A replica that does
//! not lead does nothing that another program could notice.

use std::time::Duration;

use clock::Tick;

use super::cx::Cx;
use super::effect::Effect;
use super::jobs::Jobs;
use super::policy::{Leadership, Policy};
use super::query::Waiting;

/// Whether this replica leads, and whether it is shutting down.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    leads: bool,
    stopping: Option<Stopping>,
}

/// A shutdown under way.
#[derive(Debug, Clone, Copy)]
struct Stopping {
    /// The time at which running jobs are cancelled.
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

    /// Whether another replica leads or may lead.
    pub(super) fn is_standby(&self) -> bool {
        !self.leads
    }

    /// Whether the operator is shutting down.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Notes that this replica leads from now on.
    pub(super) fn lead(&mut self) {
        self.leads = true;
    }

    /// Begins the shutdown: nothing new starts, and running jobs get the grace period. A second call changes nothing.
    pub(super) fn stop(&mut self, cx: &Cx) {
        let deadline = cx.now.tick + cx.policy.shutdown_grace;
        self.stopping.get_or_insert(Stopping {
            deadline,
            cancelled: false,
            exited: false,
        });
    }

    /// Ends the grace period now.
    pub(super) fn shorten(&mut self, cx: &Cx) {
        if let Some(stopping) = &mut self.stopping {
            stopping.deadline = cx.now.tick;
        }
    }

    /// Begins the shutdown with no grace period.
    pub(super) fn stop_now(&mut self, cx: &Cx) {
        self.stopping = Some(Stopping {
            deadline: cx.now.tick,
            cancelled: true,
            exited: true,
        });
    }

    /// Exits when no job runs, and cancels running jobs when the grace period is over.
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

    /// The time at which running jobs are cancelled, if the operator is shutting down.
    pub(super) fn timeout(&self, cx: &Cx) -> Option<(Tick, Waiting)> {
        let stopping = self.stopping.filter(|stopping| !stopping.cancelled)?;
        let grace: Duration = cx.policy.shutdown_grace;
        Some((stopping.deadline, Waiting::Shutdown(grace)))
    }
}
