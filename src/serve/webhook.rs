//! The listeners that the API server asks: TLS, HTTP, limits and the graceful end.
//!
//! What a request means and what is answered is decided elsewhere: here a body becomes a question, and a reply becomes
//! an answer. Must never answer for a hook: without a reply in time the API server is told so, and acts by its policy.

mod arrival;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use addon_core::review::CONVERSION_TIMEOUT;
use addon_core::review::reply::Reply;
use addon_core::review::request::{AdmissionRequest, BadRequest, ConversionRequest, ReviewRequest};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::RustlsAcceptor;
use futures::FutureExt as _;
use hyper_util::rt::TokioTimer;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::arrival::{Arrival, Unread};
use super::text;
use crate::certificates::tls::{Phase, Tls};

/// Of a body so much is read before its request has a place: most are no larger, and who sends slowly takes none from
/// others.
const START: usize = 64 << 10;
/// Requests whose starts are read at once; the others wait.
const READ_AT_ONCE: usize = 128;
/// How long a connection may stay silent between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long requests under way may go on when we stop.
const GRACE: Duration = Duration::from_secs(10);

/// What one listener is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reviews {
    /// Whether something may be done.
    Admission,
    /// Objects in another version.
    Conversion,
}

impl Reviews {
    /// The largest body that is read. The API server takes objects of 3 MiB and sends the old one along; for a
    /// conversion it sends whole lists.
    fn body_limit(self) -> usize {
        match self {
            Self::Admission => 8 << 20,
            Self::Conversion => 64 << 20,
        }
    }

    /// Requests that are answered at once, and read in whole; the others wait.
    fn at_once(self) -> usize {
        match self {
            Self::Admission => 64,
            Self::Conversion => 4,
        }
    }

    fn read(self, body: &[u8]) -> Result<ReviewRequest, BadRequest> {
        match self {
            Self::Admission => AdmissionRequest::parse(body).map(ReviewRequest::Admission),
            Self::Conversion => ConversionRequest::parse(body).map(ReviewRequest::Conversion),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Admission => "AdmissionReview",
            Self::Conversion => "ConversionReview",
        }
    }
}

/// One listener.
#[derive(Debug, Clone)]
pub struct Listener {
    /// What it is asked for.
    pub reviews: Reviews,
    /// Where.
    pub address: SocketAddr,
    /// What it serves with; it is opened when there is something.
    pub tls: Tls,
}

/// One question.
#[derive(Debug)]
pub struct Asked {
    /// The path of the request.
    pub path: String,
    /// What it is about.
    pub request: ReviewRequest,
    /// Later than this nobody waits for an answer.
    pub deadline: Instant,
}

impl Asked {
    /// How long an answer may still take.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Serves until the token is cancelled and the requests under way are answered. An address that cannot be had is told to
/// whoever waits for the listener, and tried again when it is wanted again.
pub async fn serve<H, F>(listener: Listener, handler: H, stop: CancellationToken) -> io::Result<()>
where
    H: Fn(Asked) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let Listener { reviews, address, tls } = listener;
    let desk = Arc::new(Desk {
        reviews,
        handler,
        entrance: Semaphore::new(READ_AT_ONCE),
        places: Semaphore::new(reviews.at_once()),
    });
    let router = Router::new()
        .route("/healthz", get(async || StatusCode::OK))
        .fallback(answer::<H, F>)
        .with_state(desk);
    let socket = loop {
        tokio::select! {
            () = tls.wanted() => {}
            () = stop.cancelled() => return Ok(()),
        }
        match open(address) {
            Ok(socket) => break socket,
            Err(error) => tls.tell(Phase::Failed(format!("cannot listen on {address}: {error}"))),
        }
    };
    let handle = Handle::new();
    let acceptor = RustlsAcceptor::new(tls.rustls()).acceptor(NoDelayAcceptor::new());
    tls.tell(Phase::Listening(socket.local_addr()?));
    info!(reviews = reviews.label(), %address, "Webhooks listen");
    let mut server = axum_server::from_tcp(socket)?.acceptor(acceptor).handle(handle.clone());
    let builder = server.http_builder();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(IDLE_TIMEOUT);
    let serving = server.serve(router.into_make_service());
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => return ended,
        () = stop.cancelled() => handle.graceful_shutdown(Some(GRACE)),
    }
    serving.await
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

