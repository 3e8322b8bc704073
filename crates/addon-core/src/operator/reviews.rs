//! Reviews: the API server asks, a hook runs outside of the queues, and its answer is sent before the API server's time
//! to wait ends. Questions about the ConfigMap are answered by the operator itself.
//!
//! Must never leave a question without a reply, nor answer in the place of a hook: if the hook cannot be asked, the API
//! server applies the failure policy.

pub(super) mod edits;
mod publication;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clock::Tick;
use names::Owner;

use self::edits::Edits;
use self::publication::Publication;
use super::bindings::Bindings;
use super::cx::Cx;
use super::effect::{Effect, HookLabels, HookRun, Job, JobId, Notice};
use super::event::{Asked, HookRan, ReviewId};
use super::jobs::Jobs;
use super::lanes::Lanes;
use super::modules::Modules;
use super::monitors::Monitors;
use super::query::Waiting;
use super::task::Slot;
use super::ticket::RunFor;
use crate::failure::{Class, Failure};
use crate::hook::context::BindingContext;
use crate::review::reply::{NoAnswer, Reply};
use crate::review::routes::{Opened, Routes};
use crate::review::{Ended, Progress, Review, Run};
use crate::values::Store;

/// The state of all reviews.
#[derive(Debug, Clone, Default)]
pub(super) struct Reviews {
    routes: Arc<Routes>,
    open: BTreeMap<ReviewId, Open>,
    edits: Edits,
    publication: Publication,
}

/// A review that waits for a hook to start, or to end.
#[derive(Debug, Clone)]
struct Open {
    review: Review,
    run: Box<Run>,
    /// The time after which the API server does not wait for an answer any more.
    until: Tick,
    job: Option<JobId>,
}

/// The state machines of the core that a review uses.
#[derive(Debug)]
pub(super) struct Needs<'a> {
    pub(super) cx: &'a mut Cx,
    pub(super) jobs: &'a mut Jobs,
    pub(super) lanes: &'a mut Lanes,
    pub(super) bindings: &'a Bindings,
    pub(super) monitors: &'a Monitors,
    pub(super) modules: &'a Modules,
    pub(super) values: &'a Store,
    /// Whether the operator is shutting down.
    pub(super) is_stopping: bool,
}

pub(super) fn reply(cx: &mut Cx, id: ReviewId, reply: Reply) {
    cx.effect(Effect::Reply(id, reply));
}

impl Reviews {
    /// The state of the webhook configurations in the cluster.
    pub(super) fn publication(&self) -> &Publication {
        &self.publication
    }

    /// Notes that the webhook configurations in the cluster were changed.
    pub(super) fn touched(&mut self, cx: &Cx) {
        self.publication.is_touched(cx.now.tick);
    }

    /// Whether the first publication is still to come. Objects that hooks convert must not be listed until the API
    /// server knows the address of the conversion, or the publication has failed.
    pub(super) fn awaits_publication(&self) -> bool {
        self.routes.conversions().next().is_some() && !self.publication.was_attempted()
    }

    /// Publishes changed routes. Called when everything else is decided, because one step may make a module able to
    /// answer and, before it ends, unable again.
    pub(super) fn advance_publication(&mut self, cx: &mut Cx, jobs: &mut Jobs) {
        self.publication.advance(cx, jobs, &self.routes);
    }

    /// Notes the end of a publication, or its failure.
    pub(super) fn published(&mut self, cx: &mut Cx, result: Result<(), Failure>) {
        self.publication.published(cx, self.routes.is_empty(), result);
    }

    /// Takes in a question of the API server.
    pub(super) fn requested(&mut self, cx: &mut Cx, id: ReviewId, asked: Asked) {
        let Asked { path, request, within } = asked;
        let until = cx.now.tick + within;
        match self.routes.open(&path, request) {
            Opened::Answered(answer) => reply(cx, id, answer),
            Opened::Edit(request) => self.edits.wanted(id, request, until),
            Opened::Running(review, run) => {
                let open = Open {
                    review,
                    run,
                    until,
                    job: None,
                };
                self.open.insert(id, open);
            }
        }
    }

    /// The next edit to be judged, with the name of our ConfigMap; `None` while an edit is being judged.
    pub(super) fn next_edit(&mut self, cx: &mut Cx) -> Option<edits::Asked> {
        self.edits.next(cx, self.routes.config_map())
    }

    /// The edits of our ConfigMap that wait for an answer.
    pub(super) fn edits_mut(&mut self) -> &mut Edits {
        &mut self.edits
    }

    /// Takes over the routes that hooks want, and publishes them if they changed.
    pub(super) fn take_routes(&mut self, cx: &mut Cx, bindings: &Bindings, modules: &Modules) {
        let asked = bindings.iter().filter(|(hook, config)| {
            let reviews = config.validating.len() + config.mutating.len() + config.conversions.len();
            reviews > 0 && modules.take_events(hook)
        });
        let (mut routes, clashes) = Routes::of(asked);
        if let Some(config_map) = cx.policy.edits.config_map(routes.admits()) {
            routes = routes.with_edits_of(config_map);
        }
        if routes != *self.routes {
            self.routes = Arc::new(routes);
            self.publication.is_due();
            let unowned = cx.policy.mode.kind(&Owner::Global);
            for clash in clashes {
                let failure = Failure::new(Class::Invalid, clash.told(unowned));
                cx.tell(Notice::ReviewClash(failure));
            }
        }
    }

