//! Edits of our own ConfigMap that wait for an answer. They are judged one after another by jobs, because a judgement may
//! take long and other work must go on.
//!
//! The operator's own writes are always allowed. Must never leave a question without a reply.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Tick;

use super::reply;
use crate::failure::Failure;
use crate::object::json::Json;
use crate::operator::cx::Cx;
use crate::operator::event::ReviewId;
use crate::operator::query::Waiting;
use crate::review::reply::{NoAnswer, Reply, admission_reply};
use crate::review::request::AdmissionRequest;
use crate::review::response::AdmissionResponse;

/// Edits that have not been answered, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(in crate::operator) struct Edits {
    open: BTreeMap<ReviewId, Open>,
    /// The edit that is being judged, even if the API server does not wait for it any more.
    judging: Option<ReviewId>,
}

#[derive(Debug, Clone)]
struct Open {
    request: AdmissionRequest,
    /// The time after which the API server does not wait for an answer any more.
    until: Tick,
}

/// An edit of the ConfigMap that the API server asks about.
#[derive(Debug, Clone)]
pub(in crate::operator) struct Asked {
    pub(in crate::operator) id: ReviewId,
    pub(in crate::operator) review: Json,
    /// The name of our ConfigMap.
    pub(in crate::operator) config_map: String,
    /// The time for which the API server still waits; none while other edits wait, too.
    pub(in crate::operator) spare: Option<Duration>,
}

impl Edits {
    pub(super) fn wanted(&mut self, id: ReviewId, request: AdmissionRequest, until: Tick) {
        self.open.insert(id, Open { request, until });
    }

    /// The next edit to be judged. Edits whose time is over are left to the failure policy.
    pub(super) fn next(&mut self, cx: &mut Cx, config_map: Option<&str>) -> Option<Asked> {
        let now = cx.now.tick;
        let late = self.open.iter().filter(|(_, open)| open.until <= now);
        let late: Vec<ReviewId> = late.map(|(id, _)| *id).collect();
        for id in late {
            self.leave(cx, id, NoAnswer::Unjudged);
        }
        if self.judging.is_some() {
            return None;
        }
        let (&id, open) = self.open.first_key_value()?;
        let review = open.request.review.clone();
        let spare = (self.open.len() == 1).then(|| open.until - now);
        let Some(config_map) = config_map else {
            self.leave(cx, id, NoAnswer::Unjudged);
            return None;
        };
        self.judging = Some(id);
        Some(Asked {
            id,
            review,
            config_map: config_map.to_owned(),
            spare,
        })
    }

    /// Takes the judgement of an edit.
    pub(in crate::operator) fn judged(
        &mut self,
        cx: &mut Cx,
        id: ReviewId,
        result: Result<AdmissionResponse, Failure>,
    ) {
        if self.judging == Some(id) {
            self.judging = None;
        }
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        let answer = match result {
            Ok(response) => admission_reply(&open.request.head, &response),
            Err(_) => Reply::NoAnswer(NoAnswer::Unjudged),
        };
        reply(cx, id, answer);
    }

    fn leave(&mut self, cx: &mut Cx, id: ReviewId, why: NoAnswer) {
        self.open.remove(&id);
        reply(cx, id, Reply::NoAnswer(why));
    }

    /// Ends the waits, because the operator is shutting down. Only the edit that is being judged is still answered.
    pub(super) fn close(&mut self, cx: &mut Cx) {
        let waiting = self.open.keys().copied().filter(|id| self.judging != Some(*id));
        for id in waiting.collect::<Vec<_>>() {
            self.leave(cx, id, NoAnswer::Stopping);
        }
    }

    /// The time at which the next edit is too late.
    pub(super) fn timeout(&self) -> Option<(Tick, Waiting)> {
        let until = self.open.values().map(|open| open.until).min()?;
        Some((until, Waiting::Edit))
    }
}
