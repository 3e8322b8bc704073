//! A proxy in front of the API server that does harm on demand: it delays, refuses, cuts off and goes silent.
//!
//! It speaks plain HTTP on loopback, so that what is done to a connection is done by nobody else, and forwards every
//! request on a connection of its own. Must never change what it lets through.
#![expect(
    clippy::disallowed_methods,
    reason = "the proxy's own runtime owns every task and ends with it"
)]

mod body;
mod omission;
mod trap;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fs_err as fs;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1 as client;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, TRANSFER_ENCODING};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use crate::plane::{ControlPlane, User};

pub use omission::{Addresses, Listing, Omission};
pub use trap::{Side, Trap};

use omission::Omissions;
use trap::Traps;

/// Which requests a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Everything,
    /// Requests that go on telling of changes, those under way included.
    Watches,
    /// All but those.
    Others,
}

/// What happens to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The answer, and every part of it, comes so much later.
    Delay(Duration),
    /// The connection ends without an answer, or in the middle of it.
    Refuse,
    /// The connection stays open and nothing comes over it any more, also after the fault is over.
    BlackHole,
    /// Nothing comes until the fault is over, and then all of it.
    Stall,
    /// The connection ends after so many more bytes.
    Cut(usize),
    /// New requests get this status, with seconds after which to come again.
    Status(u16, Option<u32>),
    /// New requests are told that the version they go on from is too old.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub on: On,
    pub what: What,
}

#[derive(Debug, Error)]
pub enum ProxyError {
    #[error("cannot listen on loopback")]
    Listen(#[source] io::Error),
    #[error("cannot read the certificate of the API server")]
    Certificate(#[from] rustls::pki_types::pem::Error),
    #[error("cannot read the certificate of the API server")]
    Read(#[from] io::Error),
    #[error("cannot trust the certificate of the API server")]
    Trust(#[from] rustls::Error),
    #[error("the address of the API server is {0}, which is none of a control plane here")]
    Address(String),
}

/// A proxy that ends with this value.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    faults: watch::Sender<Vec<Fault>>,
    shared: Arc<Shared>,
    /// Taken at the end, because the end of a runtime must not wait for connections that say nothing.
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    tls: Arc<ClientConfig>,
    bearer: String,
    faults: watch::Receiver<Vec<Fault>>,
    omissions: Omissions,
    traps: Traps,
    requests: AtomicU64,
    hits: AtomicU64,
}

impl Proxy {
    /// Starts one that does no harm yet. Who does not say who they are, as kubectl over plain HTTP, are taken for `user`.
    pub fn start(plane: &ControlPlane, user: User) -> Result<Self, ProxyError> {
        Self::start_for(plane, &crate::plane::token(user))
    }

    /// The same for whoever has that token.
    pub fn start_for(plane: &ControlPlane, token: &str) -> Result<Self, ProxyError> {
        let upstream = plane
            .server()
            .strip_prefix("https://")
            .and_then(|rest| rest.parse().ok());
        let upstream = upstream.ok_or_else(|| ProxyError::Address(plane.server().to_owned()))?;
        let (faults, told) = watch::channel(Vec::new());
        let shared = Arc::new(Shared {
            upstream,
            tls: Arc::new(trusting(plane)?),
            bearer: format!("Bearer {token}"),
            faults: told,
            omissions: Omissions::default(),
            traps: Traps::default(),
            requests: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(ProxyError::Listen)?;
        // Whoever starts it may be in a runtime of their own, which must not be blocked by another.
        let socket = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).map_err(ProxyError::Listen)?;
        socket.set_nonblocking(true).map_err(ProxyError::Listen)?;
        let address = socket.local_addr().map_err(ProxyError::Listen)?;
        let listener = {
            let _runtime = runtime.enter();
            TcpListener::from_std(socket).map_err(ProxyError::Listen)?
        };
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            faults,
            shared,
            runtime: Some(runtime),
        })
    }

    /// The URL to give to the program under test.
    pub fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The text of a kubeconfig that leads through the proxy.
    pub fn kubeconfig(&self, plane: &ControlPlane, user: User, namespace: &str) -> String {
        crate::plane::kubeconfig_at(plane, &self.server(), user, namespace)
    }

    /// From now on these happen, and no others.
    pub fn impose(&self, faults: Vec<Fault>) {
        self.faults.send_replace(faults);
    }

    /// From now on nothing happens; what is dead stays dead.
    pub fn heal(&self) {
        self.impose(Vec::new());
    }

    /// From now on the API server says less of one group, or no less of any.
    pub fn omit(&self, omission: Option<Omission>) {
        self.shared.omissions.set(omission);
    }

    /// Sets a trap, in the place of one that was set before.
    pub fn trap(&self, trap: Trap) {
        self.shared.traps.set(trap);
    }

    /// Takes away a trap that has not been stepped on; `false` if none is set, or its deed is being done.
    pub fn disarm(&self) -> bool {
        self.shared.traps.disarm()
    }

    /// From now on the writes of clients with this user agent are counted from one, and no trap is set.
    pub fn count(&self, agent: &'static str) {
        self.shared.traps.count(agent);
    }

    /// The writes that were counted, each as its method and path.
    pub fn writes(&self) -> Vec<String> {
        self.shared.traps.writes()
    }

    /// The write at which the trap sprang, once its deed is done.
    pub fn sprung(&self) -> Option<String> {
        self.shared.traps.sprung()
    }

    /// How many requests came, and how often a fault hit one or a part of its answer.
    pub fn seen(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.shared.requests), count(&self.shared.hits))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn trusting(plane: &ControlPlane) -> Result<ClientConfig, ProxyError> {
    let pem = fs::read(plane.authority())?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&shared)));
            // A connection that breaks is what this is for.
            let _ = server::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;

