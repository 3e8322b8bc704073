//! Connections to registries: address, proxy, TLS.
//!
//! A redirect of a registry is followed only to an address that is as near as the registry's own: never from outside to
//! this machine or to a link-local address, where clouds offer credentials. Connections are made to exactly the
//! addresses that were checked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Class;
use certificates::material::{BadCertificate, Pem};
use rustls::crypto::ring;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::fence::Fence;
use super::place::Host;
use super::proxies::{Proxies, Proxy, address};
use super::url::{Origin, Scheme};

/// Why no connection was made.
#[derive(Debug, Error)]
pub enum WayError {
    #[error("cannot find {host}")]
    Lookup { host: String, source: io::Error },
    #[error("cannot connect to {host}")]
    Connect { host: String, source: io::Error },
    #[error("cannot verify {host}")]
    Verify { host: String, source: io::Error },
    #[error("no server can be verified as {host}")]
    Name { host: String, source: InvalidDnsNameError },
    #[error("cannot get to {host}: the proxy {proxy} {said}")]
    Proxy { host: String, proxy: Host, said: String },
    #[error(
        "a registry elsewhere refers us to {host}, and its address {address} is one of this machine or of its link: it is not asked"
    )]
    Near { host: String, address: IpAddr },
    #[error(
        "{host} has the address {address}, which is one of this machine, of its link or of the API server: it is not asked without permission"
    )]
    Fenced { host: String, address: IpAddr },
    #[error("no connection to {host} within {waited:?}")]
    Silent { host: String, waited: Duration },
    #[error("cannot speak with {host}")]
    Handshake { host: String, source: hyper::Error },
}

impl WayError {
    pub(super) fn class(&self) -> Class {
        match self {
            // An error of TLS itself has this kind; errors of the network have others.
            Self::Verify { source, .. } if source.kind() == io::ErrorKind::InvalidData => Class::Invalid,
            Self::Name { .. } | Self::Near { .. } | Self::Fenced { .. } => Class::Invalid,
            Self::Silent { .. } => Class::TimedOut,
            Self::Verify { .. }
            | Self::Lookup { .. }
            | Self::Connect { .. }
            | Self::Proxy { .. }
            | Self::Handshake { .. } => Class::Unavailable,
        }
    }

    pub(super) fn hint(&self, server: &Host) -> Option<String> {
        match self {
            Self::Verify { .. } if self.class() == Class::Invalid => Some(format!(
                "if {server} has a certificate of an authority of your own, give that one to the operator; if it has none, list it as a registry without TLS"
            )),
            _ => None,
        }
    }
}

/// The problem for which no registry can be asked at all.
#[derive(Debug, Error)]
pub enum SetupError {
    #[error("cannot trust the authority of the registries")]
    Authorities(#[from] BadCertificate),
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
}

/// The distance of an address from this computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nearness {
    /// The address is of this computer.
    Here,
    /// The address is on the local link.
    Link,
    Elsewhere,
}

impl Nearness {
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        // All of 0.0.0.0/8 means "this host".
        if address.is_loopback() || address.octets()[0] == 0 {
            Self::Here
        } else if address.is_link_local() || address.is_broadcast() {
            Self::Link
        } else {
            Self::Elsewhere
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if address.is_loopback() || address.is_unspecified() {
            return Self::Here;
        }
        if address.is_unicast_link_local() {
            return Self::Link;
        }
        let [a, b, c, d] = [12, 13, 14, 15].map(|place| address.octets()[place]);
        match address.segments() {
            // Mapped, compatible and translated (NAT64) addresses count as the IPv4 address in them.
            [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
                Self::of_v4(Ipv4Addr::new(a, b, c, d))
            }
            _ => Self::Elsewhere,
        }
    }
}

/// The addresses that may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Any address, because a person named the host.
    Any,
    /// Distant addresses, and those that are as near as the redirecting server.
    As(Nearness),
}

impl Reach {
    fn admits(self, address: IpAddr) -> bool {
        let nearness = Nearness::of(address);
        self == Self::Any || nearness == Nearness::Elsewhere || self == Self::As(nearness)
    }
}

/// A connection, and the nearness of its other end. Behind a proxy the other end counts as distant.
pub(super) struct Connection {
    pub(super) stream: Either<TcpStream, TlsStream<TcpStream>>,
    pub(super) nearness: Nearness,
}

