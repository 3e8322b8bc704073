//! The agent's HTTP server for the API server: it serves the logs of containers and runs commands in them, for `kubectl
//! logs` and `kubectl exec`.
//!
//! It listens where only the API server and the pods of this control plane are, and answers every client, as a kubelet
//! without authentication does. The API server does not check its certificate.

mod exec;

mod log;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use futures::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Agent, network};
use crate::report;

pub(super) const PORT: u16 = 10250;

#[derive(Debug, Error)]
pub(super) enum ServeError {
    #[error("there is nothing at {0}")]
    Path(String),
    #[error("cannot find the pod")]
    Pod(#[from] kube::Error),
    #[error("container {0} has not run, or has not run before")]
    Run(String),
    #[error("container {0} does not run")]
    Still(String),
    #[error("cannot read the log")]
    Read(#[from] io::Error),
    #[error("commands are asked for through a WebSocket here")]
    Upgrade,
}

/// The work in a connection after the HTTP answer.
type Work = BoxFuture<'static, ()>;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Opens the listener; [`serve`] takes it.
pub(super) async fn listen() -> io::Result<(TcpListener, TlsAcceptor)> {
    let pair = rcgen::generate_simple_self_signed([network::NODE.to_string()]).map_err(io::Error::other)?;
    let key = PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key.into())
        .map_err(io::Error::other)?;
    let listener = TcpListener::bind(SocketAddr::from((network::NODE, PORT))).await?;
    Ok((listener, TlsAcceptor::from(Arc::new(config))))
}

/// Answers requests for ever.
pub(super) async fn serve(agent: Arc<Agent>, (listener, tls): (TcpListener, TlsAcceptor)) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let (agent, tls) = (Arc::clone(&agent), tls.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let (order, mut orders) = mpsc::channel(1);
            let service = service_fn(move |request| respond(Arc::clone(&agent), order.clone(), request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let work = async {
                while let Some(work) = orders.recv().await {
                    work.await;
                }
            };
            // A client that disconnects needs no report.
            let _ = futures::join!(connection.with_upgrades(), work);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn respond(
    agent: Arc<Agent>,
    order: mpsc::Sender<Work>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    Ok(answer(&agent, &order, request).await.unwrap_or_else(|error| {
        let mut answer = Response::new(text(report::chain(&error) + "\n"));
        *answer.status_mut() = match error {
            ServeError::Read(_) => StatusCode::INTERNAL_SERVER_ERROR,
            ServeError::Upgrade | ServeError::Run(_) | ServeError::Still(_) => StatusCode::BAD_REQUEST,
            ServeError::Path(_) | ServeError::Pod(_) => StatusCode::NOT_FOUND,
        };
        answer
    }))
}

fn text(text: String) -> Body {
    Full::from(text).boxed_unsync()
}

async fn answer(
    agent: &Agent,
    order: &mpsc::Sender<Work>,
    request: Request<Incoming>,
) -> Result<Response<Body>, ServeError> {
    let path = request.uri().path().to_owned();
    let words: Vec<&str> = path.split('/').skip(1).collect();
    let asked = Asked::parse(request.uri().query().unwrap_or_default());
    let [kind, namespace, pod, container] = words.as_slice() else {
        return Err(ServeError::Path(path));
    };
    let pod = Api::<Pod>::namespaced(agent.client(), namespace).get(pod).await?;
    let folder = agent.folder.join("pods").join(pod.uid().unwrap_or_default());
    match *kind {
        "containerLogs" => log::answer(&folder, container, &asked),
        "exec" => {
            let (answer, work) = exec::answer(&folder, container, &asked, request)?;
            // If the connection has ended, the work is dropped.
            let _ = order.send(Box::pin(work)).await;
            Ok(answer)
        }
        _ => Err(ServeError::Path(path)),
    }
}

/// The query of a URL.
struct Asked(Vec<(String, String)>);

impl Asked {
    fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (plain(name), plain(value))).collect())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.all(name).next()?.parse().ok()
    }

    fn is_set(&self, name: &str) -> bool {
        self.all(name).any(|value| matches!(value, "1" | "true"))
    }
}

/// Decodes percent-encoding.
fn plain(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code
            .filter(|_| first == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(code.unwrap_or(if first == b'+' { b' ' } else { first }));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The numbered entries of a folder, the newest last.
pub(super) fn runs(folder: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let numbered = entries.filter_map(|entry| Some((entry.path().file_stem()?.to_str()?.parse().ok()?, entry.path())));
    let mut runs: Vec<_> = numbered.collect();
    runs.sort();
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_it_was_meant() {
        let asked = Asked::parse("command=sh&command=-c&command=echo+%C3%A4%20%26+100%&output=1&tailLines=7");
        assert_eq!(asked.all("command").collect::<Vec<_>>(), ["sh", "-c", "echo ä & 100%"]);
        assert!(asked.is_set("output") && !asked.is_set("input"));
        assert_eq!((asked.number("tailLines"), asked.number("limitBytes")), (Some(7), None));
    }
}