struct Desk<H> {
    reviews: Reviews,
    handler: H,
    /// Where the starts of bodies are read.
    entrance: Semaphore,
    places: Semaphore,
}

async fn answer<H, F>(State(desk): State<Arc<Desk<H>>>, request: Request) -> Response
where
    H: Fn(Asked) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    if !is_json(&parts.headers) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let deadline = Instant::now() + patience(&parts.uri);
    let review = desk.review(parts.uri.path(), body, deadline);
    match AssertUnwindSafe(timeout_at(deadline, review)).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            warn!(path = parts.uri.path(), "A review is not answered in time");
            unanswered("no hook has answered in time")
        }
        Err(_) => {
            error!(path = parts.uri.path(), "A review has failed through a mistake of ours");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl<H, F> Desk<H>
where
    H: Fn(Asked) -> F,
    F: Future<Output = Reply>,
{
    async fn review(&self, path: &str, body: Body, deadline: Instant) -> Response {
        let mut arrival = Arrival::new(body, self.reviews.body_limit());
        let Ok(entered) = self.entrance.acquire().await else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        if let Err(unread) = arrival.start(START).await {
            return self.unreadable(unread);
        }
        let Ok(_place) = self.places.acquire().await else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        drop(entered);
        let body = match arrival.finish().await {
            Ok(body) => body,
            Err(unread) => return self.unreadable(unread),
        };
        let request = match self.reviews.read(&body) {
            Ok(request) => request,
            Err(error) => return text(StatusCode::BAD_REQUEST, error.to_string()),
        };
        drop(body);
        info!(path, "Got {} request", self.reviews.label());
        let asked = Asked {
            path: path.to_owned(),
            request,
            deadline,
        };
        match (self.handler)(asked).await {
            Reply::Review(review) => {
                let json = [(header::CONTENT_TYPE, "application/json")];
                (json, review.as_str().to_owned()).into_response()
            }
            Reply::NoAnswer(why) => unanswered(why.to_string()),
        }
    }
}

impl<H> Desk<H> {
    fn unreadable(&self, why: Unread) -> Response {
        match why {
            Unread::Late => StatusCode::REQUEST_TIMEOUT.into_response(),
            Unread::Broken => StatusCode::BAD_REQUEST.into_response(),
            Unread::TooLarge => {
                let limit = self.reviews.body_limit();
                text(StatusCode::PAYLOAD_TOO_LARGE, format!("more than {limit} bytes"))
            }
        }
    }
}

/// The one status with which the API server tells people our text; for it every error is the same.
fn unanswered(why: impl Into<String>) -> Response {
    text(StatusCode::INTERNAL_SERVER_ERROR, why)
}

/// As the original judges it: nothing at all has no type.
fn is_json(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if value(header::CONTENT_LENGTH) == Some("0") {
        return true;
    }
    let kind = value(header::CONTENT_TYPE).and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// A little less than the API server says that it waits, so that it hears of a hook that is late from us.
fn patience(uri: &Uri) -> Duration {
    let parameters = uri.query().unwrap_or_default().split('&');
    let said = parameters.filter_map(|parameter| parameter.strip_prefix("timeout=")?.strip_suffix('s')?.parse().ok());
    let waits = said.map(Duration::from_secs).find(|waits| !waits.is_zero());
    let waits = waits.unwrap_or(CONVERSION_TIMEOUT).min(CONVERSION_TIMEOUT);
    waits.saturating_sub((waits / 10).min(Duration::from_millis(500)))
}

#[cfg(test)]
mod tests;
