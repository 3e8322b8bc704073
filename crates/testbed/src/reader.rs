//! Reads objects over a connection that stays open, for checks that are repeated often.
//!
//! A kubectl process for each check would use more of the machine than the programs under test. The reader acts as the
//! admin. It writes nothing except the namespaces that tests own, and objects that tests apply hundreds of times. All else tests write with
//! kubectl, as people do.

use std::sync::mpsc;
use std::time::Duration;

use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::http::request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::plane::{ControlPlane, User};

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("cannot make a client of the API server")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("nothing is known of the kind {0}: add it to the table of kinds, or ask kubectl")]
    Kind(String),
    #[error("{path} is no path")]
    Path { path: String, source: hyper::http::Error },
    #[error("a request to {path} failed")]
    Refused { path: String, source: Box<kube::Error> },
    #[error("no answer within {} s to {path}", PATIENCE.as_secs())]
    Silence { path: String },
    #[error("cannot understand the answer to {path}")]
    Parse { path: String, source: serde_json::Error },
    #[error("the answer to {path} is no list")]
    NoList { path: String },
    #[error("there is nothing at {path}")]
    Absent { path: String },
}

/// A selection of the objects of a kind.
#[derive(Clone, Copy, Debug)]
pub enum Only<'a> {
    All,
    /// A label selector in kubectl's form, as in `app=crowd,stage!=old`.
    Labels(&'a str),
    /// A field selector, as in `type=helm.sh/release.v1`.
    Fields(&'a str),
}

/// The same limit that kubectl gets in checks of a control plane that may be down.
const PATIENCE: Duration = Duration::from_secs(10);

/// The API path of each kind that tests read, by kubectl's name for it.
const KINDS: [(&str, &str, &str); 22] = [
    (
        "aerospikecluster",
        "aerospikeclusters",
        "/apis/aerospike.dzolotov.tech/v1alpha1",
    ),
    ("bundle", "bundles", "/apis/operator.werf.dev/v1"),
    ("configmap", "configmaps", "/api/v1"),
    ("copyratorrule", "copyrator", "/apis/flant.com/v1"),
    ("daemonset", "daemonsets", "/apis/apps/v1"),
    ("deployment", "deployments", "/apis/apps/v1"),
    ("endpointslice", "endpointslices", "/apis/discovery.k8s.io/v1"),
    ("event", "events", "/api/v1"),
    ("job", "jobs", "/apis/batch/v1"),
    ("lease", "leases", "/apis/coordination.k8s.io/v1"),
    ("module", "modules", "/apis/addon-operator.io/v1"),
    ("operator", "operators", "/apis/addon-operator.io/v1"),
    ("persistentvolumeclaim", "persistentvolumeclaims", "/api/v1"),
    ("pod", "pods", "/api/v1"),
    ("poddisruptionbudget", "poddisruptionbudgets", "/apis/policy/v1"),
    ("replicaset", "replicasets", "/apis/apps/v1"),
    ("role", "roles", "/apis/rbac.authorization.k8s.io/v1"),
    ("rolebinding", "rolebindings", "/apis/rbac.authorization.k8s.io/v1"),
    ("secret", "secrets", "/api/v1"),
    ("service", "services", "/api/v1"),
    ("serviceaccount", "serviceaccounts", "/api/v1"),
    ("statefulset", "statefulsets", "/apis/apps/v1"),
];

/// A reader of one namespace's objects, which can be sent to another thread.
#[derive(Clone)]
pub struct Objects {
    client: Client,
    runtime: Handle,
    namespace: String,
}

/// A client, and the runtime thread of its connections.
pub(crate) struct Reader {
    client: Client,
    handle: Handle,
    /// There until the reader is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Its owner may be inside another runtime, which must not be blocked.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Reader")
    }
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Objects of {}", self.namespace)
    }
}

