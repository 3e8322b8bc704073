//! The words of a report on which a ruling depends: all that is worse than before the trial.
//!
//! Must never judge: a word says nothing about who is at fault.

use jiff::Timestamp;

use super::health::Ailing;
use super::record::{Failures, Report, Trial};

/// The parts of a report that show whether the report is a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) number: u64,
    pub(super) converged: Option<Timestamp>,
    /// The worst failure of a subject that did not fail before the trial.
    pub(super) worst: Option<(String, Failures)>,
    /// A subject that the cluster or the network hinders, and did not before the trial.
    pub(super) hindered: Option<String>,
    /// The modules that are not healthy any more.
    pub(super) ailing: Option<Ailing>,
}

impl Words {
    /// The words of a report, compared with the state before the trial.
    pub(super) fn of(report: &Report, trial: &Trial) -> Self {
        let all = report.failing.iter();
        let new = all.filter(|(subject, _)| !trial.failing.contains(*subject));
        let worst = new.max_by_key(|(_, failures)| **failures);
        Self {
            number: report.number,
            converged: report.converged,
            worst: worst.map(|(subject, failures)| (subject.clone(), *failures)),
            hindered: report.hindered.difference(&trial.failing).next().cloned(),
            ailing: Ailing::of(trial, report),
        }
    }

    pub(super) fn are_good(&self) -> bool {
        self.worst.is_none() && self.hindered.is_none() && self.ailing.is_none()
    }
}
