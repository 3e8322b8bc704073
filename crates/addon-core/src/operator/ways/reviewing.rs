//! The ways of reviews: the API server asks, and about the ConfigMap we answer ourselves.

use crate::operator::Operator;
use crate::operator::edit::Edit;
use crate::operator::effect::Job;
use crate::operator::event::{Asked, ReviewId};
use crate::operator::reviews::{self, Needs};
use crate::review::reply::{NoAnswer, Reply};

impl Operator {
    /// The API server asks.
    pub(super) fn review_requested(&mut self, id: ReviewId, asked: Asked) {
        if self.standing.is_stopping() {
            reviews::reply(&mut self.cx, id, Reply::NoAnswer(NoAnswer::Stopping));
        } else if self.startup.has_begun() {
            self.reviews.requested(&mut self.cx, id, asked);
        } else {
            reviews::reply(&mut self.cx, id, Reply::NoAnswer(NoAnswer::NotReady));
        }
    }

    /// Keeps the routes up to date, starts what can start, and answers for what has no time left.
    pub(super) fn advance_reviews(&mut self) {
        if self.startup.has_begun() {
            self.reviews.take_routes(&mut self.cx, &self.bindings, &self.modules);
        }
        self.reviews.advance(Needs {
            cx: &mut self.cx,
            jobs: &mut self.jobs,
            lanes: &mut self.lanes,
            bindings: &self.bindings,
            monitors: &self.monitors,
            modules: &self.modules,
            values: &self.values,
            is_stopping: self.standing.is_stopping(),
        });
        self.judge_edit();
    }

    /// Has the next edit of our ConfigMap judged.
    fn judge_edit(&mut self) {
        let Some(asked) = self.reviews.next_edit(&mut self.cx) else {
            return;
        };
        // Texts that need not be held against schemas once more: those in force, and our own.
        let mut known = self.config.vetted().clone();
        known.extend(self.commits.texts());
        let edit = Edit {
            review: asked.review,
            config_map: asked.config_map,
            values: self.values.clone(),
            modules: self.modules.names().cloned().collect(),
            known,
            omissible: self.certainty().omissible(),
            ours: self.removal.ours().count(),
            origin: self.config.origin(),
        };
        self.jobs
            .begin(&mut self.cx, asked.id, |ticket| Job::JudgeEdit(Box::new(edit), ticket));
    }
}