impl Reader {
    pub(crate) fn connect(plane: &ControlPlane) -> Result<Self, ReadError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| ReadError::Client(source);
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("testbed-reader").enable_all();
        let runtime = runtime.build().map_err(|error| failed(error.into()))?;
        let file = Kubeconfig::read_from(plane.kubeconfig(User::Admin)).map_err(|error| failed(error.into()))?;
        let (tell, told) = mpsc::channel();
        runtime.spawn(async move {
            let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
            let config = config.map_err(|error| failed(error.into()));
            let client = config.and_then(|config| Client::try_from(config).map_err(|error| failed(error.into())));
            let _ = tell.send(client);
        });
        let client = told.recv().map_err(|error| failed(error.into()))??;
        Ok(Self {
            client,
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    pub(crate) fn of(&self, namespace: &str) -> Objects {
        Objects {
            client: self.client.clone(),
            runtime: self.handle.clone(),
            namespace: namespace.to_owned(),
        }
    }

    /// The body of an answer; `None` for 404.
    pub(crate) fn text(&self, path: &str) -> Result<Option<String>, ReadError> {
        let request = Request::get(path).header(ACCEPT, "*/*");
        self.ask(path, request, Vec::new())
    }

    pub(crate) fn create_namespace(&self, name: &str) -> Result<(), ReadError> {
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        let request = Request::post(NAMESPACES).header(CONTENT_TYPE, JSON);
        self.ask(NAMESPACES, request, body.to_string().into_bytes()).map(drop)
    }

    /// Begins the deletion of a namespace, and does not wait for its end.
    pub(crate) fn delete_namespace(&self, name: &str) -> Result<(), ReadError> {
        let path = format!("{NAMESPACES}/{name}");
        self.ask(&path, Request::delete(&path), Vec::new()).map(drop)
    }

    fn ask(&self, path: &str, request: request::Builder, body: Vec<u8>) -> Result<Option<String>, ReadError> {
        ask(&self.client, &self.handle, path, request, body)
    }
}

impl Objects {
    /// An object of a kind such as `configmap`, if it exists.
    pub fn object(&self, kind: &str, name: &str) -> Result<Option<Value>, ReadError> {
        let path = format!("{}/{name}", self.address(kind)?);
        self.read(&path, JSON)
    }

    /// The objects of a kind.
    pub fn objects(&self, kind: &str, only: Only<'_>) -> Result<Vec<Value>, ReadError> {
        self.list(kind, only, JSON)
    }

    /// The `metadata` of the objects of a kind, for objects that are large.
    pub fn metadata(&self, kind: &str, only: Only<'_>) -> Result<Vec<Value>, ReadError> {
        self.list(kind, only, METADATA)
    }

    /// Creates an object of a kind, or changes it to the manifest, as `Kubectl::apply` does.
    pub fn apply(&self, kind: &str, manifest: &Value) -> Result<(), ReadError> {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{}/{name}", self.address(kind)?);
        let asked = format!("{path}?fieldManager=kubectl&force=true&fieldValidation=Strict");
        let request = Request::patch(&asked).header(CONTENT_TYPE, APPLY);
        let applied = ask(
            &self.client,
            &self.runtime,
            &asked,
            request,
            manifest.to_string().into_bytes(),
        )?;
        applied.map(drop).ok_or(ReadError::Absent { path })
    }

    fn list(&self, kind: &str, only: Only<'_>, accepted: &str) -> Result<Vec<Value>, ReadError> {
        let path = self.address(kind)?;
        let path = match only {
            Only::All => path,
            Only::Labels(selector) => format!("{path}?labelSelector={selector}"),
            Only::Fields(selector) => format!("{path}?fieldSelector={selector}"),
        };
        let mut list = self.read(&path, accepted)?.unwrap_or_default();
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            // An empty list of metadata has null in the place of its items.
            Value::Null if list["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => Ok(Vec::new()),
            _ => Err(ReadError::NoList { path }),
        }
    }

    fn read(&self, path: &str, accepted: &str) -> Result<Option<Value>, ReadError> {
        let request = Request::get(path).header(ACCEPT, accepted);
        let text = ask(&self.client, &self.runtime, path, request, Vec::new())?;
        let read = text.map(|text| serde_json::from_str(&text)).transpose();
        read.map_err(|source| ReadError::Parse {
            path: path.to_owned(),
            source,
        })
    }

    fn address(&self, kind: &str) -> Result<String, ReadError> {
        let known = KINDS.iter().find(|(one, many, _)| [*one, *many].contains(&kind));
        let (_, many, group) = known.ok_or_else(|| ReadError::Kind(kind.to_owned()))?;
        Ok(format!("{group}/namespaces/{}/{many}", self.namespace))
    }
}

/// The body of an answer; `None` for 404. The request runs in the reader's own runtime: the caller may be inside
/// another one, which must not be blocked.
fn ask(
    client: &Client,
    runtime: &Handle,
    path: &str,
    request: request::Builder,
    body: Vec<u8>,
) -> Result<Option<String>, ReadError> {
    let request = request.body(body).map_err(|source| ReadError::Path {
        path: path.to_owned(),
        source,
    })?;
    let client = client.clone();
    let (tell, told) = mpsc::channel();
    runtime.spawn(async move {
        // After a time-out the receiver is gone.
        let _ = tell.send(client.request_text(request).await);
    });
    let path = || path.to_owned();
    match told.recv_timeout(PATIENCE) {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
        Ok(Err(source)) => Err(ReadError::Refused {
            path: path(),
            source: Box::new(source),
        }),
        Err(_) => Err(ReadError::Silence { path: path() }),
    }
}

const JSON: &str = "application/json";
/// YAML, of which JSON is a part.
const APPLY: &str = "application/apply-patch+yaml";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const NAMESPACES: &str = "/api/v1/namespaces";
