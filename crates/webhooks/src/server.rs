//! The webhook listeners for the API server: TLS, HTTP, limits and the graceful end.
//!
//! Other parts interpret a request and decide the answer; this one turns a body into a question, and a reply into a
//! response. Must never answer for a hook: without a reply in time the API server gets an error, and applies its
//! failure policy.

mod arrival;
mod head;
mod refusals;
mod weight;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use addon_core::review::reply::Reply;
use addon_core::review::request::{AdmissionRequest, BadRequest, ConversionRequest, ReviewRequest};
use addon_core::review::routes::Routes;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::RustlsAcceptor;
use certificates::tls::{Phase, Tls};
use futures::FutureExt as _;
use hyper_util::rt::TokioTimer;
use listeners::gate::Gate;
use listeners::shares::{Exhausted, Pool, Share};
use listeners::text;
use telling::meters::Meters;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::arrival::{Arrival, Unread, discard};
use self::head::{announced, is_json, patience};
use self::refusals::{Reason, Refusals};
use self::weight::weight;

/// The number of requests whose bodies are being received. An API server sends several at once, and each is short.
const UNFINISHED: usize = 256;
const UNFINISHED_EACH: usize = 64;
/// The time that a connection may be idle between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a client may take to answer a keep-alive ping.
const ALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for running requests when the listener stops.
const GRACE: Duration = Duration::from_secs(10);

/// The kind of reviews of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reviews {
    /// Admission reviews.
    Admission,
    /// Conversion reviews.
    Conversion,
}

impl Reviews {
    /// The largest accepted body. The API server accepts objects of 3 MiB and sends the old one along; for a conversion
    /// it sends whole lists.
    fn body_limit(self) -> usize {
        match self {
            Self::Admission => 8 << 20,
            Self::Conversion => 64 << 20,
        }
    }

    /// The number of requests that are handled at the same time. The others wait with their whole bodies.
    fn at_once(self) -> usize {
        match self {
            Self::Admission => 64,
            Self::Conversion => 4,
        }
    }

    /// The memory for all bodies of this kind of review. Each body counts from its announcement to its answer. One
    /// address may use half of the memory for bodies that it has not sent completely.
    fn for_bodies(self) -> usize {
        match self {
            Self::Admission => 64 << 20,
            Self::Conversion => 128 << 20,
        }
    }

    /// The memory for parsed bodies.
    fn for_documents(self) -> usize {
        match self {
            Self::Admission => 128 << 20,
            Self::Conversion => 384 << 20,
        }
    }

