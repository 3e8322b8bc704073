//! Gives jobs the view that the watches have of a release, so that a job need not read it. The view may be a moment old, so
//! nothing may be written because of it.
//!
//! The first answers wait for the first lists of the watches, but never long: a list that does not end must not hold up a
//! module.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use addon_core::release::Objects;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::object_healths::ObjectHealth;
use super::{Lookout, RELEASES, Watch};
use crate::revisions::Revision;

/// The time within which the first lists must have ended. After that, answers leave out what is not listed.
const FIRST_LISTS: Duration = Duration::from_secs(5);

/// The view that the watches have of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The newest revision.
    pub revision: Revision,
    /// Whether the objects of that revision exist.
    pub objects: Objects,
    /// Whether fields of its objects were altered.
    pub is_altered: bool,
}

/// The question of a job about a release.
pub(super) struct Question {
    release: String,
    answer: oneshot::Sender<Option<Sight>>,
}

/// A question to the lookout's task.
pub(super) enum Asked {
    /// The view of a release.
    Sight(Question),
    /// The health of each object of a release, or of objects of all releases that are not healthy.
    Objects(Option<String>, oneshot::Sender<Vec<ObjectHealth>>),
}

/// The channel for questions to the lookout's task; none before the watches begin.
#[derive(Default)]
pub(super) struct Questions(Mutex<Option<mpsc::UnboundedSender<Asked>>>);

impl Questions {
    pub(super) fn open(&self) -> mpsc::UnboundedReceiver<Asked> {
        let (way, asked) = mpsc::unbounded_channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(way);
        asked
    }

    pub(super) fn ask(&self, question: Asked) -> Option<()> {
        let way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        way.as_ref()?.send(question).ok()
    }
}

/// The questions that are not answered yet.
pub(super) struct Desk {
    pub(super) asked: mpsc::UnboundedReceiver<Asked>,
    waiting: Vec<Question>,
    /// The time after which questions do not wait for first lists.
    until: Instant,
}

impl Desk {
    pub(super) fn new(asked: mpsc::UnboundedReceiver<Asked>) -> Self {
        Self {
            asked,
            waiting: Vec::new(),
            until: Instant::now() + FIRST_LISTS,
        }
    }

    pub(super) fn take(&mut self, question: Question) {
        self.waiting.push(question);
    }

    /// The time at which waiting questions are answered in any case.
    pub(super) fn next(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.until)
    }
}

impl Lookout {
    /// The view of a release; `None` if the watches do not run, may lack changes, or show no release of this name or damage
    /// of its records.
    pub async fn sight(&self, release: &str) -> Option<Sight> {
        let (answer, answered) = oneshot::channel();
        let release = release.to_owned();
        self.0.questions.ask(Asked::Sight(Question { release, answer }))?;
        timeout(FIRST_LISTS, answered).await.ok()?.ok()?
    }
}

impl Watch {
    /// Answers all questions whose kinds are listed.
    pub(super) fn answer(&mut self) {
        let is_over = self.desk.until <= Instant::now();
        let waiting = std::mem::take(&mut self.desk.waiting);
        let releases = self.inner.releases();
        let (later, now): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|question| {
            let release = releases.get(&question.release);
            !is_over && release.is_some_and(|release| release.kinds().any(|kind| self.posts.is_listing(kind)))
        });
        self.desk.waiting = later;
        let brings_all = self.watches.brings_all(RELEASES);
        for Question { release, answer } in now {
            let release = releases
                .get(&release)
                .filter(|release| brings_all && !release.is_doubtful());
            let sight = release.and_then(|release| {
                let is_there = |kind: &_, object: &_| self.posts.certainly_holds(kind, object);
                Some(Sight {
                    revision: release.newest_revision()?.clone(),
                    objects: release.presence(self.inner.cluster.namespace(), is_there),
                    is_altered: !release.altered().is_empty(),
                })
            });
            // A job that was cancelled does not wait for its answer.
            let _ = answer.send(sight);
        }
    }
}
