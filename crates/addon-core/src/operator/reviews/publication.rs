//! The webhook configurations and conversions in the cluster by which the API server asks our hooks, and when they are looked after.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::{Class, Failure};
use crate::operator::cx::Cx;
use crate::operator::effect::{Job, Notice};
use crate::operator::jobs::Jobs;
use crate::operator::query::Waiting;
use crate::review::routes::Routes;
use crate::time::{Backoff, Tick};

/// How often what was published is compared with what should be: somebody else may have changed it, and certificates
/// grow old.
const ROUND: Duration = Duration::from_mins(1);
/// How soon it is compared after somebody has touched it. Our own writes touch it, too, and somebody who insists on
/// something else must not keep us busy.
const SOON: Duration = Duration::from_secs(1);
const STEP: &str = "publish the webhooks";

/// How far the last word of the hooks has come.
#[derive(Debug, Default)]
pub(in crate::operator) struct Publication {
    state: State,
    /// An attempt has ended in this life, whichever way.
    attempted: bool,
}

#[derive(Debug, Default)]
enum State {
    /// There is something to say, be it that there is nothing.
    #[default]
    Due,
    /// Being published; it is due again if that happens meanwhile.
    Running {
        failures: u32,
        error: Option<String>,
        stale: bool,
        /// Somebody has changed it since this began.
        touched: bool,
    },
    Backoff {
        until: Tick,
        failures: u32,
        error: String,
    },
    /// All is said; `None` if nobody has to look after it.
    Published {
        again: Option<Tick>,
    },
}

impl Publication {
    /// The hooks say something else now.
    pub(super) fn is_due(&mut self) {
        match &mut self.state {
            State::Running { stale, .. } => *stale = true,
            State::Due | State::Backoff { .. } | State::Published { .. } => self.state = State::Due,
        }
    }

    /// Somebody has changed what stands in the cluster.
    pub(in crate::operator) fn is_touched(&mut self, now: Tick) {
        match &mut self.state {
            State::Running { touched, .. } => *touched = true,
            State::Published { again: Some(again) } => *again = (*again).min(now + SOON),
            State::Due | State::Backoff { .. } | State::Published { again: None } => {}
        }
    }

    /// What holds it up, in words.
    pub(in crate::operator) fn waiting(&self) -> Option<String> {
        match &self.state {
            State::Backoff { failures, error, .. } => Some(format!("{STEP}: failed {failures} times: {error}")),
            State::Due | State::Running { .. } | State::Published { .. } => None,
        }
    }
}

impl Publication {
    /// An attempt has ended in this life, whichever way.
    pub(super) fn was_attempted(&self) -> bool {
        self.attempted
    }

    /// Begins to publish if something is to be said.
    pub(super) fn advance(&mut self, cx: &mut Cx, jobs: &mut Jobs, routes: &Arc<Routes>) {
        let (failures, error) = match &self.state {
            State::Due => (0, None),
            State::Backoff { until, failures, error } if *until <= cx.now.tick => (*failures, Some(error.clone())),
            State::Published { again: Some(again) } if *again <= cx.now.tick => (0, None),
            State::Running { .. } | State::Backoff { .. } | State::Published { .. } => return,
        };
        self.state = State::Running {
            failures,
            error,
            stale: false,
            touched: false,
        };
        let routes = Arc::clone(routes);
        jobs.begin(cx, (), |ticket| Job::PublishWebhooks(routes, ticket));
    }

    /// An attempt has ended; `nothing` if nobody is to be asked.
    pub(super) fn published(&mut self, cx: &mut Cx, nothing: bool, result: Result<(), Failure>) {
        let State::Running {
            failures,
            error,
            stale,
            touched,
        } = std::mem::take(&mut self.state)
        else {
            return;
        };
        self.attempted = true;
        let failure = match result {
            Ok(()) => None,
            // Who may not look after webhooks has published none.
            Err(failure) if nothing && failure.class == Class::Refused => None,
            Err(failure) => Some(failure),
        };
        if stale {
            self.state = State::Due;
            return;
        }
        let Some(failure) = failure else {
            let pause = if touched { SOON } else { ROUND };
            let again = (!nothing).then(|| cx.now.tick + pause);
            self.state = State::Published { again };
            return;
        };
        let delay = Backoff::delay(failures, cx.draw());
        self.state = State::Backoff {
            until: cx.now.tick + delay,
            failures: failures + 1,
            error: failure.report.clone(),
        };
        cx.tell(Notice::StepFailed {
            step: STEP.to_owned(),
            again: error.as_ref() == Some(&failure.report),
            failure,
            retry_in: delay,
        });
    }

    /// When it is looked after again.
    pub(super) fn timeout(&self) -> Option<(Tick, Waiting)> {
        let at = match &self.state {
            State::Backoff { until, .. } => *until,
            State::Published { again } => (*again)?,
            State::Due | State::Running { .. } => return None,
        };
        Some((at, Waiting::Step(STEP.to_owned())))
    }
}