    fn are_answered_at(self, path: &str, routes: &Routes) -> bool {
        match self {
            Self::Admission => routes.admits_at(path),
            Self::Conversion => routes.converts_at(path),
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

/// A webhook listener.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The kind of reviews.
    pub reviews: Reviews,
    /// The address of the listener.
    pub address: SocketAddr,
    /// The TLS state. The listener is opened when there is a certificate.
    pub tls: Tls,
    /// The paths that are answered.
    pub routes: watch::Receiver<Arc<Routes>>,
    /// The metrics, which count refused requests.
    pub meters: Arc<Meters>,
}

/// A review.
#[derive(Debug)]
pub struct Asked {
    /// The path of the request.
    pub path: String,
    pub request: ReviewRequest,
    /// The time after which the API server no longer waits for the answer.
    pub deadline: Instant,
}

impl Asked {
    /// The time that is left for the answer.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Serves until the token is cancelled and the running requests are answered. If the address is not available, the
/// error is published in the TLS state, and the listener tries again when it is next wanted.
pub async fn serve<H, F>(listener: Listener, handler: H, stop: CancellationToken) -> io::Result<()>
where
    H: Fn(Asked) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let Listener {
        reviews,
        address,
        tls,
        routes,
        meters,
    } = listener;
    let desk = Arc::new(Desk {
        reviews,
        handler,
        routes,
        refusals: Refusals::new(reviews, meters),
        unfinished: Pool::new(UNFINISHED, UNFINISHED_EACH),
        bodies: Pool::new(reviews.for_bodies(), reviews.for_bodies() / 2),
        documents: Arc::new(Semaphore::new(reviews.for_documents())),
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
    let acceptor = Gate::before(RustlsAcceptor::new(tls.rustls()).acceptor(NoDelayAcceptor::new()));
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
        .keep_alive_interval(IDLE_TIMEOUT)
        .keep_alive_timeout(ALIVE_TIMEOUT);
    let serving = server.serve(router.into_make_service_with_connect_info::<SocketAddr>());
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
    routes: watch::Receiver<Arc<Routes>>,
    refusals: Refusals,
    unfinished: Arc<Pool>,
    bodies: Arc<Pool>,
    /// The memory for parsed bodies, in bytes.
    documents: Arc<Semaphore>,
    places: Semaphore,
}

async fn answer<H, F>(
    State(desk): State<Arc<Desk<H>>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response
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
    let path = parts.uri.path();
    // Checked before the body is read, so that no client sends a body to an unknown path.
    if !desk.reviews.are_answered_at(path, &desk.routes.borrow()) {
        return desk.refuse(Reason::UnknownPath);
    }
    let deadline = Instant::now() + patience(&parts.uri);
    let (unfinished, share) = match desk.admit(peer.ip(), announced(&parts.headers)) {
        Ok(shares) => shares,
        Err(reason) => {
            // A client that waits for `100 Continue` has not sent its body.
            if reason == Reason::NoRoom && !parts.headers.contains_key(header::EXPECT) {
                discard(body).await;
            }
            return desk.refuse(reason);
        }
    };
    let arrival = Arrival::new(body, share, desk.reviews.body_limit());
    let review = desk.review(path, (unfinished, arrival), deadline);
    match AssertUnwindSafe(timeout_at(deadline, review)).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            warn!(path, "A review is not answered in time");
            unanswered("no hook has answered in time")
        }
        Err(_) => {
            error!(path, "A review has failed because of a defect of the operator");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl<H, F> Desk<H>
where
    H: Fn(Asked) -> F,
    F: Future<Output = Reply>,
{
    async fn review(&self, path: &str, (unfinished, arrival): (Share, Arrival), deadline: Instant) -> Response {
        let (body, mut held) = match arrival.whole().await {
            Ok(whole) => whole,
            Err(unread) => return self.refuse(unread.into()),
        };
        drop(unfinished);
        held.settle();
        // Counting in a long body would block a thread of the event loop, and with it the lease.
        let (body, held, weight) = blocking::run(move || {
            let weight = weight(&body);
            (body, held, weight)
        })
        .await;
        let Some(weight) = u32::try_from(weight)
            .ok()
            .filter(|_| weight <= self.reviews.for_documents())
        else {
            return self.refuse(Reason::TooManyParts);
        };
        // The semaphores are never closed.
        let Ok(document) = Arc::clone(&self.documents).acquire_many_owned(weight).await else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        let Ok(_place) = self.places.acquire().await else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        let reviews = self.reviews;
        let (read, _document) = blocking::run(move || {
            let read = reviews.read(&body);
            // The memory counts as used until it is freed, even if the client has gone.
            drop((body, held));
            (read, document)
        })
        .await;
        let request = match read {
            Ok(request) => request,
            Err(error) => return text(StatusCode::BAD_REQUEST, error.to_string()),
        };
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
    /// Reserves memory for a body before any of it is read.
    fn admit(&self, peer: IpAddr, announced: usize) -> Result<(Share, Share), Reason> {
        if announced > self.reviews.body_limit() {
            return Err(Reason::TooLarge);
        }
        let unfinished = self.unfinished.take(peer, 1)?;
        Ok((unfinished, self.bodies.take(peer, announced)?))
    }

    fn refuse(&self, reason: Reason) -> Response {
        self.refusals.count(reason);
        match reason {
            Reason::UnknownPath => StatusCode::NOT_FOUND.into_response(),
            Reason::Slow => StatusCode::REQUEST_TIMEOUT.into_response(),
            Reason::Broken => StatusCode::BAD_REQUEST.into_response(),
            // The API server repeats the request after the time in `Retry-After`: one second.
            Reason::NoRoom => {
                let later = [(header::RETRY_AFTER, "1")];
                (later, text(StatusCode::TOO_MANY_REQUESTS, "others are asking too much")).into_response()
            }
            Reason::TooLarge => {
                let limit = self.reviews.body_limit();
                text(StatusCode::PAYLOAD_TOO_LARGE, format!("more than {limit} bytes"))
            }
            Reason::TooManyParts => {
                let limit = self.reviews.for_documents();
                let report = format!("so many fields that they would take more than {limit} bytes of memory");
                text(StatusCode::PAYLOAD_TOO_LARGE, report)
            }
        }
    }
}

impl From<Exhausted> for Reason {
    fn from(Exhausted: Exhausted) -> Self {
        Self::NoRoom
    }
}

impl From<Unread> for Reason {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Late => Self::Slow,
            Unread::Broken => Self::Broken,
            Unread::TooLarge => Self::TooLarge,
            Unread::NoRoom => Self::NoRoom,
        }
    }
}

/// An error status. The API server shows people the text of this status; for its own behaviour all errors are equal.
fn unanswered(why: impl Into<String>) -> Response {
    text(StatusCode::INTERNAL_SERVER_ERROR, why)
}

#[cfg(test)]
mod tests;