    /// Starts the reviews that can start, and answers the reviews whose time is over.
    pub(super) fn advance(&mut self, mut needs: Needs<'_>) {
        let ids: Vec<ReviewId> = self.open.keys().copied().collect();
        for id in ids {
            self.advance_review(&mut needs, id);
        }
    }

    fn advance_review(&mut self, needs: &mut Needs<'_>, id: ReviewId) {
        let Some(open) = self.open.get(&id) else { return };
        let (hook, now) = (open.run.hook.clone(), needs.cx.now.tick);
        let kind = needs.cx.policy.mode.kind(&hook.owner);
        if open.until <= now {
            if let Some(job) = open.job {
                needs.cx.effect(Effect::CancelJob(job));
            }
            return self.resume(needs.cx, id, Ended::Late(kind), needs.is_stopping);
        }
        if open.job.is_some() || needs.lanes.rate_allows_from(needs.bindings, &hook) > now {
            return;
        }
        // A hook does not answer reviews while its module is switched off or has not started.
        if !needs.modules.take_events(&hook) {
            self.open.remove(&id);
            return reply(needs.cx, id, Reply::NoAnswer(NoAnswer::NotStarted(hook, kind)));
        }
        if needs.jobs.has_room(Slot::Review, &needs.cx.policy) {
            self.start(needs, id);
        }
    }

    fn start(&mut self, needs: &mut Needs<'_>, id: ReviewId) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let Run {
            hook,
            context,
            timeout: _,
            limit,
        } = &*open.run;
        let (hook, contexts) = (hook.clone(), vec![context.clone()]);
        let deadline = needs.cx.policy.deadline_of(*limit).min(open.until - needs.cx.now.tick);
        let labels = labels_of(context);
        needs.lanes.take_rate(needs.cx, needs.bindings, &hook);
        needs.cx.tell(Notice::HookStarted {
            hook: hook.clone(),
            labels: labels.clone(),
        });
        let globals = needs.values.globals();
        let run = HookRun {
            version: needs.bindings.version(&hook),
            snapshots: needs.monitors.snapshots_of(needs.bindings, &hook, &contexts),
            values: needs.values.hook_values_under(&globals, &hook.owner),
            config_values: needs.values.config_values_under(&globals, &hook.owner),
            secrecy: needs.values.hook_secrecy(&hook.owner),
            deadline,
            contexts,
            labels,
            hook,
        };
        let job = needs
            .jobs
            .begin(needs.cx, RunFor::Review(id), |ticket| Job::RunHook(run, ticket));
        open.job = Some(job);
    }

    /// Notes the end of a review's job.
    pub(super) fn ran(
        &mut self,
        cx: &mut Cx,
        id: ReviewId,
        result: Result<HookRan, Failure>,
        took: Duration,
        is_stopping: bool,
    ) {
        let Some(open) = self.open.get_mut(&id) else {
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
                cx.tell(Notice::HookSucceeded { hook, labels, usage });
                self.resume(cx, id, Ended::Well(*response), is_stopping);
            }
            Err(failure) => {
                let ended = match failure.class {
                    Class::TimedOut | Class::Cancelled => Ended::Late(cx.policy.mode.kind(&hook.owner)),
                    Class::Invalid
                    | Class::HookFailed
                    | Class::Refused
                    | Class::Unavailable
                    | Class::Defect
                    | Class::Held
                    | Class::Blocked
                    | Class::Damaged => Ended::Failed,
                };
                let failure = cx.policy.mode.of_hook(&hook, failure);
                cx.tell(Notice::HookFailed {
                    hook,
                    labels,
                    failure,
                    took,
                    allowed: false,
                    attempts: 1,
                    retry_in: None,
                });
                self.resume(cx, id, ended, is_stopping);
            }
        }
    }

    fn resume(&mut self, cx: &mut Cx, id: ReviewId, ended: Ended, is_stopping: bool) {
        let Some(mut open) = self.open.remove(&id) else {
            return;
        };
        match open.review.resume(ended) {
            Progress::Answered(answer) => reply(cx, id, answer),
            Progress::Run(_) if is_stopping => reply(cx, id, Reply::NoAnswer(NoAnswer::Stopping)),
            Progress::Run(run) => {
                open.run = run;
                open.job = None;
                self.open.insert(id, open);
            }
        }
    }

    /// Ends the reviews whose hooks are not running, because the operator is shutting down: no more hooks are started.
    pub(super) fn close(&mut self, cx: &mut Cx) {
        for (id, _) in self.open.extract_if(.., |_, open| open.job.is_none()) {
            reply(cx, id, Reply::NoAnswer(NoAnswer::Stopping));
        }
        self.edits.close(cx);
    }

    /// The time at which the next review is too late, or its hook may run again.
    pub(super) fn timeout(&self, cx: &Cx, lanes: &Lanes, bindings: &Bindings) -> Option<(Tick, Waiting)> {
        let reviews = self.open.values().map(|open| {
            let free = lanes.rate_allows_from(bindings, &open.run.hook);
            let waits = open.job.is_none() && free > cx.now.tick;
            let at = if waits { open.until.min(free) } else { open.until };
            (at, Waiting::Review(open.run.hook.clone()))
        });
        let others = self.edits.timeout().into_iter().chain(self.publication.timeout());
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
