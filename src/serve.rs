//! What people and machines can ask us: listeners, their routes, their graceful end.
//!
//! Every answer about the operator's state comes from one question to the loop, so it never mixes two moments; a loop
//! that does not answer shows as exactly that. Must never decide, and never keep state of its own.

pub mod debug;
pub mod parameters;
pub mod probe;
pub mod pulse;
pub mod queue_text;
#[cfg(test)]
mod stage;
pub mod standing;
pub mod webhook;

use std::io;
use std::time::Duration;

use addon_core::operator::event::Event;
use addon_core::operator::query::{Answer, ModuleReport, Query, QueueReport, Status};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use thiserror::Error;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::mailbox::{Closed, Doors};

/// The ways into the loop, with what they carry.
pub type Loop = Doors<Event, Query, Answer>;

/// Plain text as Go's servers name it.
const TEXT: &str = "text/plain; charset=utf-8";

/// How long a question may take. A step of the loop takes milliseconds, so by then something is wrong, and a probe of
/// Kubernetes (one second by default) should learn that from us rather than from silence.
const PATIENCE: Duration = Duration::from_millis(900);

/// Why the loop did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unanswered {
    #[error("the main loop did not answer within {} ms", PATIENCE.as_millis())]
    Late,
    #[error(transparent)]
    Closed(#[from] Closed),
    #[error("the main loop answered another question")]
    Mixed,
}

impl IntoResponse for Unanswered {
    fn into_response(self) -> Response {
        text(StatusCode::SERVICE_UNAVAILABLE, format!("{self}\n"))
    }
}

/// Serves until the token is cancelled and the requests under way are answered.
pub async fn listen<L>(listener: L, router: Router, stop: CancellationToken) -> io::Result<()>
where
    L: Listener,
    L::Addr: std::fmt::Debug,
{
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

async fn ask(doors: &Loop, query: Query) -> Result<Answer, Unanswered> {
    Ok(timeout(PATIENCE, doors.ask(query))
        .await
        .map_err(|_| Unanswered::Late)??)
}

async fn status(doors: &Loop) -> Result<Status, Unanswered> {
    match ask(doors, Query::Status).await? {
        Answer::Status(status) => Ok(status),
        _ => Err(Unanswered::Mixed),
    }
}

async fn queues(doors: &Loop) -> Result<Vec<QueueReport>, Unanswered> {
    match ask(doors, Query::Queues).await? {
        Answer::Queues(queues) => Ok(queues),
        _ => Err(Unanswered::Mixed),
    }
}

async fn modules(doors: &Loop) -> Result<Vec<ModuleReport>, Unanswered> {
    match ask(doors, Query::Modules).await? {
        Answer::Modules(modules) => Ok(modules),
        _ => Err(Unanswered::Mixed),
    }
}

fn text(status: StatusCode, body: impl Into<String>) -> Response {
    (status, [(header::CONTENT_TYPE, TEXT)], body.into()).into_response()
}

async fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}
