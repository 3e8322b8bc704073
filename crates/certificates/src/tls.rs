//! The TLS state of one listener: its present certificate, and whether it is open.
//!
//! A listener is opened when it has a certificate. Open connections keep the certificate of their handshake; new ones
//! use the newest.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use tokio::sync::watch;

use super::clients::Clients;
use super::material::Material;

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("cannot require certificates of clients")]
    Clients(#[source] rustls::server::VerifierBuilderError),
    #[error("cannot set up TLS")]
    Setup(#[from] rustls::Error),
}

/// The state of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// The listener is not needed.
    Idle,
    /// The listener has to be opened; there is a certificate.
    Wanted,
    /// The listener is open at the given address.
    Listening(SocketAddr),
    /// The listener could not be opened, for the given reason.
    Failed(String),
}

/// The TLS state of one listener. Clones share it.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    config: RustlsConfig,
    served: Mutex<Option<Served>>,
    phase: watch::Sender<Phase>,
}

#[derive(Clone)]
struct Served {
    material: Material,
    clients: Option<Clients>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&*self.0.phase.borrow()).finish()
    }
}

impl Tls {
    /// Refuses every handshake until there is a certificate.
    pub fn new() -> Result<Self, TlsError> {
        let config = RustlsConfig::from_config(config(None, WebPkiClientVerifier::no_client_auth())?);
        Ok(Self(Arc::new(Inner {
            config,
            served: Mutex::default(),
            phase: watch::Sender::new(Phase::Idle),
        })))
    }

    /// Uses this certificate from the next handshake on. With `clients`, clients have to show a certificate that one of
    /// these authorities has signed. Returns whether anything has changed.
    pub fn serve(&self, material: &Material, clients: Option<Clients>) -> Result<bool, TlsError> {
        let changed = !self.serves(material, clients.as_ref());
        if changed {
            self.swap(material, clients)?;
        }
        self.want();
        Ok(changed)
    }

    /// Asks for the listener to be opened, also after an earlier failure.
    pub fn want(&self) {
        self.0.phase.send_if_modified(|phase| {
            let idle = matches!(phase, Phase::Idle | Phase::Failed(_));
            if idle {
                *phase = Phase::Wanted;
            }
            idle
        });
    }

    fn serves(&self, material: &Material, clients: Option<&Clients>) -> bool {
        let served = self.0.served.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |served: &Served| served.material == *material && served.clients.as_ref() == clients;
        served.as_ref().is_some_and(same)
    }

    fn swap(&self, material: &Material, clients: Option<Clients>) -> Result<(), TlsError> {
        let verifier: Arc<dyn ClientCertVerifier> = match &clients {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(clients) => clients.verifier().map_err(TlsError::Clients)?,
        };
        let config = config(Some(Arc::clone(material.key())), verifier)?;
        let material = material.clone();
        *self.0.served.lock().unwrap_or_else(PoisonError::into_inner) = Some(Served { material, clients });
        self.0.config.reload_from_config(config);
        Ok(())
    }

    /// The certificate that the listener serves at present.
    pub fn served(&self) -> Option<Material> {
        let served = self.0.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.as_ref().map(|served| served.material.clone())
    }

    /// Whether clients have to show a certificate.
    pub fn asks_clients(&self) -> bool {
        let served = self.0.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.as_ref().is_some_and(|served| served.clients.is_some())
    }

    /// The configuration for the listener.
    pub fn rustls(&self) -> RustlsConfig {
        self.0.config.clone()
    }

    /// Waits until the listener has to be opened.
    pub async fn wanted(&self) {
        let mut phase = self.0.phase.subscribe();
        // `self` owns the sender, so the wait cannot fail.
        drop(phase.wait_for(|phase| *phase == Phase::Wanted).await);
    }

    /// Publishes the state of the listener.
    pub fn tell(&self, phase: Phase) {
        self.0.phase.send_replace(phase);
    }

    /// Waits until the listener is open, or has failed to open.
    pub async fn opened(&self) -> Result<SocketAddr, String> {
        let mut phase = self.0.phase.subscribe();
        let settled = phase
            .wait_for(|phase| matches!(phase, Phase::Listening(_) | Phase::Failed(_)))
            .await;
        match settled.as_deref() {
            Ok(Phase::Listening(address)) => Ok(*address),
            Ok(Phase::Failed(why)) => Err(why.clone()),
            Ok(Phase::Idle | Phase::Wanted) | Err(_) => Err("it was never opened".to_owned()),
        }
    }
}

fn config(
    key: Option<Arc<CertifiedKey>>,
    clients: Arc<dyn ClientCertVerifier>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let mut config = builder
        .with_client_cert_verifier(clients)
        .with_cert_resolver(Arc::new(Only(key)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Resolves every requested name to one certificate.
#[derive(Debug)]
struct Only(Option<Arc<CertifiedKey>>);

impl ResolvesServerCert for Only {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
}
