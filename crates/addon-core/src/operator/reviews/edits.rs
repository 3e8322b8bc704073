//! Edits of our own ConfigMap that somebody wants to make. They are judged one after another: each may take a while, and
//! nothing else is to wait for that.
//!
//! What we write ourselves passes. Must never let a question go without a reply.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::operator::Operator;
use crate::operator::edit::Edit;
use crate::operator::effect::{Effect, Job, JobId};
use crate::operator::event::{Done, ReviewId};
use crate::operator::jobs::Purpose;
use crate::operator::query::Waiting;
use crate::review::reply::{NoAnswer, Reply, admission_reply};
use crate::review::request::AdmissionRequest;
use crate::time::Tick;

/// Edits that have not been answered, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Edits(BTreeMap<ReviewId, Open>);

#[derive(Debug)]
struct Open {
    request: AdmissionRequest,
    /// Later than this nobody waits for an answer.
    until: Tick,
    job: Option<JobId>,
}

impl Operator {
    pub(super) fn edit_wanted(&mut self, id: ReviewId, request: AdmissionRequest, until: Tick) {
        let open = Open {
            request,
            until,
            job: None,
        };
        self.reviews.edits.0.insert(id, open);
    }

    /// Judges the next one, and leaves those that have no time left to the failure policy.
    pub(super) fn advance_edits(&mut self) {
        let now = self.now.tick;
        let open = self.reviews.edits.0.iter();
        let late: Vec<ReviewId> = open.filter(|(_, open)| open.until <= now).map(|(id, _)| *id).collect();
        for id in late {
            let job = self.reviews.edits.0.get(&id).and_then(|open| open.job);
            self.effects.extend(job.map(Effect::CancelJob));
            self.leave_edit(id, NoAnswer::Unjudged);
        }
        if self.reviews.edits.0.values().any(|open| open.job.is_some()) {
            return;
        }
        let Some((&id, open)) = self.reviews.edits.0.first_key_value() else {
            return;
        };
        let Some(config_map) = self.reviews.routes.config_map() else {
            return self.leave_edit(id, NoAnswer::Unjudged);
        };
        let edit = Edit {
            review: open.request.review.clone(),
            config_map: config_map.to_owned(),
            values: self.values.clone(),
            modules: self.modules.keys().cloned().collect(),
            known: self.known_texts(),
        };
        let job = self.start_job(Job::JudgeEdit(Box::new(edit)), Purpose::Review(id));
        if let Some(open) = self.reviews.edits.0.get_mut(&id) {
            open.job = Some(job);
        }
    }

    /// An edit is judged.
    pub(super) fn edit_judged(&mut self, id: ReviewId, result: Result<Done, Failure>) {
        let Some(open) = self.reviews.edits.0.remove(&id) else {
            return;
        };
        let reply = match result {
            Ok(Done::EditJudged(response)) => admission_reply(&open.request.head, &response),
            Ok(_) | Err(_) => Reply::NoAnswer(NoAnswer::Unjudged),
        };
        self.reply(id, reply);
    }

    fn leave_edit(&mut self, id: ReviewId, why: NoAnswer) {
        self.reviews.edits.0.remove(&id);
        self.reply(id, Reply::NoAnswer(why));
    }

    /// We go down: what is not being judged will not be.
    pub(super) fn close_edits(&mut self) {
        let open = self.reviews.edits.0.iter();
        let waiting: Vec<ReviewId> = open.filter(|(_, open)| open.job.is_none()).map(|(id, _)| *id).collect();
        for id in waiting {
            self.leave_edit(id, NoAnswer::Stopping);
        }
    }

    /// When an edit has no time left.
    pub(super) fn edits_timeout(&self) -> Option<(Tick, Waiting)> {
        let until = self.reviews.edits.0.values().map(|open| open.until).min()?;
        Some((until, Waiting::Edit))
    }
}
