//! The proxy for a host, from `HTTPS_PROXY` and `NO_PROXY` as Go reads them.
//!
//! A proxy only carries TLS, which it cannot read. Must never show the proxy's password, nor use a proxy for plain
//! HTTP.

use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use super::place::{BadName, Host};

/// Why a proxy's URL cannot be used.
#[derive(Debug, Error)]
pub enum BadProxy {
    /// The scheme is not `http`.
    #[error("the proxy for HTTPS must be reached by http, as in http://proxy.example:3128")]
    Scheme,
    /// The host is invalid.
    #[error("the proxy for HTTPS has no proper address")]
    Host(#[source] BadName),
}

/// The proxy, and the hosts that are reached without it.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    proxy: Option<Proxy>,
    direct: Vec<Direct>,
}

/// A proxy that opens tunnels.
#[derive(Clone)]
pub(super) struct Proxy {
    pub(super) host: Host,
    /// The value of `Proxy-Authorization`.
    pub(super) login: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// Hosts that are reached without a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Direct {
    whom: Whom,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Whom {
    Everybody,
    /// A network: an address and the length of its prefix.
    Network(IpAddr, u8),
    /// A domain and everything below it.
    Domain(String),
    /// Everything below a domain.
    Below(String),
}

impl Proxies {
    /// Parses the values of the two variables; an empty one counts as absent.
    pub fn new(https_proxy: Option<&str>, no_proxy: Option<&str>) -> Result<Self, BadProxy> {
        let proxy = https_proxy.map(str::trim).filter(|text| !text.is_empty());
        let proxy = proxy.map(Proxy::parse).transpose()?;
        let direct = no_proxy.unwrap_or_default().split([',', ' ']);
        let direct = direct.filter_map(Direct::parse).collect();
        Ok(Self { proxy, direct })
    }

    /// The proxy for a host, if it is not reached directly.
    pub(super) fn way_to(&self, name: &str, port: u16) -> Option<&Proxy> {
        let proxy = self.proxy.as_ref()?;
        let address = address(name);
        // A proxy on another machine cannot reach this machine's loopback.
        let is_here = name == "localhost" || address.is_some_and(|address| address.is_loopback());
        let is_direct = is_here || self.direct.iter().any(|direct| direct.means(name, address, port));
        (!is_direct).then_some(proxy)
    }
}

/// The IP address in the place of a host's name; `None` if the name is no address.
pub(super) fn address(name: &str) -> Option<IpAddr> {
    name.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

impl Proxy {
    fn parse(text: &str) -> Result<Self, BadProxy> {
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(BadProxy::Scheme),
            None => text,
        };
        let authority = rest.split('/').next().unwrap_or(rest);
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, authority),
        };
        let login = login.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            let pair = [&unescaped(user)[..], b":", &unescaped(password)].concat();
            format!("Basic {}", STANDARD.encode(pair))
        });
        let host = host.parse().map_err(BadProxy::Host)?;
        Ok(Self { host, login })
    }
}

/// Decodes percent-encoding, such as `%40` for `@` in a password.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(code) = code.filter(|_| *first == b'%') {
            bytes.push(code);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    bytes
}

impl Direct {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            let (whom, port) = (Whom::Everybody, None);
            return Some(Self { whom, port });
        }
        if let Some((network, bits)) = text.split_once('/') {
            let whom = Whom::Network(address(network)?, bits.parse().ok()?);
            return Some(Self { whom, port: None });
        }
        // An IPv6 address has colons itself, and a port only after brackets.
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if address(&text).is_none() => (name, Some(port.parse().ok()?)),
            _ => (text.as_str(), None),
        };
        let whom = match (
            address(name),
            name.strip_prefix("*.").or_else(|| name.strip_prefix('.')),
        ) {
            (Some(address), _) => Whom::Network(address, 128),
            (None, Some(domain)) => Whom::Below(domain.to_owned()),
            (None, None) => Whom::Domain(name.to_owned()),
        };
        Some(Self { whom, port })
    }

    fn means(&self, name: &str, address: Option<IpAddr>, port: u16) -> bool {
        if self.port.is_some_and(|only| only != port) {
            return false;
        }
        let below = |domain: &str| {
            let before = name.strip_suffix(domain);
            before.is_some_and(|before| before.ends_with('.'))
        };
        match &self.whom {
            Whom::Everybody => true,
            Whom::Network(network, bits) => address.is_some_and(|address| shares(address, *network, *bits)),
            Whom::Domain(domain) => name == domain || below(domain),
            Whom::Below(domain) => below(domain),
        }
    }
}

/// Whether two addresses have the same prefix of this length.
fn shares(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let (one, other, width) = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u128::from(one.to_bits()), u128::from(other.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    let rest = u32::from(width - bits.min(width));
    (one ^ other).checked_shr(rest).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_reached_directly_is_what_go_says() {
        let none = "registry.example, .inner.example,*.wild.example,10.0.0.0/8,192.0.2.7,port.example:5000,fd00::/8";
        let proxies = Proxies::new(Some("http://proxy.example:3128"), Some(none)).unwrap();
        for (name, port, is_direct) in [
            ("registry.example", 443, true),
            ("a.registry.example", 443, true),
            ("myregistry.example", 443, false),
            ("inner.example", 443, false),
            ("a.inner.example", 443, true),
            ("a.wild.example", 443, true),
            ("10.1.2.3", 443, true),
            ("11.1.2.3", 443, false),
            ("192.0.2.7", 443, true),
            ("192.0.2.8", 443, false),
            ("port.example", 5000, true),
            ("port.example", 443, false),
            ("[fd00::1]", 443, true),
            ("[fe00::1]", 443, false),
            ("localhost", 443, true),
            ("127.0.0.1", 443, true),
            ("other.example", 443, false),
        ] {
            assert_eq!(proxies.way_to(name, port).is_none(), is_direct, "{name}:{port}");
        }
        let all = Proxies::new(Some("proxy.example:3128"), Some("*")).unwrap();
        assert!(all.way_to("other.example", 443).is_none());
    }

    #[test]
    fn a_proxy_may_know_us_and_its_password_is_not_shown() {
        let proxies = Proxies::new(Some("http://user:p%40ss@proxy.example:3128/"), None).unwrap();
        let proxy = proxies.way_to("a.example", 443).unwrap();
        assert_eq!(proxy.host.to_string(), "proxy.example:3128");
        assert_eq!(proxy.login.as_deref(), Some("Basic dXNlcjpwQHNz"));
        assert!(!format!("{proxies:?}").contains("dXNl"));
        assert!(matches!(
            Proxies::new(Some("socks5://a:1"), None),
            Err(BadProxy::Scheme)
        ));
        assert!(matches!(Proxies::new(Some("http://"), None), Err(BadProxy::Host(_))));
        assert!(Proxies::new(Some(""), None).unwrap().way_to("a.example", 1).is_none());
    }
}