/// The connection is to end here.
#[derive(Debug, Error)]
#[error("the connection is cut")]
struct Broken;

impl Shared {
    /// The fault that hits a request now.
    fn fault(&self, is_watch: bool) -> Option<What> {
        let faults = self.faults.borrow();
        let hit = faults.iter().find(|fault| match fault.on {
            On::Everything => true,
            On::Watches => is_watch,
            On::Others => !is_watch,
        });
        hit.map(|fault| fault.what.clone())
    }

    fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    fn spring(&self, trap: Trap, at: String) -> Broken {
        (trap.deed)();
        self.traps.has_sprung(at);
        Broken
    }

    /// Returns when the faults change.
    async fn changed(&self) {
        let mut told = self.faults.clone();
        told.mark_unchanged();
        if told.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Answer, Broken> {
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.split('&').any(|part| part == "watch=true" || part == "watch=1");
    loop {
        let fault = shared.fault(is_watch);
        if fault.is_some() {
            shared.hit();
        }
        match fault {
            None | Some(What::Cut(_)) => break,
            Some(What::Delay(time)) => {
                sleep(time).await;
                break;
            }
            Some(What::Refuse) => return Err(Broken),
            Some(What::BlackHole) => std::future::pending().await,
            Some(What::Stall) => shared.changed().await,
            Some(What::Status(code, again)) => return Ok(refusal(code, again)),
            Some(What::Gone) => return Ok(gone(is_watch)),
        }
    }
    if let Some((trap, at)) = shared.traps.meet(&request) {
        if trap.side == Side::After {
            let _lost = forward(request, &shared).await;
        }
        return Err(shared.spring(trap, at));
    }
    if let Some(omission) = shared.omissions.meet(&request) {
        shared.hit();
        return omission::answer(request, &omission, &shared).await;
    }
    let answer = forward(request, &shared).await.map_err(|_| Broken)?;
    Ok(answer.map(|body| body::through(body, is_watch, shared)))
}

/// Asks the API server, on a connection of its own.
async fn forward(mut request: Request<Incoming>, shared: &Shared) -> anyhow::Result<Response<Incoming>> {
    let stream = TcpStream::connect(shared.upstream).await?;
    let name = ServerName::from(shared.upstream.ip());
    let stream = TlsConnector::from(Arc::clone(&shared.tls))
        .connect(name, stream)
        .await?;
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let headers = request.headers_mut();
    headers.remove(CONNECTION);
    headers.insert(HOST, HeaderValue::from_str(&shared.upstream.to_string())?);
    let bearer = HeaderValue::from_str(&shared.bearer)?;
    headers.entry(AUTHORIZATION).or_insert(bearer);
    let mut answer = sender.send_request(request).await?;
    answer.headers_mut().remove(TRANSFER_ENCODING);
    answer.headers_mut().remove(CONNECTION);
    Ok(answer)
}

fn refusal(code: u16, again: Option<u32>) -> Answer {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = match code {
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    let mut answer = told(status_object(code, reason).to_string());
    *answer.status_mut() = status;
    if let Some(seconds) = again {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// A watch begins well and then says so; anything else is refused.
fn gone(is_watch: bool) -> Answer {
    if !is_watch {
        return refusal(410, None);
    }
    let event = serde_json::json!({ "type": "ERROR", "object": status_object(410, "Expired") });
    told(format!("{event}\n"))
}

fn status_object(code: u16, reason: &str) -> serde_json::Value {
    serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "said by the proxy of a test", "reason": reason, "code": code,
    })
}

fn told(text: String) -> Answer {
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
