//! Channels into the loop, all bounded, and the order in which the loop takes from them.
//!
//! The crate knows nothing of the messages. Must never decide, and never lose a message silently.
//!
//! A channel of higher precedence cannot starve the others: outcomes are limited by the running jobs, questions by
//! permits, and reviews by the listeners, where each keeps its place until it has its reply.
//!
//! ```text
//!   Doors:  shutdown   outcomes   questions   reviews   ConfigMap   objects
//!              |          |           |          |          |          |
//!              v          v           v          v          v          v
//!   Mailbox:   first -------------------------------------------->  last  --> the loop
//! ```
//!
//! Begin with `mailbox`, which makes both ends.

pub mod questions;
pub mod replies;

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The largest number of questions that wait for an answer at the same time.
const QUESTIONS: usize = 64;
/// The number of waiting reviews. More of them wait in the API server instead of in memory.
const REVIEWS: usize = 64;
/// The number of waiting changes of the `ConfigMap`; its watch waits while the channel is full.
const CONFIGURATIONS: usize = 8;
/// The number of waiting object changes, after which watches are held back.
const OBJECTS: usize = 256;

/// Opens a mailbox. The token tells the loop of the shutdown.
pub fn mailbox<E, Q>(shutdown: CancellationToken) -> (Doors<E, Q>, Mailbox<E, Q>) {
    let (outcome_door, outcomes) = mpsc::unbounded_channel();
    let (question_door, questions) = mpsc::unbounded_channel();
    let (review_door, reviews) = mpsc::channel(REVIEWS);
    let (configuration_door, configurations) = mpsc::channel(CONFIGURATIONS);
    let (object_door, objects) = mpsc::channel(OBJECTS);
    let doors = Doors {
        outcomes: outcome_door,
        questions: question_door,
        permits: Arc::new(Semaphore::new(QUESTIONS)),
        reviews: review_door,
        configurations: configuration_door,
        objects: object_door,
    };
    let shutdown = Some(shutdown);
    (
        doors,
        Mailbox {
            shutdown,
            outcomes,
            questions,
            reviews,
            configurations,
            objects,
        },
    )
}

/// The loop has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the operator is shutting down")]
pub struct Closed;

/// The senders' end of the channels into the loop.
pub struct Doors<E, Q> {
    outcomes: mpsc::UnboundedSender<E>,
    questions: mpsc::UnboundedSender<Q>,
    permits: Arc<Semaphore>,
    reviews: mpsc::Sender<E>,
    configurations: mpsc::Sender<E>,
    objects: mpsc::Sender<E>,
}

impl<E, Q> Doors<E, Q> {
    /// The outcome of a job, of an election or of a person's decision. Cannot fill: there are as many outcomes as jobs,
    /// and the loop counts those; elections are few.
    pub fn post(&self, outcome: E) -> Result<(), Closed> {
        self.outcomes.send(outcome).map_err(|_| Closed)
    }

    /// Makes a question with its reply channel, sends it, and waits for the answer. The asker limits the time by
    /// dropping the future. A question whose asker has gone keeps its place until the loop has taken it.
    pub async fn ask_with<A>(&self, question: impl FnOnce(Reply<A>) -> Q) -> Result<A, Closed> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Closed)?;
        let (sender, answer) = oneshot::channel();
        let question = question(Reply { sender, permit });
        self.questions.send(question).map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }

    /// Sends a question of the API server; waits for room.
    pub async fn review(&self, event: E) -> Result<(), Closed> {
        self.reviews.send(event).await.map_err(|_| Closed)
    }

    /// Sends a change of the configuration; waits for room.
    pub async fn configure(&self, event: E) -> Result<(), Closed> {
        self.configurations.send(event).await.map_err(|_| Closed)
    }

    /// The channel for changes of the configuration.
    pub fn configurations(&self) -> mpsc::Sender<E> {
        self.configurations.clone()
    }

    /// The channel for changes of watched objects. A watch reserves room in it before it takes a change into a
    /// snapshot.
    pub fn objects(&self) -> mpsc::Sender<E> {
        self.objects.clone()
    }
}

impl<E, Q> Clone for Doors<E, Q> {
    fn clone(&self) -> Self {
        Self {
            outcomes: self.outcomes.clone(),
            questions: self.questions.clone(),
            permits: Arc::clone(&self.permits),
            reviews: self.reviews.clone(),
            configurations: self.configurations.clone(),
            objects: self.objects.clone(),
        }
    }
}

