//! For tests: a loop with fixed answers, and a client for real listeners.

use std::any::Any;
use std::future::pending;
use std::ops::ControlFlow;

use addon_core::operator::event::Event;
use addon_core::operator::explain::Query;
use addon_core::operator::query::{ModuleReport, QueueReport, Status, TaskReport};
use axum::Router;
use mailbox::questions::{Asked, BoxedQuestion};
use mailbox::{Mail, Mailbox, mailbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use listeners::Loop;

/// The answers that a loop gives, one for each type of question.
#[derive(Default)]
pub(super) struct Answers(Vec<Prepared>);

/// Answers a question of one type. Returns a question of another type.
type Prepared = Box<dyn Fn(Box<dyn Any>) -> Result<(), Box<dyn Any>> + Send>;

impl Answers {
    /// Questions of this type get this answer.
    pub(super) fn on<Q: Query>(mut self, answer: impl Fn(&Q) -> Q::Answer + Send + 'static) -> Self {
        self.0.push(Box::new(move |question| {
            question.downcast::<Asked<Q>>()?.answer_with(&answer);
            Ok(())
        }));
        self
    }

    fn give(&self, question: BoxedQuestion) {
        let unanswered = self
            .0
            .iter()
            .try_fold(question as Box<dyn Any>, |question, answer| match answer(question) {
                Ok(()) => ControlFlow::Break(()),
                Err(question) => ControlFlow::Continue(question),
            });
        assert!(unanswered.is_break(), "no answer was prepared for a question");
    }

    /// A loop that gives these answers for as long as the set of tasks lives.
    pub(super) fn answering(self) -> (Loop, JoinSet<()>) {
        let (doors, mut mail) = mailbox(CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                if let Mail::Question(question) = mail.next(pending()).await {
                    self.give(question);
                }
            }
        });
        (doors, tasks)
    }
}

/// Answers with which only questions of this type are answered.
pub(super) fn on<Q: Query>(answer: impl Fn(&Q) -> Q::Answer + Send + 'static) -> Answers {
    Answers::default().on(answer)
}

/// A loop that lives and never answers.
pub(super) fn wedged() -> (Loop, Mailbox<Event, BoxedQuestion>) {
    mailbox(CancellationToken::new())
}

/// The answer of a listener with these routes: status, content type, body.
pub(super) async fn ask(router: Router, request: &str) -> (u16, String, String) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
        let (line, fields) = head.split_once('\n').unwrap_or((head, ""));
        let fields = if fields.is_empty() {
            String::new()
        } else {
            format!("\r\n{fields}")
        };
        let head = format!("{line} HTTP/1.1\r\nHost: test{fields}");
        let length = body.len();
        let request = format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        stop.cancel();
        answer
    };
    let (served, answer) = tokio::join!(listeners::listen(listener, router, stop.clone()), exchange);
    served.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let kind = head
        .lines()
        .find_map(|line| line.strip_prefix("content-type: "))
        .unwrap_or_default();
    (status, kind.to_owned(), body.to_owned())
}

/// The status before anything has happened.
pub(super) fn status() -> Status {
    Status {
        not_started: true,
        ready: false,
        converge_tasks: 0,
        waiting: Vec::new(),
        config_problems: std::collections::BTreeMap::new(),
        config_lost: Vec::new(),
        unkept: Vec::new(),
        late: Vec::new(),
        old_values: Vec::new(),
        held: Vec::new(),
        held_upgrades: Vec::new(),
        held_by_trial: Vec::new(),
    }
}

pub(super) fn queue(name: &str, status: &str, descriptions: &[&str]) -> QueueReport {
    let tasks = descriptions.iter().map(|&description| TaskReport {
        kind: "ModuleRun",
        module: "one".into(),
        hook: String::new(),
        description: description.to_owned(),
    });
    QueueReport {
        name: name.into(),
        status: status.into(),
        tasks: tasks.collect(),
    }
}

pub(super) fn module(name: &str, enabled: bool) -> ModuleReport {
    ModuleReport {
        name: name.into(),
        order: 10,
        enabled,
        decided: true,
        enabled_by: "Static".into(),
        state: "Ready".into(),
        waits_for: String::new(),
        error: None,
        hints: Vec::new(),
        remarks: Vec::new(),
        failures: 0,
        fails: false,
        late: false,
        depends_on: Vec::new(),
        failing: Vec::new(),
        needs: None,
        upgrade_held: false,
        in_maintenance: false,
        after: Vec::new(),
        config_problems: Vec::new(),
        config_digest: None,
        health: addon_core::operator::health::Health::Healthy,
        unhealthy: None,
        unhealthy_for: None,
    }
}
