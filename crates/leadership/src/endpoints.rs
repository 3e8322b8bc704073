//! Services without a selector: the operator writes their endpoints, which lead to the leader's pod.
//!
//! Newer API servers and all nodes read slices; an API server before 1.33 that calls pods itself reads the older
//! `Endpoints`. So both are written. Nothing is written if both are right. Never decides who leads, and never changes a
//! Service with a selector.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Service, ServicePort,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort as SlicePort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt as _};
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde_json::{Value, json};

const OF_SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const US: &str = "addon-operator";
/// The controller that makes slices for Services with a selector, and does not delete them when the selector is
/// removed.
const CHOOSER: &str = "endpointslice-controller.k8s.io";
/// The label that keeps a controller from copying the `Endpoints` into another slice.
const NO_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
const SLICES: &str = "endpointslices";
const ENDPOINTS: &str = "endpoints";

/// The Service, and the pod to which it leads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lead<'a> {
    pub service: &'a str,
    pub pod: &'a str,
    pub address: IpAddr,
}

impl Lead<'_> {
    /// The name of the slice. The address family of a slice cannot change, so each family has its own.
    fn slice(&self) -> String {
        let family = if self.address.is_ipv4() { "" } else { "-v6" };
        format!("{}-leader{family}", self.service)
    }

    fn endpoints(&self, namespace: &str) -> Vec<Endpoint> {
        vec![Endpoint {
            addresses: vec![self.address.to_string()],
            conditions: Some(EndpointConditions {
                ready: Some(true),
                serving: Some(true),
                terminating: Some(false),
            }),
            target_ref: Some(self.target(namespace)),
            ..Endpoint::default()
        }]
    }

    fn subsets(&self, namespace: &str, ports: &[(String, i32)]) -> Vec<EndpointSubset> {
        let ports = ports.iter().map(|(name, port)| EndpointPort {
            name: (!name.is_empty()).then(|| name.clone()),
            port: *port,
            protocol: Some("TCP".to_owned()),
            ..EndpointPort::default()
        });
        vec![EndpointSubset {
            addresses: Some(vec![EndpointAddress {
                ip: self.address.to_string(),
                target_ref: Some(self.target(namespace)),
                ..EndpointAddress::default()
            }]),
            ports: Some(ports.collect()),
            ..EndpointSubset::default()
        }]
    }

    fn target(&self, namespace: &str) -> ObjectReference {
        ObjectReference {
            kind: Some("Pod".to_owned()),
            name: Some(self.pod.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectReference::default()
        }
    }
}

/// Makes the Service lead only to this pod. Returns whether anything was written.
pub(crate) async fn lead_here(cluster: &Cluster, lead: Lead<'_>) -> Result<bool, RequestError> {
    let Some(service) = led(cluster, lead.service).await? else {
        return Ok(false);
    };
    let ports = ports(&service);
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: lead.service.to_owned(),
        uid: service.metadata.uid.unwrap_or_default(),
        ..OwnerReference::default()
    };
    let wrote = write_slice(cluster, lead, &ports, &owner).await?;
    let wrote = write_endpoints(cluster, lead, &ports, &owner).await? || wrote;
    Ok(remove_chosen(cluster, lead.service).await? || wrote)
}

/// Makes the Service lead nowhere, if it leads to this pod. Returns whether anything was written.
pub(crate) async fn lead_away(cluster: &Cluster, lead: Lead<'_>) -> Result<bool, RequestError> {
    let (slices, name) = (slices(cluster), lead.slice());
    let attempt = |verb| cluster.attempt(verb, SLICES, &name);
    let Some(slice) = cluster.ask(attempt("get"), slices.get_opt(&name)).await? else {
        return Ok(false);
    };
    let here = |endpoint: &Endpoint| {
        let target = endpoint.target_ref.as_ref().and_then(|target| target.name.as_deref());
        target == Some(lead.pod)
    };
    if !slice.endpoints.iter().any(here) {
        return Ok(false);
    }
    // The patch is refused if the slice was written since.
    let version = slice.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "endpoints": []});
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    cluster
        .ask(attempt("patch"), slices.patch(&name, &params, &patch))
        .await?;
    let (all, name) = (endpoints(cluster), lead.service);
    let attempt = |verb| cluster.attempt(verb, ENDPOINTS, name);
    if let Some(found) = cluster.ask(attempt("get"), all.get_opt(name)).await? {
        let patch = json!({"metadata": {"resourceVersion": found.metadata.resource_version}, "subsets": null});
        let patch = Patch::Merge(patch);
        cluster.ask(attempt("patch"), all.patch(name, &params, &patch)).await?;
    }
    Ok(true)
}

/// The Service; `None` if it has a selector or is an external name.
async fn led(cluster: &Cluster, name: &str) -> Result<Option<Service>, RequestError> {
    let api: Api<Service> = Api::namespaced(cluster.open(), cluster.namespace());
    let service = cluster
        .ask(cluster.attempt("get", "services", name), api.get(name))
        .await?;
    let leads_by_itself = service.spec.as_ref().is_some_and(|spec| {
        let chooses = spec.selector.as_ref().is_some_and(|selector| !selector.is_empty());
        chooses || spec.type_.as_deref() == Some("ExternalName")
    });
    Ok((!leads_by_itself).then_some(service))
}