/// Makes connections.
pub(super) struct Ways {
    tls: Arc<ClientConfig>,
    proxies: Proxies,
    fence: Option<Fence>,
    patience: Duration,
}

impl Ways {
    /// Trusts the authorities of the computer and the given ones.
    pub(super) fn new(authorities: Option<&Pem>, proxies: Proxies, patience: Duration) -> Result<Self, SetupError> {
        let mut roots = RootCertStore::empty();
        // An unreadable file of the machine is ignored: certificates of its authorities are then refused.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(authorities) = authorities {
            roots.extend(authorities.roots()?.roots);
        }
        let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tls: Arc::new(tls),
            proxies,
            fence: None,
            patience,
        })
    }

    /// Refuses addresses by a fence, which proxies themselves need not pass.
    pub(super) fn within(self, fence: Option<Fence>) -> Self {
        Self { fence, ..self }
    }

    pub(super) async fn connect(&self, origin: &Origin, reach: Reach) -> Result<Connection, WayError> {
        let attempt = Box::pin(self.attempt(origin, reach));
        let silent = |_| WayError::Silent {
            host: origin.authority(),
            waited: self.patience,
        };
        timeout(self.patience, attempt).await.map_err(silent)?
    }

    async fn attempt(&self, origin: &Origin, reach: Reach) -> Result<Connection, WayError> {
        let host = origin.authority();
        let proxy = match origin.scheme {
            Scheme::Tls => self.proxies.way_to(&origin.name, origin.port),
            Scheme::Plain => None,
        };
        let (stream, nearness) = match proxy {
            None => {
                self.direct(&origin.name, origin.port, reach, self.fence.as_ref())
                    .await?
            }
            Some(proxy) => {
                // An IP address is checked here. For a name the proxy decides where it connects.
                let near = address(&origin.name).filter(|&address| !reach.admits(address));
                if let Some(address) = near {
                    return Err(WayError::Near { host, address });
                }
                if let (Some(address), Some(fence)) = (address(&origin.name), &self.fence)
                    && let Some(ring) = fence.around(&origin.name, origin.port).await
                    && !ring.admits(address)
                {
                    return Err(WayError::Fenced { host, address });
                }
                (self.through(proxy, origin).await?, Nearness::Elsewhere)
            }
        };
        if origin.scheme == Scheme::Plain {
            let stream = Either::Left(stream);
            return Ok(Connection { stream, nearness });
        }
        let bare = origin.name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|source| WayError::Name {
            host: host.clone(),
            source,
        })?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await;
        let stream = Either::Right(stream.map_err(|source| WayError::Verify { host, source })?);
        Ok(Connection { stream, nearness })
    }

    /// Tries one address after the other; each gets a share of the time.
    async fn direct(
        &self,
        name: &str,
        port: u16,
        reach: Reach,
        fence: Option<&Fence>,
    ) -> Result<(TcpStream, Nearness), WayError> {
        let host = format!("{name}:{port}");
        let lookup = |source| WayError::Lookup {
            host: host.clone(),
            source,
        };
        let found: Vec<SocketAddr> = match address(name) {
            Some(address) => vec![SocketAddr::new(address, port)],
            None => lookup_host((name, port)).await.map_err(lookup)?.collect(),
        };
        let Some(first) = found.first() else {
            return Err(lookup(io::Error::from(io::ErrorKind::NotFound)));
        };
        let address = first.ip();
        let admitted: Vec<SocketAddr> = found.into_iter().filter(|found| reach.admits(found.ip())).collect();
        if admitted.is_empty() {
            return Err(WayError::Near { host, address });
        }
        let admitted = match fence {
            Some(fence) => match fence.around(name, port).await {
                Some(ring) => admitted.into_iter().filter(|found| ring.admits(found.ip())).collect(),
                None => admitted,
            },
            None => admitted,
        };
        if admitted.is_empty() {
            return Err(WayError::Fenced { host, address });
        }
        let share = self.patience / u32::try_from(admitted.len()).unwrap_or(u32::MAX);
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for address in admitted {
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok((stream, Nearness::of(address.ip()))),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
            }
        }
        Err(WayError::Connect { host, source: last })
    }

    async fn through(&self, proxy: &Proxy, origin: &Origin) -> Result<TcpStream, WayError> {
        let port = proxy.host.port().unwrap_or(80);
        let (mut stream, _) = self.direct(proxy.host.name(), port, Reach::Any, None).await?;
        let refused = |said: String| WayError::Proxy {
            host: origin.authority(),
            proxy: proxy.host.clone(),
            said,
        };
        let broken = |error: io::Error| refused(format!("does not answer ({error})"));
        let to = format!("{}:{}", origin.name, origin.port);
        let login = proxy.login.as_ref();
        let login = login.map(|login| format!("Proxy-Authorization: {login}\r\n"));
        let login = login.unwrap_or_default();
        let asked = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{login}\r\n");
        stream.write_all(asked.as_bytes()).await.map_err(broken)?;
        let mut head = Vec::new();
        // Byte by byte, because the bytes after the head belong to TLS.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == PROXY_HEAD {
                return Err(refused(format!("answers with more than {PROXY_HEAD} bytes")));
            }
            head.push(stream.read_u8().await.map_err(broken)?);
        }
        let line = String::from_utf8_lossy(&head);
        let line = line.lines().next().unwrap_or_default();
        if line.starts_with("HTTP/1.") && line.split(' ').nth(1) == Some("200") {
            return Ok(stream);
        }
        Err(refused(format!("answers '{}'", super::said::line(line))))
    }
}

