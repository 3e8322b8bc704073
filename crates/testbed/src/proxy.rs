//! A proxy in front of the API server that injects faults: it delays, refuses and cuts off requests, or lets them hang.
//!
//! It listens with plain HTTP on loopback, so that no TLS layer interferes with a fault, and forwards every request on
//! a new connection. It must never change an answer that it passes on, except where a test asks for a false list of
//! served APIs.
#![expect(
    clippy::disallowed_methods,
    reason = "the proxy's own runtime owns every task and ends with it"
)]

mod answer;
mod asked;
mod body;
mod discovery;
mod fault;
mod omission;
mod trap;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fs_err as fs;
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::header::{AUTHORIZATION, CONNECTION, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
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

pub use fault::{Aimed, Fault, Of, On, What};
pub use omission::{Addresses, Listing, Omission};
pub use trap::{Side, Trap};

use answer::{Answer, gone, refusal};
use asked::Asked;
use discovery::Change;
use omission::Omissions;
use trap::Traps;

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

/// A running proxy; dropping it stops it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    faults: watch::Sender<Vec<Aimed>>,
    shared: Arc<Shared>,
    /// Taken out when the proxy is dropped, because dropping a runtime would wait for silent connections.
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    tls: Arc<ClientConfig>,
    bearer: String,
    faults: watch::Receiver<Vec<Aimed>>,
    omissions: Omissions,
    traps: Traps,
    requests: AtomicU64,
    hits: AtomicU64,
    vain: AtomicU64,
}

impl Proxy {
    /// Starts a proxy without faults. Requests without credentials, as kubectl sends them over plain HTTP, are made as
    /// `user`.
    pub fn start(plane: &ControlPlane, user: User) -> Result<Self, ProxyError> {
        Self::start_for(plane, &crate::plane::token(user))
    }

    /// Starts a proxy that makes requests without credentials with this token.
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
            vain: AtomicU64::new(0),
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(ProxyError::Listen)?;
        // The caller may be inside a runtime, and there another runtime must not block. So the socket is bound without
        // one.
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

    /// The proxy's URL, which the program under test gets as its API server.
    pub fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The text of a kubeconfig with the proxy as server.
    pub fn kubeconfig(&self, plane: &ControlPlane, user: User, namespace: &str) -> String {
        crate::plane::kubeconfig_at(plane, &self.server(), user, namespace)
    }

    /// Sets the faults that happen from now on. Earlier ones end.
    pub fn impose(&self, faults: Vec<Fault>) {
        self.aim(faults.into_iter().map(Aimed::from).collect());
    }

    /// Sets faults for certain clients. If several match a request, the first one happens.
    pub fn aim(&self, faults: Vec<Aimed>) {
        self.faults.send_replace(faults);
    }

    /// Ends all faults. A connection that was made silent stays so.
    pub fn heal(&self) {
        self.impose(Vec::new());
    }

    /// Sets or ends an omission: the API server then shows less of one API group than it has.
    pub fn omit(&self, omission: Option<Omission>) {
        self.shared.omissions.set(omission);
    }

    /// Sets a trap. It replaces an earlier one.
    pub fn trap(&self, trap: Trap) {
        self.shared.traps.set(trap);
    }

    /// Removes a trap that has not sprung. Returns `false` if there is none or its deed has begun.
    pub fn disarm(&self) -> bool {
        self.shared.traps.disarm()
    }

    /// Counts the writes of clients with this user agent from now on, beginning with 1. Removes a trap.
    pub fn count(&self, agent: &'static str) {
        self.shared.traps.count(agent);
    }

    /// The counted writes, each as method and path.
    pub fn writes(&self) -> Vec<String> {
        self.shared.traps.writes()
    }

    /// The write at which the trap sprang, after its deed is done.
    pub fn sprung(&self) -> Option<String> {
        self.shared.traps.sprung()
    }

    /// The number of all requests, and how often a fault hit a request or a part of its answer.
    pub fn seen(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.shared.requests), count(&self.shared.hits))
    }

    /// The number of requests for a lease that a fault hit, or that the API server answered late, with a refusal, or
    /// not at all.
    pub fn leases_in_vain(&self) -> u64 {
        self.shared.vain.load(Ordering::Relaxed)
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
            // An error of a connection is expected here: faults break connections.
            let _ = server::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// The error with which a connection is broken on purpose.
#[derive(Debug, Error)]
#[error("the connection is cut")]
struct Broken;

impl Shared {
    /// The fault that hits a request at this moment.
    fn fault(&self, asked: &Asked) -> Option<What> {
        let faults = self.faults.borrow();
        let hit = faults.iter().find(|aimed| aimed.hits(asked));
        hit.map(|aimed| aimed.fault.what.clone())
    }

    fn hit(&self, asked: &Asked) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        if asked.is_for_a_lease() {
            self.vain.fetch_add(1, Ordering::Relaxed);
        }
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

async fn answer(mut request: Request<Incoming>, shared: Arc<Shared>) -> Result<Answer, Broken> {
    let number = shared.requests.fetch_add(1, Ordering::Relaxed);
    let asked = Asked::of(&request, number);
    let change = loop {
        let fault = shared.fault(&asked);
        if fault.is_some() {
            shared.hit(&asked);
        }
        match fault {
            None | Some(What::Cut(_)) => break None,
            Some(What::Delay(time)) => {
                sleep(time).await;
                break None;
            }
            Some(What::Refuse) => return Err(Broken),
            Some(What::BlackHole) => std::future::pending().await,
            Some(What::Stall) => shared.changed().await,
            Some(What::Status(code, again)) => return Ok(refusal(code, again)),
            Some(What::Gone) => return Ok(gone(asked.is_watch())),
            Some(What::LoseAnswer) => {
                let _lost = forward(request, &shared).await;
                return Err(Broken);
            }
            Some(What::StaleGroup(group)) => break Some(Change::Stale(group.to_owned())),
            Some(What::LostGroup(group)) => break Some(Change::Lost(group.to_owned())),
        }
    };
    if let Some((trap, at)) = shared.traps.meet(&request) {
        if trap.side == Side::After {
            let _lost = forward(request, &shared).await;
        }
        return Err(shared.spring(trap, at));
    }
    if let Some(omission) = shared.omissions.meet(&request) {
        shared.hit(&asked);
        return omission::answer(request, &omission, &shared).await;
    }
    let Some(change) = change else {
        let mut plea = asked.is_for_a_lease().then(|| Plea::begin(&shared.vain));
        let answer = forward(request, &shared).await.map_err(|_| Broken)?;
        if let Some(plea) = &mut plea {
            plea.is_heard = answer.status().is_success();
        }
        drop(plea);
        return Ok(answer.map(|body| body::through(body, asked, shared)));
    };
    discovery::prepare(&mut request);
    let answer = forward(request, &shared).await.map_err(|_| Broken)?;
    discovery::changed(answer, &change).await.map_err(|_| Broken)
}

/// A request for a lease. If it is dropped without a timely answer, it is counted as one in vain. So a request that its
/// client has given up counts, too.
struct Plea<'a> {
    vain: &'a AtomicU64,
    begun: Instant,
    is_heard: bool,
}

/// The time after which an answer about a lease is late.
const LATE: Duration = Duration::from_secs(1);

impl<'a> Plea<'a> {
    fn begin(vain: &'a AtomicU64) -> Self {
        Self {
            vain,
            begun: Instant::now(),
            is_heard: false,
        }
    }
}

impl Drop for Plea<'_> {
    fn drop(&mut self) {
        if !self.is_heard || self.begun.elapsed() > LATE {
            self.vain.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends the request to the API server on a new connection.
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
