//! Carries out the actions of a trial: each is one request that takes effect only on the observed state.
//!
//! Must never retry by itself: the next decision follows from the state at that time.

use std::time::Duration;

use addon_core::failure::Failure;
use channel_core::reference::ImageDigest;
use channel_core::trial::action::{Action, Outcome};
use channel_core::trial::record::Trial;
use kube_access::error::RequestError;
use saved_state::trial::Changed;
use saved_state::trial::{change_trial, forget_report, save_remembered};
use tokio::time::timeout;
use tracing::info;

use super::Trying;
use crate::installation::patching;
use crate::installation::trial_set;

/// How long the election may take to write the entitled version.
const ENTITLED_WITHIN: Duration = Duration::from_secs(15);

impl Trying {
    pub(super) async fn carry_out(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Pin { from, to } | Action::Promote { from, to } => {
                outcome(patching::patch_image(&self.cluster, &self.installation, from, to).await)
            }
            Action::Entitle(version) => self.entitle(version.as_ref()).await,
            Action::Record { over, trial } => self.record(over.as_deref(), trial.as_deref()).await,
            Action::Remember { over, remembered } => changed(save_remembered(&self.cluster, over, remembered).await),
            Action::MakeSet { trial, image } => {
                let made = trial_set::make_trial_set(&self.cluster, &self.installation, trial, image).await;
                self.asking.look_again();
                if let Ok(patching::Outcome::Done) = &made {
                    let (set, digest) = (self.installation.trial_set(), trial.to.digest.as_str());
                    info!(set, digest, "Creating the pod of a trial");
                }
                outcome(made)
            }
            Action::DropSet { over, uid } => self.drop_set(over.as_deref(), uid).await,
        }
    }

    /// Waits until the lease names the version, because later steps must not come first.
    async fn entitle(&mut self, version: Option<&ImageDigest>) -> Outcome {
        self.handle.entitle(version.cloned());
        let says_so = self.lease.wait_for(|lease| lease.entitled.as_ref() == version);
        match timeout(ENTITLED_WITHIN, says_so).await {
            Ok(Ok(_)) => Outcome::Done,
            Ok(Err(_)) | Err(_) => {
                Outcome::Failed("cannot write to the lease which version is entitled to it".to_owned())
            }
        }
    }

    async fn record(&self, over: Option<&Trial>, trial: Option<&Trial>) -> Outcome {
        let settles = self.pulse.as_ref().is_some_and(|pulse| !pulse.noted.is_empty());
        if trial.is_none() && settles {
            // The operator still needs this record to put back sections that hooks saved during the trial.
            return Outcome::Changed;
        }
        if over.is_none() || trial.is_none() {
            // The report of an earlier version must not count as the report of this version.
            if let Err(error) = forget_report(&self.cluster).await {
                return failed(error);
            }
        }
        changed(change_trial(&self.cluster, over, trial).await)
    }

    async fn drop_set(&self, over: Option<&Trial>, uid: &str) -> Outcome {
        let dropped = trial_set::drop_trial_set(&self.cluster, &self.installation, over, uid).await;
        self.asking.look_again();
        if let Ok(patching::Outcome::Done) = &dropped {
            info!(set = self.installation.trial_set(), uid, "Ending the pod of a trial");
        }
        outcome(dropped)
    }
}

fn outcome(outcome: Result<patching::Outcome, RequestError>) -> Outcome {
    match outcome {
        Ok(patching::Outcome::Done) => Outcome::Done,
        Ok(patching::Outcome::Changed { now: _ }) => Outcome::Changed,
        Err(error) => failed(error),
    }
}

fn changed<T>(changed: Result<Changed<T>, RequestError>) -> Outcome {
    match changed {
        Ok(Changed::Done) => Outcome::Done,
        Ok(Changed::Other(_)) => Outcome::Changed,
        Err(error) => failed(error),
    }
}

fn failed(error: RequestError) -> Outcome {
    let Failure { report, hints, .. } = error.into();
    let hints = if hints.is_empty() {
        String::new()
    } else {
        format!(" ({})", hints.join("; "))
    };
    Outcome::Failed(format!("{report}{hints}"))
}
