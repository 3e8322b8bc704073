//! The ways of reviews: the API server asks hooks, or asks the operator about its ConfigMap.

use crate::operator::Operator;
use crate::operator::edit::Edit;
use crate::operator::effect::Job;
use crate::operator::event::{Asked, ReviewId};
use crate::operator::reviews::{self, Needs};
use crate::review::reply::{NoAnswer, Reply};

impl Operator {
    /// Takes in a question of the API server.
    pub(super) fn review_requested(&mut self, id: ReviewId, asked: Asked) {
        if self.standing.is_stopping() {
            reviews::reply(&mut self.cx, id, Reply::NoAnswer(NoAnswer::Stopping));
        } else if self.startup.has_begun() {
            self.reviews.requested(&mut self.cx, id, asked);
        } else {
            reviews::reply(&mut self.cx, id, Reply::NoAnswer(NoAnswer::NotReady));
        }
    }

    /// Updates the routes, starts the reviews that can start, and answers the reviews whose time is over.
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

    /// Starts a job that judges the next edit of our ConfigMap.
    fn judge_edit(&mut self) {
        let Some(asked) = self.reviews.next_edit(&mut self.cx) else {
            return;
        };
        // Applied texts and our own texts need no other check against schemas.
        let mut known = self.config.vetted().clone();
        known.extend(self.commits.texts());
        let edit = Edit {
            review: asked.review,
            config_map: asked.config_map,
            values: self.values.clone(),
            modules: self.modules.names().cloned().collect(),
            known,
            spare: asked.spare,
            omissible: self.certainty().omissible(),
            ours: self.removal.ours().count(),
            origin: self.config.origin(),
        };
        self.jobs
            .begin(&mut self.cx, asked.id, |ticket| Job::JudgeEdit(Box::new(edit), ticket));
    }
}
