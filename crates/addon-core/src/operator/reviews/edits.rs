//! Edits of our own ConfigMap that somebody wants to make. They are judged one after another: each may take a while, and
//! nothing else is to wait for that.
//!
//! What we write ourselves passes. Must never let a question go without a reply.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::operator::Operator;
use crate::operator::edit::Edit;
use crate::operator::effect::Job;
use crate::operator::event::ReviewId;
use crate::operator::query::Waiting;
use crate::review::reply::{NoAnswer, Reply, admission_reply};
use crate::review::request::AdmissionRequest;
use crate::review::response::AdmissionResponse;
use crate::time::Tick;

/// Edits that have not been answered, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Edits {
    open: BTreeMap<ReviewId, Open>,
    /// The one that is being judged, also if nobody waits for that any more.
    judging: Option<ReviewId>,
}

#[derive(Debug)]
struct Open {
    request: AdmissionRequest,
    /// Later than this nobody waits for an answer.
    until: Tick,
}

impl Operator {
    pub(super) fn edit_wanted(&mut self, id: ReviewId, request: AdmissionRequest, until: Tick) {
        self.reviews.edits.open.insert(id, Open { request, until });
    }

    /// Judges the next one, and leaves those that have no time left to the failure policy.
    pub(super) fn advance_edits(&mut self) {
        let now = self.cx.now.tick;
        let open = self.reviews.edits.open.iter();
        let late: Vec<ReviewId> = open.filter(|(_, open)| open.until <= now).map(|(id, _)| *id).collect();
        for id in late {
            self.leave_edit(id, NoAnswer::Unjudged);
        }
        if self.reviews.edits.judging.is_some() {
            return;
        }
        let Some((&id, open)) = self.reviews.edits.open.first_key_value() else {
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
            omissible: self.omissible(),
            ours: self.removal.ours().count(),
            origin: self.config.origin(),
        };
        self.reviews.edits.judging = Some(id);
        self.jobs
            .begin(&mut self.cx, id, |ticket| Job::JudgeEdit(Box::new(edit), ticket));
    }

    /// An edit is judged.
    pub(in crate::operator) fn edit_judged(&mut self, id: ReviewId, result: Result<AdmissionResponse, Failure>) {
        if self.reviews.edits.judging == Some(id) {
            self.reviews.edits.judging = None;
        }
        let Some(open) = self.reviews.edits.open.remove(&id) else {
            return;
        };
        let reply = match result {
            Ok(response) => admission_reply(&open.request.head, &response),
            Err(_) => Reply::NoAnswer(NoAnswer::Unjudged),
        };
        self.reply(id, reply);
    }

    fn leave_edit(&mut self, id: ReviewId, why: NoAnswer) {
        self.reviews.edits.open.remove(&id);
        self.reply(id, Reply::NoAnswer(why));
    }

    /// We go down: what is not being judged will not be.
    pub(super) fn close_edits(&mut self) {
        let edits = &self.reviews.edits;
        let waiting = edits.open.keys().copied().filter(|id| edits.judging != Some(*id));
        for id in waiting.collect::<Vec<_>>() {
            self.leave_edit(id, NoAnswer::Stopping);
        }
    }

    /// When an edit has no time left.
    pub(super) fn edits_timeout(&self) -> Option<(Tick, Waiting)> {
        let until = self.reviews.edits.open.values().map(|open| open.until).min()?;
        Some((until, Waiting::Edit))
    }
}