async fn write_slice(
    cluster: &Cluster,
    lead: Lead<'_>,
    ports: &[(String, i32)],
    owner: &OwnerReference,
) -> Result<bool, RequestError> {
    let (api, name) = (slices(cluster), lead.slice());
    let attempt = |verb| cluster.attempt(verb, SLICES, &name);
    let labels = [(OF_SERVICE, lead.service), (MANAGED_BY, US)];
    let ports = ports.iter().map(|(name, port)| SlicePort {
        name: Some(name.clone()),
        port: Some(*port),
        protocol: Some("TCP".to_owned()),
        ..SlicePort::default()
    });
    let wanted = EndpointSlice {
        metadata: meta(&name, &labels, owner),
        address_type: if lead.address.is_ipv4() { "IPv4" } else { "IPv6" }.to_owned(),
        endpoints: lead.endpoints(cluster.namespace()),
        ports: Some(ports.collect()),
    };
    let Some(found) = cluster.ask(attempt("get"), api.get_opt(&name)).await? else {
        let params = PostParams::default();
        cluster.ask(attempt("create"), api.create(&params, &wanted)).await?;
        return Ok(true);
    };
    if found.endpoints == wanted.endpoints
        && found.ports == wanted.ports
        && is_marked(&found.metadata, &wanted.metadata)
    {
        return Ok(false);
    }
    let patch = json!({
        "metadata": marks(&wanted.metadata),
        "endpoints": wanted.endpoints,
        "ports": wanted.ports,
    });
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    cluster.ask(attempt("patch"), api.patch(&name, &params, &patch)).await?;
    Ok(true)
}

async fn write_endpoints(
    cluster: &Cluster,
    lead: Lead<'_>,
    ports: &[(String, i32)],
    owner: &OwnerReference,
) -> Result<bool, RequestError> {
    let (api, name) = (endpoints(cluster), lead.service);
    let attempt = |verb| cluster.attempt(verb, ENDPOINTS, name);
    let wanted = Endpoints {
        metadata: meta(name, &[(NO_MIRROR, "true")], owner),
        subsets: Some(lead.subsets(cluster.namespace(), ports)),
    };
    let Some(found) = cluster.ask(attempt("get"), api.get_opt(name)).await? else {
        let params = PostParams::default();
        let made = cluster.ask(attempt("create"), api.create(&params, &wanted)).await;
        return match made {
            // A future API server may no longer serve `Endpoints`; then no client reads them.
            Err(error) if error.is_not_found() => Ok(false),
            made => made.map(|_| true),
        };
    };
    if found.subsets == wanted.subsets && is_marked(&found.metadata, &wanted.metadata) {
        return Ok(false);
    }
    let patch = json!({"metadata": marks(&wanted.metadata), "subsets": wanted.subsets});
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    cluster.ask(attempt("patch"), api.patch(name, &params, &patch)).await?;
    Ok(true)
}

/// Deletes the slices from a time when the Service had a selector, because no controller does.
async fn remove_chosen(cluster: &Cluster, service: &str) -> Result<bool, RequestError> {
    let api = slices(cluster);
    let chosen = ListParams::default().labels(&format!("{OF_SERVICE}={service},{MANAGED_BY}={CHOOSER}"));
    let found = cluster
        .ask(cluster.attempt("list", SLICES, ""), api.list_metadata(&chosen))
        .await?;
    let params = DeleteParams::default();
    for slice in &found.items {
        let name = slice.name_any();
        let attempt = cluster.attempt("delete", SLICES, &name);
        match cluster.ask(attempt, api.delete(&name, &params)).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(!found.items.is_empty())
}

fn slices(cluster: &Cluster) -> Api<EndpointSlice> {
    Api::namespaced(cluster.open(), cluster.namespace())
}

fn endpoints(cluster: &Cluster) -> Api<Endpoints> {
    Api::namespaced(cluster.open(), cluster.namespace())
}

/// The names and numbers of the Service's ports on the pod. A port that names the pod's port is left out, because it
/// only makes sense with a selector.
fn ports(service: &Service) -> Vec<(String, i32)> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let number = |port: &ServicePort| match &port.target_port {
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(_)) => None,
        None => Some(port.port),
    };
    ports
        .filter_map(|port| Some((port.name.clone().unwrap_or_default(), number(port)?)))
        .collect()
}

fn meta(name: &str, labels: &[(&str, &str)], owner: &OwnerReference) -> ObjectMeta {
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels.collect()),
        owner_references: Some(vec![owner.clone()]),
        ..ObjectMeta::default()
    }
}

/// The labels and owners, which are the operator's part of the metadata.
fn marks(wanted: &ObjectMeta) -> Value {
    json!({"labels": wanted.labels, "ownerReferences": wanted.owner_references})
}

fn is_marked(found: &ObjectMeta, wanted: &ObjectMeta) -> bool {
    let labels = found.labels.clone().unwrap_or_default();
    let mut ours = wanted.labels.iter().flatten();
    ours.all(|(key, value)| labels.get(key) == Some(value)) && found.owner_references == wanted.owner_references
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_a_slice_of_its_own() {
        for (address, name) in [("10.0.0.7", "svc-leader"), ("fd00::7", "svc-leader-v6")] {
            let lead = Lead {
                service: "svc",
                pod: "a",
                address: address.parse().unwrap(),
            };
            assert_eq!(lead.slice(), name);
            assert_eq!(lead.endpoints("ns")[0].addresses, [address]);
        }
    }

    #[test]
    fn ports_are_those_of_our_side() {
        let service: Service = serde_json::from_value(json!({"spec": {"ports": [
            {"name": "one", "port": 443, "targetPort": 9680},
            {"name": "two", "port": 443, "targetPort": "named"},
            {"port": 80},
        ]}}))
        .unwrap();
        assert_eq!(ports(&service), [("one".to_owned(), 9680), (String::new(), 80)]);
    }
}
