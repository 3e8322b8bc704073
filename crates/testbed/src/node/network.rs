//! The addresses of pods, and their connection to the API server.
//!
//! All pods are connected to one bridge in the network namespace of their control plane. The namespace has no other
//! interface, so no packet of a pod can leave the machine, whatever its routes are. The API server listens on loopback
//! only. Pods reach it at the address of its Service, which its certificate contains: the agent listens there and
//! forwards the bytes. The agent plays the addresses of other services in the same way.

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

/// The node's address for pods and the API server.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

/// The Service `kubernetes`: the first address of the range that the API server was started with.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const SERVER_PORT: u16 = 443;

const SERVICES: &str = "10.0.0.0/24";
const BRIDGE: &str = "pods";

/// The bridge's hardware address. Without a fixed one a bridge takes the lowest address of its ports. Then a pod that
/// comes or goes would change it and cut off all other pods until their neighbour tables expire.
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

/// The address at which the API server listens.
pub(super) fn server(url: &Uri) -> SocketAddr {
    let port = url.port_u16().unwrap_or(443);
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Listens at the API server's Service address. The returned future forwards connections.
pub(super) async fn lead_to_server(server: SocketAddr) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let listener = TcpListener::bind((SERVER, SERVER_PORT)).await?;
    Ok(forward::serve(listener, move || Some(server)))
}

/// Listens at the registry's address for pods, so that an image has the same name for pods and for the node.
pub(super) async fn lead_to_registry(port: u16) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let listener = TcpListener::bind((NODE, port)).await?;
    let registry = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Ok(forward::serve(listener, move || Some(registry)))
}

/// The addresses of pods that are in use.
#[derive(Debug, Default)]
pub(super) struct Addresses(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    last: u8,
    numbers: BTreeSet<u8>,
}

/// A pod's network namespace with its address. Dropping it frees the address.
#[derive(Debug)]
pub(super) struct PodNetwork {
    pub(super) network: Network,
    number: u8,
    taken: Arc<Mutex<Taken>>,
}

impl Addresses {
    /// Makes a network namespace for a pod, with interfaces that are up.
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
            // Container engines allow this too, because most programs that listen on a low port are not root.
            fs_err::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        })?;
        Ok(place)
    }

    /// A free number for the last part of a pod's address. The search begins behind the number that was taken last, so
    /// that a freed number is not reused at once: another pod may still send to its address.
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
