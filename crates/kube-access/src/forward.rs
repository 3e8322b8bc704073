//! Connections to a port on loopback in a pod, through the API server. The user needs the right to create `pods/portforward`.
//!
//! Must never decide which pod.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Cluster;
use crate::pods::PodError;

impl Cluster {
    /// A connection to a port in a pod.
    pub async fn forward(
        &self,
        pod: &str,
        port: u16,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, PodError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let attempt = self.attempt("create", "pods/portforward", pod);
        let mut forwarder = self.ask(attempt, pods.portforward(pod, &[port])).await?;
        let stream = forwarder.take_stream(port);
        Ok(stream.expect("the port was asked for, and is taken once"))
    }

    /// The port with this name among the ports that the containers of a pod declare; none if no container declares it.
    pub async fn port_named(&self, pod: &str, name: &str) -> Result<Option<u16>, PodError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let pod = self.ask(self.attempt("get", "pods", pod), pods.get(pod)).await?;
        let containers = pod.spec.into_iter().flat_map(|spec| spec.containers);
        let mut ports = containers.flat_map(|container| container.ports.unwrap_or_default());
        let found = ports.find(|port| port.name.as_deref() == Some(name));
        Ok(found.and_then(|port| port.container_port.try_into().ok()))
    }
}
