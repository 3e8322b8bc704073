//! The loop around the operator value: events in, effects out, one timer.
//!
//! It waits for nothing but its mailbox and its timer, so it cannot be part of a deadlock. Must never decide: the
//! operator value decides what follows from an event, and the jobs carry out effects.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;

use addon_core::failure::{Class, Failure};
use addon_core::operator::Operator;
use addon_core::operator::effect::{Effect, Job, JobId};
use addon_core::operator::event::{Event, Finished, ReviewId};
use addon_core::review::reply::Reply;
use futures::FutureExt;
use mailbox::questions::BoxedQuestion;
use mailbox::replies::Replies;
use mailbox::{Doors, Mail, Mailbox};
use parts::clock::Clock;
use report::last_words;
use sources::Judged;
use telling::notices::Notices;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use jobs::editions::Editions;
use watches::Monitors;

/// The parts that carry out effects at once, without a job.
#[derive(Debug)]
pub struct Hands {
    /// Stops monitors.
    pub monitors: Monitors,
    /// Sends replies to the API server.
    pub replies: Replies<Reply>,
    /// Replaces the files of modules by those that were read again.
    pub editions: Editions,
    /// Passes on judgements on files that came from sources.
    pub judged: mpsc::UnboundedSender<Judged>,
    /// Tells that the state of the operator may have changed.
    pub stirred: watch::Sender<()>,
}

impl Hands {
    /// The parts, of which the loop gets clones.
    pub fn new(
        monitors: &Monitors,
        replies: Replies<Reply>,
        editions: Editions,
        judged: mpsc::UnboundedSender<Judged>,
        stirred: &watch::Sender<()>,
    ) -> Self {
        Self {
            monitors: monitors.clone(),
            replies,
            editions,
            judged,
            stirred: stirred.clone(),
        }
    }
}

/// The operator value, its mailbox, and its jobs. `R` starts a job.
pub struct Driver<R> {
    operator: Operator,
    doors: Doors<Event, BoxedQuestion>,
    mailbox: Mailbox<Event, BoxedQuestion>,
    run: R,
    hands: Hands,
    jobs: JoinSet<()>,
    running: BTreeMap<JobId, CancellationToken>,
    notices: Notices,
    clock: Clock,
}

