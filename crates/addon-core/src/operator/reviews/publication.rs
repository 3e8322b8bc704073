//! The webhook configurations and conversions in the cluster, by which the API server knows that it has to ask our hooks,
//! and when they are checked again.

use std::sync::Arc;
use std::time::Duration;

use clock::{Backoff, Tick};

use crate::failure::{Class, Failure};
use crate::operator::cx::Cx;
use crate::operator::effect::{Job, Notice};
use crate::operator::jobs::Jobs;
use crate::operator::query::Waiting;
use crate::review::routes::Routes;

/// The interval at which the published objects are compared with the wanted ones: another program may have changed them,
/// and certificates expire.
const ROUND: Duration = Duration::from_mins(1);
/// The delay of a comparison after the objects were changed. Our own writes count as changes, too, and a program that
/// changes the objects again and again must not keep the operator busy.
const SOON: Duration = Duration::from_secs(1);
const STEP: &str = "publish the webhooks";

/// Whether the webhooks are published, and when the next attempt or comparison is due.
#[derive(Debug, Clone, Default)]
pub(in crate::operator) struct Publication {
    state: State,
    /// Whether an attempt has ended in this life, well or badly.
    attempted: bool,
}

#[derive(Debug, Clone, Default)]
enum State {
    /// There is something to publish. It may be the empty set of routes.
    #[default]
    Due,
    /// A job publishes the routes. `stale`: the routes changed meanwhile, so they are published again after the job.
    Running {
        failures: u32,
        error: Option<String>,
        stale: bool,
        /// Whether the objects were changed after the running attempt began.
        touched: bool,
    },
    Backoff {
        until: Tick,
        failures: u32,
        error: String,
    },
    /// Everything is published. `again` is the time of the next comparison; `None` if nothing has to be compared.
    Published {
        again: Option<Tick>,
    },
}

impl Publication {
    /// Notes that the routes have changed, so that they have to be published.
    pub(super) fn is_due(&mut self) {
        match &mut self.state {
            State::Running { stale, .. } => *stale = true,
            State::Due | State::Backoff { .. } | State::Published { .. } => self.state = State::Due,
        }
    }

    /// Notes that the objects in the cluster were changed.
    pub(in crate::operator) fn is_touched(&mut self, now: Tick) {
        match &mut self.state {
            State::Running { touched, .. } => *touched = true,
            State::Published { again: Some(again) } => *again = (*again).min(now + SOON),
            State::Due | State::Backoff { .. } | State::Published { again: None } => {}
        }
    }

    /// The failure of the publication, as a text for people.
    pub(in crate::operator) fn waiting(&self) -> Option<String> {
        match &self.state {
            State::Backoff { failures, error, .. } => Some(format!("{STEP}: failed {failures} times: {error}")),
            State::Due | State::Running { .. } | State::Published { .. } => None,
        }
    }
}

impl Publication {
    /// Whether an attempt has ended in this life, well or badly.
    pub(super) fn was_attempted(&self) -> bool {
        self.attempted
    }

    /// Starts an attempt to publish if one is due.
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

    /// Notes the end of an attempt. `nothing`: there are no routes.
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
            // Without the right to read webhook configurations the operator has published none, so there is nothing to delete.
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

    /// The time of the next attempt or comparison.
    pub(super) fn timeout(&self) -> Option<(Tick, Waiting)> {
        let at = match &self.state {
            State::Backoff { until, .. } => *until,
            State::Published { again } => (*again)?,
            State::Due | State::Running { .. } => return None,
        };
        Some((at, Waiting::Step(STEP.to_owned())))
    }
}