impl<E, Q> fmt::Debug for Doors<E, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doors")
            .field("permits", &self.permits.available_permits())
            .finish_non_exhaustive()
    }
}

/// The reply channel of a question. If it is dropped, the caller learns that the loop has ended.
pub struct Reply<A> {
    sender: oneshot::Sender<A>,
    permit: OwnedSemaphorePermit,
}

impl<A> Reply<A> {
    /// Sends the answer, unless the caller has given up.
    pub fn send(self, answer: A) {
        let Self { sender, permit } = self;
        drop(sender.send(answer));
        drop(permit);
    }

    /// Whether the caller no longer waits.
    pub fn is_unwanted(&self) -> bool {
        self.sender.is_closed()
    }
}

impl<A> fmt::Debug for Reply<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("unwanted", &self.is_unwanted())
            .finish_non_exhaustive()
    }
}

/// The message that woke the loop, in the order of precedence.
#[derive(Debug)]
pub enum Mail<E, Q> {
    /// The process has to stop. The loop is told once.
    Shutdown,
    Outcome(E),
    /// A question, which holds the channel for its answer.
    Question(Q),
    Review(E),
    Configuration(E),
    Timer,
    Object(E),
}

/// The loop's end of the channels.
pub struct Mailbox<E, Q> {
    /// `None` once the loop has got the request to stop.
    shutdown: Option<CancellationToken>,
    outcomes: mpsc::UnboundedReceiver<E>,
    questions: mpsc::UnboundedReceiver<Q>,
    reviews: mpsc::Receiver<E>,
    configurations: mpsc::Receiver<E>,
    objects: mpsc::Receiver<E>,
}

impl<E, Q> Mailbox<E, Q> {
    /// The most important message that waits, or else the next one. The loop passes its own timer, or a future that
    /// never ends. The timer takes precedence over changes of objects, because their stream may never pause.
    pub async fn next(&mut self, timer: impl Future<Output = ()>) -> Mail<E, Q> {
        tokio::select! {
            biased;
            () = asked_to_stop(self.shutdown.as_ref()) => {
                self.shutdown = None;
                Mail::Shutdown
            }
            Some(outcome) = self.outcomes.recv() => Mail::Outcome(outcome),
            Some(question) = self.questions.recv() => Mail::Question(question),
            Some(event) = self.reviews.recv() => Mail::Review(event),
            Some(event) = self.configurations.recv() => Mail::Configuration(event),
            () = timer => Mail::Timer,
            Some(event) = self.objects.recv() => Mail::Object(event),
        }
    }
}

/// Waits until the process is asked to stop. Never ends with `None`, which means that the request was already reported.
async fn asked_to_stop(shutdown: Option<&CancellationToken>) {
    match shutdown {
        Some(token) => token.cancelled().await,
        None => pending().await,
    }
}

