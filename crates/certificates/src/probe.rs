//! Asks the operator's own listener as the API server would, before the webhook is published.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::review::registration::CaBundle;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::material::{BadCertificate, Pem};

/// The listener is in this process, so it answers soon.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the API server could not reach us.
#[derive(Debug, Error)]
pub enum ProbeError {
    #[error("cannot connect to our own webhooks at {address}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("cannot verify our own webhooks as {name}")]
    Verify { name: String, source: io::Error },
    #[error("our own webhooks at {address} do not answer: {said}")]
    Answer { address: SocketAddr, said: String },
    #[error("our own webhooks at {address} do not answer within {PATIENCE:?}")]
    Silent { address: SocketAddr },
    #[error("no service can have the name {name}")]
    Name { name: String },
    #[error(transparent)]
    Bundle(#[from] BadCertificate),
    #[error("cannot set up TLS")]
    Setup(#[from] rustls::Error),
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        let class = match &error {
            ProbeError::Verify { .. } | ProbeError::Name { .. } | ProbeError::Bundle(_) => Class::Invalid,
            _ => Class::Unavailable,
        };
        let failure = Self::of(class, &error);
        match error {
            ProbeError::Verify { name, .. } => failure.hint(format!(
                "the certificate has to be for {name}, and signed by the CA that is given with it"
            )),
            _ => failure,
        }
    }
}

/// Succeeds if the bundle verifies the listener's certificate for this name, and the listener answers that it is
/// healthy. For a listener that demands client certificates only the handshake is checked, because the operator has
/// none to show.
pub async fn probe(address: SocketAddr, name: &str, bundle: &CaBundle, asks_clients: bool) -> Result<(), ProbeError> {
    let address = reachable(address);
    let attempt = Box::pin(attempt(address, name, bundle, asks_clients));
    timeout(PATIENCE, attempt)
        .await
        .unwrap_or(Err(ProbeError::Silent { address }))
}

async fn attempt(address: SocketAddr, name: &str, bundle: &CaBundle, asks_clients: bool) -> Result<(), ProbeError> {
    let host = ServerName::try_from(name.to_owned()).map_err(|_| ProbeError::Name { name: name.to_owned() })?;
    let pem = Pem {
        place: "the CA bundle of the webhooks".to_owned(),
        text: bundle.as_str().into(),
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let config = builder.with_root_certificates(pem.roots()?).with_no_client_auth();
    let connect = |source| ProbeError::Connect { address, source };
    let tcp = TcpStream::connect(address).await.map_err(connect)?;
    let verify = |source| ProbeError::Verify {
        name: name.to_owned(),
        source,
    };
    let mut tls = TlsConnector::from(Arc::new(config))
        .connect(host, tcp)
        .await
        .map_err(verify)?;
    if asks_clients {
        return Ok(());
    }
    let unanswered = |error: io::Error| ProbeError::Answer {
        address,
        said: error.to_string(),
    };
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    tls.write_all(request.as_bytes()).await.map_err(unanswered)?;
    let mut head = [0; 12];
    tls.read_exact(&mut head).await.map_err(unanswered)?;
    if &head == b"HTTP/1.1 200" {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&head).into_owned();
    Err(ProbeError::Answer { address, said })
}

/// The address at which the listener is asked. For a listener on all addresses this is loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}
