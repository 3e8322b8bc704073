//! Reviews under way: the API server asks, a hook runs outside of every queue, and what it said goes back in time. About
//! the ConfigMap we answer ourselves.
//!
//! Must never let a question go without a reply, nor answer for a hook: who cannot be asked is left to the failure
//! policy.

mod edits;
mod publication;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use self::edits::Edits;
use self::publication::Publication;
use super::Operator;
use super::effect::{Effect, HookLabels, HookRun, Job, JobId, Notice};
use super::event::{Asked, HookRan, ReviewId};
use super::query::Waiting;
use super::ticket::RunFor;
use crate::failure::{Class, Failure};
use crate::hook::context::BindingContext;
use crate::name::{HookId, Owner};
use crate::review::reply::{NoAnswer, Reply};
use crate::review::routes::{Opened, Routes};
use crate::review::{Ended, Progress, Review, Run};
use crate::time::Tick;

/// Everything about reviews.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    routes: Arc<Routes>,
    open: BTreeMap<ReviewId, Open>,
    edits: Edits,
    pub(super) publication: Publication,
}

/// A review that waits for a hook to start, or to end.
#[derive(Debug)]
struct Open {
    review: Review,
    run: Box<Run>,
    /// Later than this nobody waits for an answer.
    until: Tick,
    job: Option<JobId>,
}

impl Operator {
    /// The API server asks.
    pub(super) fn review_requested(&mut self, id: ReviewId, asked: Asked) {
        let Asked { path, request, within } = asked;
        if self.stopping.is_some() {
            return self.reply(id, Reply::NoAnswer(NoAnswer::Stopping));
        }
        if !self.startup.begun {
            return self.reply(id, Reply::NoAnswer(NoAnswer::NotReady));
        }
        match self.reviews.routes.open(&path, request) {
            Opened::Answered(reply) => self.reply(id, reply),
            Opened::Edit(request) => self.edit_wanted(id, request, self.cx.now.tick + within),
            Opened::Running(review, run) => {
                let open = Open {
                    review,
                    run,
                    until: self.cx.now.tick + within,
                    job: None,
                };
                self.reviews.open.insert(id, open);
            }
        }
    }

    fn reply(&mut self, id: ReviewId, reply: Reply) {
        self.cx.effect(Effect::Reply(id, reply));
    }

    /// Keeps the routes up to date, starts what can start, and answers for what has no time left.
    pub(super) fn advance_reviews(&mut self) {
        self.take_routes();
        let ids: Vec<ReviewId> = self.reviews.open.keys().copied().collect();
        for id in ids {
            self.advance_review(id);
        }
        self.advance_edits();
    }

    /// Has the API server told what hooks want to be asked, as soon as that has changed.
    fn take_routes(&mut self) {
        if !self.startup.begun {
            return;
        }
        let asked = self.bindings.iter().filter(|(hook, config)| {
            let reviews = config.validating.len() + config.mutating.len() + config.conversions.len();
            reviews > 0 && self.answers(hook)
        });
        let (mut routes, clashes) = Routes::of(asked);
        if let Some(config_map) = self.cx.policy.edits.config_map(routes.admits()) {
            routes = routes.with_edits_of(config_map);
        }
        if routes != *self.reviews.routes {
            self.reviews.routes = Arc::new(routes);
            self.reviews.publication.is_due();
            for clash in clashes {
                let failure = Failure::new(Class::Invalid, clash.to_string());
                self.cx.tell(Notice::ReviewClash { failure });
            }
        }
    }

    /// Hooks of a module that is switched off, or has not started, review nothing.
    fn answers(&self, hook: &HookId) -> bool {
        match &hook.owner {
            Owner::Global => true,
            Owner::Module(name) => self
                .modules
                .get(name)
                .is_some_and(|unit| unit.enabled && unit.life.takes_events()),
        }
    }

    fn advance_review(&mut self, id: ReviewId) {
        let Some(open) = self.reviews.open.get(&id) else { return };
        let hook = open.run.hook.clone();
        if open.until <= self.cx.now.tick {
            if let Some(job) = open.job {
                self.cx.effect(Effect::CancelJob(job));
            }
            return self.resume_review(id, Ended::Late);
        }
        if open.job.is_some() || self.lanes.rate_allows_from(&self.bindings, &hook) > self.cx.now.tick {
            return;
        }
        if !self.answers(&hook) {
            self.reviews.open.remove(&id);
            return self.reply(id, Reply::NoAnswer(NoAnswer::NotStarted(hook)));
        }
        if self.jobs.review_slot(&self.cx.policy) {
            self.start_review(id);
        }
    }

