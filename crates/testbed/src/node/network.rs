//! The addresses of pods, and how they reach the API server.
//!
//! Pods hang on one bridge in the network namespace of their control plane. There is nothing else in it, so no packet
//! of a pod can leave the machine, whatever routes it has. The API server listens on loopback only; pods find it under
//! the address of its Service, which is in its certificate, where the agent listens and carries their bytes over. The
//! addresses of other services are the node's own, too, and played by the agent in the same way.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::http::Uri;
use tokio::net::TcpListener;

use crate::forward;
use crate::space::{self, Network, SpaceError};

/// The node itself, as pods and the API server know it.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

/// The Service `kubernetes`: the first address of the range that the API server was started with.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const SERVER_PORT: u16 = 443;

const SERVICES: &str = "10.0.0.0/24";
const BRIDGE: &str = "pods";

/// By which pods know the node on the wire. Left to itself a bridge takes the lowest one of its ports, so that a pod that
/// came or went would cut off all others until they have forgotten the old one.
const HARDWARE: &str = "02:00:0a:00:01:01";

/// Makes the bridge and the node's own addresses.
pub(super) fn prepare() -> Result<(), SpaceError> {
    space::furnish_ours(&format!(
        "link add name {BRIDGE} address {HARDWARE} type bridge\n\
         addr add {NODE}/24 dev {BRIDGE}\n\
         link set {BRIDGE} up\n\
         route add local {SERVICES} dev lo\n"
    ))
}

/// Where the API server listens.
pub(super) fn server(url: &Uri) -> SocketAddr {
    let port = url.port_u16().unwrap_or(443);
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Listens where pods look for the API server; what is returned serves.
pub(super) async fn lead_to_server(server: SocketAddr) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let listener = TcpListener::bind((SERVER, SERVER_PORT)).await?;
    Ok(forward::serve(listener, move || Some(server)))
}

/// Listens where pods look for the registry: an image then has one name for them and for the node.
pub(super) async fn lead_to_registry(port: u16) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let listener = TcpListener::bind((NODE, port)).await?;
    let registry = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Ok(forward::serve(listener, move || Some(registry)))
}

/// The addresses that pods have.
#[derive(Debug, Default)]
pub(super) struct Addresses(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    last: u8,
    numbers: BTreeSet<u8>,
}

/// A network namespace with an address; the address is free again when this is dropped.
#[derive(Debug)]
pub(super) struct PodNetwork {
    pub(super) network: Network,
    number: u8,
    taken: Arc<Mutex<Taken>>,
}

impl Addresses {
    /// A place for a pod, with interfaces that are up.
    pub(super) fn take(&self) -> Result<PodNetwork, SpaceError> {
        let number = self.number().ok_or_else(|| {
            let text = "all addresses of pods are taken".to_owned();
            SpaceError::Furnish(text)
        })?;
        let place = PodNetwork {
            network: Network::create()?,
            number,
            taken: Arc::clone(&self.0),
        };
        let (address, ours) = (place.address(), process::id());
        place.network.furnish(&format!(
            "link set lo up\n\
             link add eth0 type veth peer name pod{number} netns {ours}\n\
             addr add {address}/24 dev eth0\n\
             link set eth0 up\n\
             route add default via {NODE}\n"
        ))?;
        space::furnish_ours(&format!("link set pod{number} master {BRIDGE} up\n"))?;
        place.network.within(|| {
            // As container engines do, because most who listen on a low port are not root.
            fs_err::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        })?;
        Ok(place)
    }

    /// Never the one that was given back last: somebody may still talk to it.
    fn number(&self) -> Option<u8> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = (taken.last.saturating_add(1)..=MOST).chain(FIRST..=MOST);
        let number = all
            .filter(|number| *number >= FIRST)
            .find(|number| !taken.numbers.contains(number))?;
        taken.last = number;
        taken.numbers.insert(number);
        Some(number)
    }
}

const FIRST: u8 = 2;
const MOST: u8 = 254;

impl PodNetwork {
    pub(super) fn address(&self) -> Ipv4Addr {
        let [a, b, c, _] = NODE.octets();
        Ipv4Addr::new(a, b, c, self.number)
    }
}

impl Drop for PodNetwork {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.numbers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_not_given_to_two_pods_nor_again_at_once() {
        let addresses = Addresses::default();
        assert_eq!((addresses.number(), addresses.number()), (Some(2), Some(3)));
        addresses.0.lock().unwrap().numbers.remove(&2);
        assert_eq!(addresses.number(), Some(4));
        let rest = std::iter::from_fn(|| addresses.number()).count();
        assert_eq!((rest, addresses.number()), (251, None));
    }
}
