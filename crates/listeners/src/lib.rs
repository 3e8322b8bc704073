//! Listeners: connections are accepted within bounds, requests are answered, and all ends within the time of a stop.
//!
//! Every answer about the operator's state comes from one question to the loop, so it never mixes two moments. If the
//! loop does not answer, the client is told exactly that. Must never decide, and never keep state.
//!
//! ```text
//!   client --> gate --> a share of the places for connections --> routes of a capability
//!                                                                    | ask
//!                                                                    v
//!                                                               mailbox --> the loop
//! ```
//!
//! Begin with `listen` and `ask`; `reply` has the forms of an answer.

pub mod gate;
pub mod reply;
pub mod shares;

use std::future::ready;
use std::io;
use std::time::Duration;

use addon_core::operator::event::Event;
use addon_core::operator::explain::Query;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum_server::accept::DefaultAcceptor;
use axum_server::{AddrListener, Address, Handle, Server};
use hyper_util::rt::TokioTimer;
use mailbox::questions::BoxedQuestion;
use mailbox::{Closed, Doors};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::gate::{Gate, Peer};

/// The channels into the loop, with the types of their messages.
pub type Loop = Doors<Event, BoxedQuestion>;

/// The content type of plain text, as Go's servers write it.
const TEXT: &str = "text/plain; charset=utf-8";

/// The timeout of a question. A step of the loop takes milliseconds, so something is wrong by then. It is shorter than
/// the default of a Kubernetes probe (one second), so that the probe gets this answer and no time-out.
const PATIENCE: Duration = Duration::from_millis(900);

/// Why the loop did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unanswered {
    #[error("the main loop did not answer within {} ms", PATIENCE.as_millis())]
    Late,
    #[error(transparent)]
    Closed(#[from] Closed),
}

impl IntoResponse for Unanswered {
    fn into_response(self) -> Response {
        text(StatusCode::SERVICE_UNAVAILABLE, format!("{self}\n"))
    }
}

/// The time limits of a listener.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The longest time in which the head of a request arrives, and the longest silence between two requests.
    head: Duration,
    /// The limit for running requests when the listener stops.
    grace: Duration,
}

/// Scrapers come about twice a minute and may reuse a connection; after a longer silence they open a new one. The time
/// for running requests is far shorter than the half minute of a whole stop.
const LIMITS: Limits = Limits {
    head: Duration::from_secs(45),
    grace: Duration::from_secs(3),
};

/// Serves until the token is cancelled and the running requests are answered, or their time is over.
pub async fn listen<L, A>(listener: L, router: Router, stop: CancellationToken) -> io::Result<()>
where
    L: AddrListener<A::Stream, A>,
    A: Address<Listener = L> + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Peer + Send + Unpin + 'static,
{
    listen_within(LIMITS, Gate::before, listener, router, stop).await
}

/// The same for clients that may all come from one address, because a proxy or a forwarded port is between.
pub async fn listen_to_one_address<L, A>(listener: L, router: Router, stop: CancellationToken) -> io::Result<()>
where
    L: AddrListener<A::Stream, A>,
    A: Address<Listener = L> + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Peer + Send + Unpin + 'static,
{
    listen_within(LIMITS, Gate::before_one_address, listener, router, stop).await
}

async fn listen_within<L, A>(
    limits: Limits,
    gate: impl FnOnce(DefaultAcceptor) -> Gate<DefaultAcceptor>,
    listener: L,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()>
where
    L: AddrListener<A::Stream, A>,
    A: Address<Listener = L> + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Peer + Send + Unpin + 'static,
{
    let handle = Handle::<A>::new();
    let server = Server::<A>::from_listener(listener).handle(handle.clone());
    let mut server = server.acceptor(gate(DefaultAcceptor::new())).http1_only();
    let builder = server.http_builder();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head);
    let serving = server.serve(router.into_make_service());
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => return ended,
        () = stop.cancelled() => handle.graceful_shutdown(Some(limits.grace)),
    }
    serving.await
}

/// The answer of the loop, unless it takes too long.
pub async fn ask<Q: Query>(doors: &Loop, query: Q) -> Result<Q::Answer, Unanswered> {
    Ok(timeout(PATIENCE, doors.ask(query))
        .await
        .map_err(|_| Unanswered::Late)??)
}

/// An answer of plain text.
pub fn text(status: StatusCode, body: impl Into<String>) -> Response {
    (status, [(header::CONTENT_TYPE, TEXT)], body.into()).into_response()
}

/// The answer for a path that no route serves.
pub fn not_found() -> impl Future<Output = Response> {
    ready(text(StatusCode::NOT_FOUND, "404 page not found\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::{Body, to_bytes};
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;

    use super::*;

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn who_never_ends_a_request_does_not_hold_up_the_end() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut asking = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let limits = Limits {
            head: LONG,
            grace: SHORT,
        };
        let (begun, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let told = Arc::clone(&begun);
        let read = async move |body: Body| {
            told.notify_one();
            to_bytes(body, 100)
                .await
                .map_or(StatusCode::BAD_REQUEST, |_| StatusCode::OK)
        };
        let router = Router::new().route("/", post(read));
        let half = async {
            let request = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf";
            asking.write_all(request).await.unwrap();
            begun.notified().await;
            stop.cancel();
        };
        let serving = listen_within(limits, Gate::before, listener, router, stop.clone());
        let (served, ()) = timeout(LONG, async { tokio::join!(serving, half) }).await.unwrap();
        served.unwrap();
    }

    #[tokio::test]
    async fn who_never_ends_the_head_of_a_request_is_not_waited_for() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut asking = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let limits = Limits {
            head: SHORT,
            grace: LONG,
        };
        let (router, stop) = (Router::new().route("/", get(async || "ok")), CancellationToken::new());
        let half = async {
            asking.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
            let mut answer = Vec::new();
            asking.read_to_end(&mut answer).await.unwrap();
            stop.cancel();
        };
        let serving = listen_within(limits, Gate::before, listener, router, stop.clone());
        let (served, ()) = timeout(LONG, async { tokio::join!(serving, half) }).await.unwrap();
        served.unwrap();
    }
}
