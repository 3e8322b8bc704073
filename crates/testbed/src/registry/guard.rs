//! A guard in front of a registry, with TLS, tokens that expire, and all kinds of faults ("troubles").
//!
//! The registry behind it is real and is asked each time. The guard must never change an answer, except where a test
//! asks for a trouble.
#![expect(
    clippy::disallowed_methods,
    reason = "the guard's own runtime owns every task and ends with it"
)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1 as client;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

use crate::certificate::{Authority, named};

mod lock;
mod trouble;

pub use lock::Lock;
pub use trouble::{Aim, Trouble};

use lock::Keeper;

/// A name in the guard's certificate besides `localhost` and `127.0.0.1`. Only a [`Tunnel`](super::tunnel::Tunnel)
/// leads from this name to the guard.
pub const NAME: &str = "registry.test";

#[derive(Debug, Error)]
pub enum GuardError {
    #[error("cannot listen on loopback")]
    Listen(#[from] io::Error),
    #[error("the address of the registry is {0}, which is none of a registry here")]
    Address(String),
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot show a certificate")]
    Tls(#[from] rustls::Error),
}

/// A request that the guard received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The `Host` header.
    pub host: String,
    pub method: String,
    /// The path with the query.
    pub path: String,
    pub authorization: Option<String>,
}

/// A running guard; dropping it stops it.
#[derive(Debug)]
pub struct Guard {
    address: SocketAddr,
    authority: String,
    shared: Arc<Shared>,
    /// Dropping the guard takes the runtime out, because dropping a runtime would wait for silent connections.
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    has_tls: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    keeper: Keeper,
    aims: Vec<Aim>,
    seen: Vec<Seen>,
}

/// The scheme by which clients reach a proxy.
const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-proto");

type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;

/// The error with which a connection is broken on purpose.
#[derive(Debug, Error)]
#[error("the connection is cut")]
struct Broken;

impl Guard {
    /// Starts a guard with TLS before the registry at an address. It asks for no login and makes no trouble yet.
    pub fn start(registry: &str) -> Result<Self, GuardError> {
        Self::start_on(bound(Ipv4Addr::LOCALHOST)?, registry)
    }

    /// Starts a guard with TLS on an existing listener, which may be in the network of pods.
    pub(crate) fn start_on(socket: std::net::TcpListener, registry: &str) -> Result<Self, GuardError> {
        let (authority, config) = made(socket.local_addr()?.ip())?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::begin(socket, registry, authority, Some(acceptor))
    }

    /// Starts a guard without TLS.
    pub fn start_plain(registry: &str) -> Result<Self, GuardError> {
        Self::start_plain_on(bound(Ipv4Addr::LOCALHOST)?, registry)
    }

    /// Starts a guard without TLS on an existing listener.
    pub(crate) fn start_plain_on(socket: std::net::TcpListener, registry: &str) -> Result<Self, GuardError> {
        Self::begin(socket, registry, String::new(), None)
    }

    fn begin(
        socket: std::net::TcpListener,
        registry: &str,
        authority: String,
        acceptor: Option<TlsAcceptor>,
    ) -> Result<Self, GuardError> {
        let upstream = registry.parse().map_err(|_| GuardError::Address(registry.to_owned()))?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (address, listener) = listen(&runtime, socket)?;
        let shared = Arc::new(Shared {
            upstream,
            has_tls: acceptor.is_some(),
            state: Mutex::default(),
        });
        runtime.spawn(accept(listener, acceptor, Arc::clone(&shared)));
        Ok(Self {
            address,
            authority,
            shared,
            runtime: Some(runtime),
        })
    }

    /// The address on which the guard listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The authority of the guard's certificate, as PEM; empty without TLS.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Sets the lock; only clients that can open it are let in. Tokens issued before become invalid.
    pub fn lock(&self, lock: Lock) {
        self.shared.state().keeper = Keeper::new(lock);
    }

    /// Makes all tokens issued so far invalid.
    pub fn expire(&self) {
        self.shared.state().keeper.expire();
    }

    /// Sets the troubles. A request meets the first one that is aimed at it.
    pub fn impose(&self, aims: Vec<Aim>) {
        self.shared.state().aims = aims;
    }

    /// The requests since the last call.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.shared.state().seen)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener on a free port of this address.
pub(crate) fn bound(address: Ipv4Addr) -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind((address, 0))
}

/// Converts the listener for a runtime. The caller need not be inside of the runtime.
pub(super) fn listen(runtime: &Runtime, socket: std::net::TcpListener) -> io::Result<(SocketAddr, TcpListener)> {
    socket.set_nonblocking(true)?;
    let address = socket.local_addr()?;
    let _runtime = runtime.enter();
    Ok((address, TcpListener::from_std(socket)?))
}

/// An authority as PEM, and the TLS configuration with a certificate that it signed.
fn made(listens: IpAddr) -> Result<(String, ServerConfig), GuardError> {
    let (authority, key) = (Authority::new("testbed registries")?, KeyPair::generate()?);
    let mut params = CertificateParams::new(["localhost", NAME, &listens.to_string()].map(str::to_owned))?;
    params.distinguished_name = named("registry");
    let cert = authority.sign(&params, &key)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)?;
    Ok((authority.pem().to_owned(), config))
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            match acceptor {
                None => serve(stream, shared).await,
                // A client that does not trust the certificate closes the connection.
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, shared).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, shared: Arc<Shared>) {
    let service = service_fn(|request| answer(request, Arc::clone(&shared)));
    // An error of a connection is expected here: troubles break connections.
    let _ = server::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Answer, Broken> {
    let (head, body) = request.into_parts();
    let text = |name| {
        head.headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let seen = Seen {
        host: text(HOST).unwrap_or_default().to_owned(),
        method: head.method.to_string(),
        path: head.uri.to_string(),
        authorization: text(AUTHORIZATION).map(str::to_owned),
    };
    let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
    let (trouble, refusal) = {
        let mut state = shared.state();
        state.seen.push(seen.clone());
        let trouble = state
            .aims
            .iter()
            .find(|aim| aim.hits(&seen))
            .map(|aim| aim.trouble.clone());
        let State { keeper, .. } = &mut *state;
        (
            trouble,
            keeper.meet(&seen, &String::from_utf8_lossy(&body), shared.has_tls),
        )
    };
    if let Some(trouble) = &trouble
        && let Some(answer) = trouble.instead(&seen.path).await
    {
        return answer;
    }
    if let Some(refusal) = refusal {
        return Ok(refusal.map(whole));
    }
    let mut onward = Request::from_parts(head, Full::from(body));
    onward.headers_mut().remove(AUTHORIZATION);
    if shared.has_tls {
        // The registry names itself in the addresses for uploads.
        onward
            .headers_mut()
            .insert(FORWARDED, HeaderValue::from_static("https"));
    }
    if let Some(trouble) = &trouble {
        trouble.before(&mut onward);
    }
    let answer = forward(onward, shared.upstream).await.map_err(|_| Broken)?;
    let (mut head, body) = answer.into_parts();
    head.headers.remove(TRANSFER_ENCODING);
    Ok(match trouble {
        None => Response::from_parts(head, whole(body)),
        Some(trouble) => trouble.on(head, body),
    })
}

fn whole(bytes: Bytes) -> UnsyncBoxBody<Bytes, Broken> {
    Full::from(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// Sends the request to the registry on a new connection. The answer is small enough to be kept in memory.
async fn forward(request: Request<Full<Bytes>>, upstream: SocketAddr) -> anyhow::Result<Response<Bytes>> {
    let stream = TcpStream::connect(upstream).await?;
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await?.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}