impl<R, F> Driver<R>
where
    R: Fn(Job, CancellationToken) -> F,
    F: Future<Output = Finished> + Send + 'static,
{
    /// A driver that has not begun; `run` is called for each job and must not block.
    pub fn new(
        operator: Operator,
        doors: Doors<Event, BoxedQuestion>,
        mailbox: Mailbox<Event, BoxedQuestion>,
        notices: Notices,
        hands: Hands,
        run: R,
    ) -> Self {
        let (jobs, running, clock) = (JoinSet::new(), BTreeMap::new(), Clock::start());
        Self {
            operator,
            doors,
            mailbox,
            run,
            hands,
            jobs,
            running,
            notices,
            clock,
        }
    }

    /// Passes the events of the start to the `Operator`, then all other events, until the `Operator` asks for the end of
    /// the process.
    pub async fn run(mut self, found: impl IntoIterator<Item = Event>) {
        for event in found {
            if self.step(event).is_break() {
                return;
            }
        }
        loop {
            let due = self.operator.poll_timeout().map(|(tick, _)| self.clock.instant(tick));
            let event = match self.mailbox.next(alarm(due)).await {
                Mail::Shutdown => Event::ShutdownRequested,
                // The listener has given up waiting for this reply.
                Mail::Review(Event::ReviewRequested(ReviewId(number), _))
                    if !self.hands.replies.are_awaited(number) =>
                {
                    continue;
                }
                Mail::Outcome(event) | Mail::Review(event) | Mail::Configuration(event) | Mail::Object(event) => event,
                Mail::Timer => Event::TimerFired,
                Mail::Question(question) => {
                    question.answer(&self.operator);
                    continue;
                }
            };
            if self.step(event).is_break() {
                return;
            }
        }
    }

    /// Handles one event and its immediate effects.
    fn step(&mut self, event: Event) -> ControlFlow<()> {
        if let Event::JobFinished(finished) = &event {
            self.running.remove(&finished.id());
            while self.jobs.try_join_next().is_some() {}
        }
        let began = Instant::now();
        self.operator.handle(self.clock.now(), event);
        let decided_in = began.elapsed();
        self.hands.stirred.send_replace(());
        while let Some(effect) = self.operator.poll_effect() {
            match effect {
                Effect::StartJob(job) => self.start(job),
                Effect::CancelJob(id) => {
                    if let Some(cancel) = self.running.get(&id) {
                        cancel.cancel();
                    }
                }
                Effect::Tell(notice) => self.notices.tell(&notice, decided_in),
                Effect::Reply(ReviewId(number), reply) => self.hands.replies.send(number, reply),
                Effect::TakeUpFiles(module, edition) => self.hands.editions.take_up(&module, edition),
                Effect::JudgeFiles(module, edition, verdict) => {
                    // Without modules no part follows sources, and there is no receiver.
                    let _ = self.hands.judged.send((module, edition, verdict));
                }
                Effect::StopMonitors(ids) => self.hands.monitors.stop(&ids),
                Effect::GiveUp(failure) => {
                    let hint = (!failure.hints.is_empty()).then(|| failure.hints.join("; "));
                    tracing::error!(error = failure.report, hint, "The operator cannot continue, ending");
                    return ControlFlow::Break(());
                }
                Effect::Exit => return ControlFlow::Break(()),
            }
        }
        ControlFlow::Continue(())
    }

    fn start(&mut self, job: Job) {
        let cancel = CancellationToken::new();
        self.running.insert(job.id(), cancel.clone());
        // The outcome for a job that panics, which loses its own ticket.
        let lost = job.failed(Failure::defect("a job was lost"));
        let work = (self.run)(job, cancel);
        let doors = self.doors.clone();
        self.jobs.spawn(async move {
            // The loop may have ended.
            let _ = doors.post(Event::JobFinished(outcome(work, lost).await));
        });
    }
}

/// The outcome of a job. If the job panics, this is `lost` with the failure.
async fn outcome(work: impl Future<Output = Finished>, lost: Finished) -> Finished {
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    ended.unwrap_or_else(|panic| lost.failing(defect(panic.as_ref())))
}

impl<R> fmt::Debug for Driver<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("mailbox", &self.mailbox)
            .field("running", &self.running.keys())
            .finish_non_exhaustive()
    }
}

/// The failure that reports the panic of a job.
fn defect(panic: &(dyn Any + Send)) -> Failure {
    Failure::new(Class::Defect, format!("a job panicked: {}", last_words(panic)))
        .hint("this is a defect of addon-operator, please report it")
}

/// Returns at the given time; never returns without one.
pub async fn alarm(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use addon_core::module::Inventory;
    use addon_core::operator::policy::Policy;
    use values_schema::schema::Schemas;

    use super::*;

    fn a_job() -> Job {
        let mut operator = Operator::new(1, Policy::default());
        let nothing = Inventory {
            global_values: serde_json::Value::Null,
            global_schemas: Schemas::default(),
            has_global_hooks: false,
            modules: Vec::new(),
            values_files: BTreeMap::default(),
            complete: true,
        };
        operator.handle(Clock::start().now(), Event::InventoryChanged(nothing));
        let started = std::iter::from_fn(|| operator.poll_effect()).find_map(|effect| match effect {
            Effect::StartJob(job) => Some(job),
            _ => None,
        });
        started.expect("the state is loaded first")
    }

    #[tokio::test]
    async fn a_panic_becomes_the_failure_of_its_job() {
        let job = a_job();
        let lost = job.failed(Failure::defect("lost"));
        let id = job.id();
        let panicking = async move {
            assert_ne!(job.id(), id, "broken");
            job.failed(Failure::defect("it went on"))
        };
        let finished = outcome(panicking, lost).await;
        let failure = finished.failure().unwrap();
        assert_eq!((finished.id(), failure.class), (id, Class::Defect));
        assert!(failure.report.starts_with("a job panicked: "), "{failure}");
    }
}
