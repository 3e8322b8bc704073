//! The news of following the registry. Each is reported once, and again only after a change.

use std::collections::BTreeSet;

use super::{Status, TOLD_AFTER};
use crate::choice::{Choice, Reason, Target};
use crate::reference::ImageDigest;

/// News about the registry, for people and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A round has ended.
    Checked {
        /// Whether all questions of the round were answered.
        is_answered: bool,
    },
    /// The wanted version is not running yet.
    Available(Target),
    /// The wanted version waits for other reasons than before.
    Waits {
        /// The wanted version.
        target: Target,
        /// The reasons for which the version waits.
        reasons: Vec<Reason>,
    },
    /// The registry has not answered for several rounds.
    Unreachable(String),
    /// The registry answers again after rounds without an answer.
    Answers,
    /// The registry does not have the given running digests any more.
    Missing(BTreeSet<ImageDigest>),
}

/// The news about the registry that were already reported.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    rounds: Vec<bool>,
    available: Option<ImageDigest>,
    waits: Option<(ImageDigest, Vec<&'static str>)>,
    is_unreachable: bool,
    missing: BTreeSet<ImageDigest>,
}

impl Told {
    pub(super) fn note_round(&mut self, is_answered: bool) {
        self.rounds.push(is_answered);
    }

    pub(super) fn take(&mut self, status: &Status, failures: u32) -> Vec<News> {
        let rounds = std::mem::take(&mut self.rounds).into_iter();
        let mut news: Vec<News> = rounds.map(|is_answered| News::Checked { is_answered }).collect();
        self.connection(status, failures, &mut news);
        if status.missing != self.missing {
            self.missing.clone_from(&status.missing);
            if !self.missing.is_empty() {
                news.push(News::Missing(self.missing.clone()));
            }
        }
        self.version(status, &mut news);
        news
    }

    fn connection(&mut self, status: &Status, failures: u32, news: &mut Vec<News>) {
        match &status.trouble {
            Some(text) if failures >= TOLD_AFTER && !self.is_unreachable => {
                self.is_unreachable = true;
                news.push(News::Unreachable(text.clone()));
            }
            // After a change of the repository there is no complete round yet, so it is unknown whether the new one answers.
            None if self.is_unreachable && status.checked.is_some() => {
                self.is_unreachable = false;
                news.push(News::Answers);
            }
            Some(_) | None => {}
        }
    }

    fn version(&mut self, status: &Status, news: &mut Vec<News>) {
        let (target, reasons) = match &status.choice {
            Some(Choice::Waits { target, reasons, .. }) => (target, reasons.as_slice()),
            Some(Choice::Begin(target)) => (target, &[][..]),
            Some(Choice::Nothing(_)) => {
                (self.available, self.waits) = (None, None);
                return;
            }
            None => return,
        };
        if self.available.as_ref() != Some(&target.digest) {
            self.available = Some(target.digest.clone());
            news.push(News::Available(target.clone()));
        }
        let labels: Vec<&'static str> = reasons.iter().map(Reason::label).collect();
        let waits = (target.digest.clone(), labels);
        if self.waits.as_ref() != Some(&waits) {
            if !reasons.is_empty() {
                news.push(News::Waits {
                    target: target.clone(),
                    reasons: reasons.to_vec(),
                });
            }
            self.waits = Some(waits);
        }
    }
}