impl<E, Q> fmt::Debug for Mailbox<E, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("outcomes", &self.outcomes.len())
            .field("questions", &self.questions.len())
            .field("reviews", &self.reviews.len())
            .field("configurations", &self.configurations.len())
            .field("objects", &self.objects.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::task::Poll;

    use futures::poll;

    use super::*;

    type Question = (&'static str, Reply<u32>);
    type Opened = (Doors<u32, Question>, Mailbox<u32, Question>);

    fn opened() -> (Opened, CancellationToken) {
        let token = CancellationToken::new();
        (mailbox(token.clone()), token)
    }

    async fn ask(doors: &Doors<u32, Question>, text: &'static str) -> Result<u32, Closed> {
        doors.ask_with(|reply| (text, reply)).await
    }

    fn label(mail: &Mail<u32, Question>) -> String {
        match mail {
            Mail::Shutdown => "shutdown".to_owned(),
            Mail::Outcome(n) => format!("outcome {n}"),
            Mail::Question((text, _)) => format!("question {text}"),
            Mail::Review(n) => format!("review {n}"),
            Mail::Configuration(n) => format!("configuration {n}"),
            Mail::Timer => "timer".to_owned(),
            Mail::Object(n) => format!("object {n}"),
        }
    }

    #[tokio::test]
    async fn what_matters_most_comes_first() {
        let ((doors, mut mailbox), token) = opened();
        doors.objects().send(6).await.unwrap();
        doors.configure(5).await.unwrap();
        doors.review(4).await.unwrap();
        let mut asking = Box::pin(ask(&doors, "why"));
        assert!(poll!(&mut asking).is_pending());
        doors.post(1).unwrap();
        doors.post(2).unwrap();
        token.cancel();
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last| last != "timer") {
            seen.push(label(&mailbox.next(ready(())).await));
        }
        assert_eq!(
            seen,
            [
                "shutdown",
                "outcome 1",
                "outcome 2",
                "question why",
                "review 4",
                "configuration 5",
                "timer"
            ]
        );
        assert_eq!(label(&mailbox.next(pending()).await), "object 6");
        assert!(
            poll!(Box::pin(mailbox.next(pending()))).is_pending(),
            "the shutdown is told once"
        );
    }

    #[tokio::test]
    async fn a_question_gets_its_own_answer() {
        let ((doors, mut mailbox), _token) = opened();
        let serve = async {
            for _ in 0..2 {
                if let Mail::Question((text, reply)) = mailbox.next(pending()).await {
                    reply.send(if text == "one" { 1 } else { 2 });
                }
            }
        };
        let (one, two, ()) = tokio::join!(ask(&doors, "one"), ask(&doors, "two"), serve);
        assert_eq!((one, two), (Ok(1), Ok(2)));
    }

    #[tokio::test]
    async fn questions_beyond_the_bound_wait_for_an_answer_to_one_before() {
        let ((doors, mut mailbox), _token) = opened();
        let mut asked: Vec<_> = (0..=QUESTIONS).map(|_| Box::pin(ask(&doors, "?"))).collect();
        for asking in &mut asked {
            assert!(poll!(asking).is_pending());
        }
        assert_eq!(mailbox.questions.len(), QUESTIONS);
        let Mail::Question((_, reply)) = mailbox.next(pending()).await else {
            unreachable!()
        };
        assert!(poll!(asked.last_mut().unwrap()).is_pending(), "taken is not answered");
        reply.send(7);
        assert_eq!(poll!(&mut asked[0]), Poll::Ready(Ok(7)));
        assert!(poll!(asked.last_mut().unwrap()).is_pending());
        assert_eq!(mailbox.questions.len(), QUESTIONS);
    }

    #[tokio::test]
    async fn an_asker_that_gives_up_is_noticed() {
        let ((doors, mut mailbox), _token) = opened();
        let mut asking = Box::pin(ask(&doors, "?"));
        assert!(poll!(&mut asking).is_pending());
        drop(asking);
        let Mail::Question((_, reply)) = mailbox.next(pending()).await else {
            unreachable!()
        };
        assert!(reply.is_unwanted());
        reply.send(1);
        assert_eq!(doors.permits.available_permits(), QUESTIONS);
    }

    #[tokio::test]
    async fn watchers_wait_when_the_loop_is_behind() {
        let ((doors, mut mailbox), _token) = opened();
        for n in 0..OBJECTS {
            doors.objects().send(n.try_into().unwrap()).await.unwrap();
        }
        let door = doors.objects();
        let mut next = Box::pin(door.send(999));
        assert!(poll!(&mut next).is_pending());
        assert_eq!(label(&mailbox.next(pending()).await), "object 0");
        assert_eq!(poll!(&mut next), Poll::Ready(Ok(())));
    }

    #[tokio::test]
    async fn a_storm_of_reviews_waits_outside_and_an_outcome_passes_it() {
        let ((doors, mut mailbox), _token) = opened();
        for n in 0..REVIEWS {
            doors.review(n.try_into().unwrap()).await.unwrap();
        }
        let mut next = Box::pin(doors.review(999));
        assert!(poll!(&mut next).is_pending());
        doors.post(1).unwrap();
        assert_eq!(label(&mailbox.next(pending()).await), "outcome 1");
        assert!(poll!(&mut next).is_pending());
        assert_eq!(label(&mailbox.next(pending()).await), "review 0");
        assert_eq!(poll!(&mut next), Poll::Ready(Ok(())));
    }

    #[tokio::test]
    async fn everybody_hears_that_the_loop_has_ended() {
        let ((doors, mailbox), _token) = opened();
        let mut asking = Box::pin(ask(&doors, "?"));
        assert!(poll!(&mut asking).is_pending());
        drop(mailbox);
        assert_eq!(asking.await, Err(Closed));
        assert_eq!(ask(&doors, "?").await, Err(Closed));
        assert_eq!(doors.post(1), Err(Closed));
        assert_eq!(doors.review(1).await, Err(Closed));
        assert_eq!(doors.configure(1).await, Err(Closed));
        assert!(doors.objects().is_closed());
    }
}