    fn start_review(&mut self, id: ReviewId) {
        let Some(open) = self.reviews.open.get(&id) else { return };
        let Run {
            hook,
            context,
            timeout: _,
            limit,
        } = &*open.run;
        let (hook, contexts) = (hook.clone(), vec![context.clone()]);
        let deadline = self.deadline(*limit).min(open.until - self.cx.now.tick);
        let labels = labels_of(context);
        self.lanes.take_rate(&self.cx, &self.bindings, &hook);
        self.cx.tell(Notice::HookStarted {
            hook: hook.clone(),
            labels: labels.clone(),
        });
        let globals = self.values.globals();
        let run = HookRun {
            version: self.bindings.version(&hook),
            snapshots: self.monitors.snapshots_of(&self.bindings, &hook, &contexts),
            values: self.values.hook_values_under(&globals, &hook.owner),
            config_values: self.values.config_values_under(&globals, &hook.owner),
            deadline,
            contexts,
            labels,
            hook,
        };
        let job = self
            .jobs
            .begin(&mut self.cx, RunFor::Review(id), |ticket| Job::RunHook(run, ticket));
        if let Some(open) = self.reviews.open.get_mut(&id) {
            open.job = Some(job);
        }
    }

    /// The job of a review has ended.
    pub(super) fn review_ran(&mut self, id: ReviewId, result: Result<HookRan, Failure>, took: Duration) {
        let Some(open) = self.reviews.open.get_mut(&id) else {
            return;
        };
        open.job = None;
        let (hook, labels) = (open.run.hook.clone(), labels_of(&open.run.context));
        let result = match result {
            Ok(ran) if !ran.output.is_empty() => Err(Failure::new(
                Class::HookFailed,
                "a hook that is asked by the API server cannot change values",
            )),
            Ok(ran) => Ok((ran.response, ran.usage)),
            Err(failure) => Err(failure),
        };
        match result {
            Ok((response, usage)) => {
                self.cx.tell(Notice::HookSucceeded { hook, labels, usage });
                self.resume_review(id, Ended::Well(*response));
            }
            Err(failure) => {
                let ended = match failure.class {
                    Class::TimedOut | Class::Cancelled => Ended::Late,
                    Class::Invalid
                    | Class::HookFailed
                    | Class::Refused
                    | Class::Unavailable
                    | Class::Defect
                    | Class::Held => Ended::Failed,
                };
                let failure = self.of_hook(&hook, failure);
                self.cx.tell(Notice::HookFailed {
                    hook,
                    labels,
                    failure,
                    took,
                    allowed: false,
                    attempts: 1,
                    retry_in: None,
                });
                self.resume_review(id, ended);
            }
        }
    }

    fn resume_review(&mut self, id: ReviewId, ended: Ended) {
        let Some(mut open) = self.reviews.open.remove(&id) else {
            return;
        };
        match open.review.resume(ended) {
            Progress::Answered(reply) => self.reply(id, reply),
            Progress::Run(_) if self.stopping.is_some() => self.reply(id, Reply::NoAnswer(NoAnswer::Stopping)),
            Progress::Run(run) => {
                open.run = run;
                open.job = None;
                self.reviews.open.insert(id, open);
            }
        }
    }

    /// We go down: nobody else is asked.
    pub(super) fn close_reviews(&mut self) {
        let ids: Vec<ReviewId> = self.reviews.open.keys().copied().collect();
        for id in ids {
            if self.reviews.open.get(&id).is_some_and(|open| open.job.is_none()) {
                self.reviews.open.remove(&id);
                self.reply(id, Reply::NoAnswer(NoAnswer::Stopping));
            }
        }
        self.close_edits();
    }

    /// When a review has no time left, or its hook may run again.
    pub(super) fn reviews_timeout(&self) -> Option<(Tick, Waiting)> {
        let now = self.cx.now.tick;
        let reviews = self.reviews.open.values().map(|open| {
            let free = self.lanes.rate_allows_from(&self.bindings, &open.run.hook);
            let waits = open.job.is_none() && free > now;
            let at = if waits { open.until.min(free) } else { open.until };
            (at, Waiting::Review(open.run.hook.clone()))
        });
        let others = self.edits_timeout().into_iter().chain(self.publication_timeout());
        reviews.chain(others).min_by_key(|(at, _)| *at)
    }
}

fn labels_of(context: &BindingContext) -> HookLabels {
    HookLabels {
        cause: context.into(),
        binding_name: context.binding().to_owned(),
        queue: String::new(),
        activation: "",
    }
}
