//! The fence: registries that other people name are not asked at addresses that only this machine can reach.
//!
//! The fence refuses addresses of this machine, of its link, and of the API server, unless they are permitted. Must
//! never judge a name: only addresses to which a connection is about to be made count.

use std::collections::BTreeSet;
use std::net::IpAddr;

use tokio::net::lookup_host;

use super::place::Host;
use super::proxies::address;
use super::way::Nearness;

/// The addresses that are not asked, and the exceptions.
#[derive(Debug, Clone, Default)]
pub struct Fence {
    /// Hosts and addresses that may be asked all the same, each with one port or with all ports.
    pub permitted: BTreeSet<Host>,
    /// The API server.
    pub servers: BTreeSet<Host>,
}

/// The fence for one host and port, with the resolved addresses of the API server.
#[derive(Debug)]
pub(super) struct Ring<'a> {
    permitted: &'a BTreeSet<Host>,
    port: u16,
    servers: Vec<IpAddr>,
}

impl Fence {
    /// The fence for a host; none if the host is permitted.
    pub(super) async fn around(&self, name: &str, port: u16) -> Option<Ring<'_>> {
        if self
            .permitted
            .iter()
            .any(|host| host.name() == name && covers(host, port))
        {
            return None;
        }
        let mut servers = Vec::new();
        for server in &self.servers {
            match address(server.name()) {
                Some(address) => servers.push(address.to_canonical()),
                // If the name of an API server has no address, there is no address to protect.
                None => servers.extend(
                    lookup_host((server.name(), 0))
                        .await
                        .into_iter()
                        .flatten()
                        .map(|found| found.ip().to_canonical()),
                ),
            }
        }
        Some(Ring {
            permitted: &self.permitted,
            port,
            servers,
        })
    }
}

impl Ring<'_> {
    pub(super) fn admits(&self, found: IpAddr) -> bool {
        let is_far = Nearness::of(found) == Nearness::Elsewhere && !self.servers.contains(&found.to_canonical());
        let is_found = |host: &Host| address(host.name()) == Some(found) && covers(host, self.port);
        is_far || self.permitted.iter().any(is_found)
    }
}

fn covers(host: &Host, port: u16) -> bool {
    host.port().is_none_or(|own| own == port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(texts: &[&str]) -> BTreeSet<Host> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    async fn check(permitted: &[&str], host: (&str, u16), found: &str, admitted: bool) {
        let fence = Fence {
            permitted: hosts(permitted),
            servers: hosts(&["10.96.0.1:443", "[fd00::1]"]),
        };
        let ring = fence.around(host.0, host.1).await;
        let found: IpAddr = found.parse().unwrap();
        let got = ring.is_none_or(|ring| ring.admits(found));
        assert_eq!(got, admitted, "{permitted:?} {host:?} {found}");
    }

    #[tokio::test]
    async fn near_addresses_and_the_api_server_are_refused_unless_they_are_listed() {
        let host = ("r.example.com", 443);
        for near in [
            "127.0.0.1",
            "::1",
            "0.0.0.0",
            "::ffff:127.0.0.1",
            "169.254.169.254",
            "fe80::1",
        ] {
            check(&[], host, near, false).await;
        }
        for server in ["10.96.0.1", "::ffff:10.96.0.1", "fd00::1"] {
            check(&[], host, server, false).await;
            // The whole computer counts, not one port of it.
            check(&[], ("r.example.com", 5000), server, false).await;
        }
        for far in ["10.96.0.2", "192.0.2.1", "2001:db8::1"] {
            check(&[], host, far, true).await;
        }
        check(&["r.example.com"], host, "127.0.0.1", true).await;
        check(&["r.example.com:443"], host, "127.0.0.1", true).await;
        check(&["r.example.com:5000"], host, "127.0.0.1", false).await;
        check(&["127.0.0.1"], host, "127.0.0.1", true).await;
        check(&["127.0.0.1:5000"], host, "127.0.0.1", false).await;
        check(&["127.0.0.2"], host, "127.0.0.1", false).await;
        check(&["10.96.0.1"], host, "10.96.0.1", true).await;
    }
}