/// The size limit of a proxy's answer.
const PROXY_HEAD: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_addresses_are_known_in_every_disguise() {
        for (address, nearness) in [
            ("127.0.0.1", Nearness::Here),
            ("127.9.9.9", Nearness::Here),
            ("0.0.0.0", Nearness::Here),
            ("::1", Nearness::Here),
            ("::", Nearness::Here),
            ("::ffff:127.0.0.1", Nearness::Here),
            ("::127.0.0.1", Nearness::Here),
            ("64:ff9b::7f00:1", Nearness::Here),
            ("169.254.169.254", Nearness::Link),
            ("::ffff:169.254.169.254", Nearness::Link),
            ("64:ff9b::a9fe:a9fe", Nearness::Link),
            ("fe80::1", Nearness::Link),
            ("10.0.0.1", Nearness::Elsewhere),
            ("192.0.2.1", Nearness::Elsewhere),
            ("2001:db8::1", Nearness::Elsewhere),
            ("fd00::1", Nearness::Elsewhere),
        ] {
            assert_eq!(Nearness::of(address.parse().unwrap()), nearness, "{address}");
        }
    }

    #[test]
    fn a_registry_refers_us_only_to_where_it_is_itself() {
        let [here, link, elsewhere] = ["127.0.0.1", "169.254.169.254", "192.0.2.1"].map(|text| text.parse().unwrap());
        for (reach, admitted) in [
            (Reach::Any, [true, true, true]),
            (Reach::As(Nearness::Here), [true, false, true]),
            (Reach::As(Nearness::Link), [false, true, true]),
            (Reach::As(Nearness::Elsewhere), [false, false, true]),
        ] {
            assert_eq!(
                [here, link, elsewhere].map(|address| reach.admits(address)),
                admitted,
                "{reach:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_not_connected_to_for_others() {
        let ways = Ways::new(None, Proxies::default(), Duration::from_secs(5)).unwrap();
        let host: Host = "localhost:1".parse().unwrap();
        let origin = Origin::new(Scheme::Tls, &host);
        let refused = ways.connect(&origin, Reach::As(Nearness::Elsewhere)).await;
        assert!(matches!(refused, Err(WayError::Near { .. })));
        let refused = ways.connect(&origin, Reach::Any).await;
        assert!(matches!(refused, Err(WayError::Connect { .. })));
    }

    #[tokio::test]
    async fn a_proxy_is_not_asked_for_addresses_that_we_would_not_ask() {
        let proxies = Proxies::new(Some("http://127.0.0.1:1"), None).unwrap();
        let ways = Ways::new(None, proxies, Duration::from_secs(5)).unwrap();
        let host: Host = "169.254.169.254".parse().unwrap();
        let origin = Origin::new(Scheme::Tls, &host);
        let refused = ways.connect(&origin, Reach::As(Nearness::Elsewhere)).await;
        assert!(matches!(refused, Err(WayError::Near { .. })));
    }
}
