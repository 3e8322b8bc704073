//! What stands in the cluster so that the API server asks our hooks, and when it is looked after.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::{Class, Failure};
use crate::operator::Operator;
use crate::operator::effect::{Job, Notice};
use crate::operator::query::Waiting;
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

impl Operator {
    /// Who lists objects that hooks convert waits until the API server knows whom to ask, or cannot be told.
    pub(in crate::operator) fn awaits_publication(&self) -> bool {
        self.reviews.routes.conversions().next().is_some() && !self.reviews.publication.attempted
    }

    /// Tells the API server whom to ask. Called when everything else is decided: who came to answer in a step may have
    /// ceased to before its end.
    pub(in crate::operator) fn advance_publication(&mut self) {
        if !self.startup.begun {
            return;
        }
        let (failures, error) = match &self.reviews.publication.state {
            State::Due => (0, None),
            State::Backoff { until, failures, error } if *until <= self.cx.now.tick => (*failures, Some(error.clone())),
            State::Published { again: Some(again) } if *again <= self.cx.now.tick => (0, None),
            State::Running { .. } | State::Backoff { .. } | State::Published { .. } => return,
        };
        self.reviews.publication.state = State::Running {
            failures,
            error,
            stale: false,
            touched: false,
        };
        let routes = Arc::clone(&self.reviews.routes);
        self.jobs
            .begin(&mut self.cx, (), |ticket| Job::PublishWebhooks(routes, ticket));
    }

    pub(in crate::operator) fn published(&mut self, result: Result<(), Failure>) {
        let State::Running {
            failures,
            error,
            stale,
            touched,
        } = std::mem::take(&mut self.reviews.publication.state)
        else {
            return;
        };
        self.reviews.publication.attempted = true;
        let nothing = self.reviews.routes.is_empty();
        let failure = match result {
            Ok(()) => None,
            // Who may not look after webhooks has published none.
            Err(failure) if nothing && failure.class == Class::Refused => None,
            Err(failure) => Some(failure),
        };
        if stale {
            self.reviews.publication.state = State::Due;
            return;
        }
        let Some(failure) = failure else {
            let pause = if touched { SOON } else { ROUND };
            let again = (!nothing).then(|| self.cx.now.tick + pause);
            self.reviews.publication.state = State::Published { again };
            return;
        };
        let delay = Backoff::delay(failures, self.cx.draw());
        self.reviews.publication.state = State::Backoff {
            until: self.cx.now.tick + delay,
            failures: failures + 1,
            error: failure.report.clone(),
        };
        self.cx.tell(Notice::StepFailed {
            step: STEP.to_owned(),
            again: error.as_ref() == Some(&failure.report),
            failure,
            retry_in: delay,
        });
    }

    pub(super) fn publication_timeout(&self) -> Option<(Tick, Waiting)> {
        let at = match &self.reviews.publication.state {
            State::Backoff { until, .. } => *until,
            State::Published { again } => (*again)?,
            State::Due | State::Running { .. } => return None,
        };
        Some((at, Waiting::Step(STEP.to_owned())))
    }
}
