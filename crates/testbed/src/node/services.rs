//! Plays the addresses of services: the agent listens on each and forwards connections to a ready pod.
//!
//! The node has these addresses in the network of the pods, so nothing outside of the control plane's network sees
//! them. A service without ready pods refuses connections.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::say;
use crate::{forward, report};

/// An address of a service, and the name of its port, by which the pods' ports are found.
type Port = (SocketAddr, String);

/// The pods behind services, by `EndpointSlice`.
#[derive(Debug, Default)]
struct Ends {
    slices: Mutex<HashMap<String, Vec<End>>>,
    turn: AtomicUsize,
}

/// A port of a ready pod to which a service leads.
#[derive(Debug)]
struct End {
    /// The namespace and the name of the service.
    service: String,
    port: String,
    address: SocketAddr,
}

impl Ends {
    /// Chooses a pod, each one in turn.
    fn choose(&self, service: &str, port: &str) -> Option<SocketAddr> {
        let slices = self.slices.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = slices
            .values()
            .flatten()
            .filter(|end| end.service == service && end.port == port);
        let fitting: Vec<SocketAddr> = fitting.map(|end| end.address).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        fitting.get(turn.checked_rem(fitting.len())?).copied()
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<String, Vec<End>>)) {
        change(&mut self.slices.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Plays all services for ever.
pub(super) async fn play(client: Client) {
    let ends = Arc::new(Ends::default());
    futures::join!(follow_ends(client.clone(), &ends), follow_services(client, &ends));
}

async fn follow_ends(client: Client, ends: &Ends) {
    let slices = Api::<EndpointSlice>::all(client);
    let mut events = watcher(slices, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => ends.change(HashMap::clear),
            Ok(Event::InitApply(slice) | Event::Apply(slice)) => {
                ends.change(|slices| drop(slices.insert(key(&slice), ends_of(&slice))));
            }
            Ok(Event::Delete(slice)) => ends.change(|slices| drop(slices.remove(&key(&slice)))),
            Ok(Event::InitDone) => {}
            Err(error) => say(&format!("cannot watch endpoints: {}", report::chain(&error))),
        }
    }
}

fn ends_of(slice: &EndpointSlice) -> Vec<End> {
    const SERVICE: &str = "kubernetes.io/service-name";
    let Some(service) = slice.labels().get(SERVICE) else {
        return Vec::new();
    };
    let service = format!("{}/{service}", slice.namespace().unwrap_or_default());
    let ready = slice.endpoints.iter().filter(|end| {
        let conditions = end.conditions.as_ref();
        conditions.is_none_or(|conditions| conditions.ready != Some(false))
    });
    let mut ends = Vec::new();
    for address in ready
        .flat_map(|end| &end.addresses)
        .filter_map(|address| address.parse::<IpAddr>().ok())
    {
        for port in slice.ports.iter().flatten() {
            if let Some(number) = port.port.and_then(|number| u16::try_from(number).ok()) {
                ends.push(End {
                    service: service.clone(),
                    port: port.name.clone().unwrap_or_default(),
                    address: SocketAddr::from((address, number)),
                });
            }
        }
    }
    ends
}

async fn follow_services(client: Client, ends: &Arc<Ends>) {
    let services = Api::<Service>::all(client);
    let mut events = watcher(services, watcher::Config::default()).default_backoff().boxed();
    // Dropping a value closes its listeners.
    let mut played: HashMap<String, (BTreeSet<Port>, JoinSet<()>)> = HashMap::new();
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        let service = match event {
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(service)) => {
                listed.push(key(&service));
                service
            }
            Ok(Event::InitDone) => {
                played.retain(|key, _| listed.contains(key));
                continue;
            }
            Ok(Event::Apply(service)) => service,
            Ok(Event::Delete(service)) => {
                played.remove(&key(&service));
                continue;
            }
            Err(error) => {
                say(&format!("cannot watch services: {}", report::chain(&error)));
                continue;
            }
        };
        let (key, ports) = (key(&service), ports_of(&service));
        if played.get(&key).is_none_or(|(old, _)| *old != ports) {
            played.remove(&key);
            let listeners = listen(&key, &ports, ends).await;
            played.insert(key, (ports, listeners));
        }
    }
}

fn key(object: &impl Resource) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn ports_of(service: &Service) -> BTreeSet<Port> {
    // The API server's own service has no pods and is played elsewhere.
    if key(service) == "default/kubernetes" {
        return BTreeSet::new();
    }
    let spec = service.spec.clone().unwrap_or_default();
    let Some(address) = spec.cluster_ip.and_then(|address| address.parse::<IpAddr>().ok()) else {
        return BTreeSet::new();
    };
    let ports = spec.ports.unwrap_or_default().into_iter();
    let ports = ports.filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
    let ports = ports.filter_map(|port| Some((u16::try_from(port.port).ok()?, port.name.unwrap_or_default())));
    ports
        .map(|(number, name)| (SocketAddr::from((address, number)), name))
        .collect()
}

async fn listen(service: &str, ports: &BTreeSet<Port>, ends: &Arc<Ends>) -> JoinSet<()> {
    let mut listeners = JoinSet::new();
    for (address, name) in ports {
        match TcpListener::bind(address).await {
            Ok(listener) => {
                let (ends, service, name) = (Arc::clone(ends), service.to_owned(), name.clone());
                listeners.spawn(forward::serve(listener, move || ends.choose(&service, &name)));
            }
            Err(error) => say(&format!("cannot listen for service {service} on {address}: {error}")),
        }
    }
    listeners
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(ready: bool) -> EndpointSlice {
        let slice = json!({
            "metadata": { "namespace": "ns", "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
            "addressType": "IPv4",
            "endpoints": [
                { "addresses": ["10.0.1.2"], "conditions": { "ready": true } },
                { "addresses": ["10.0.1.3"], "conditions": { "ready": ready } },
            ],
            "ports": [{ "name": "http", "port": 8080 }, { "name": "metrics", "port": 9090 }],
        });
        serde_json::from_value(slice).unwrap()
    }

    #[test]
    fn only_pods_that_are_ready_are_chosen_and_each_in_its_turn() {
        let ends = Ends::default();
        ends.change(|slices| drop(slices.insert("ns/web-1".to_owned(), ends_of(&slice(true)))));
        let chosen = |count: usize| -> BTreeSet<String> {
            let chosen = (0..count).filter_map(|_| ends.choose("ns/web", "http"));
            chosen.map(|address| address.to_string()).collect()
        };
        assert_eq!(
            chosen(4).into_iter().collect::<Vec<_>>(),
            ["10.0.1.2:8080", "10.0.1.3:8080"]
        );
        ends.change(|slices| drop(slices.insert("ns/web-1".to_owned(), ends_of(&slice(false)))));
        assert_eq!(chosen(4).into_iter().collect::<Vec<_>>(), ["10.0.1.2:8080"]);
        assert_eq!(
            (ends.choose("ns/web", "none"), ends.choose("other/web", "http")),
            (None, None)
        );
    }
}
