//! A cluster in memory that answers the requests of object patches, for tests of modules.
//!
//! The client and the patcher are those of the operator; only the API server is imitated. There are no controllers, no
//! admission and no schemas. Fields have an owner only if they were applied. Must never open a connection.

mod answers;
mod applied;
mod stored;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower::Service;

use answers::Asked;
use kube_access::Cluster;
use stored::Stored;
pub use stored::{Homeless, Resource};

/// The objects of an imitated cluster. Clones share them.
#[derive(Debug, Clone)]
pub struct Imitation(Arc<Mutex<Stored>>);

impl Imitation {
    /// A cluster that serves these resources, without objects.
    pub fn new(resources: Vec<Resource>) -> Self {
        Self(Arc::new(Mutex::new(Stored::new(resources))))
    }

    /// Serves these resources from now on; all objects stay.
    pub fn serve(&self, resources: Vec<Resource>) {
        self.stored().resources = resources;
    }

    /// Stores an object in the place of the one with its name. An object of a namespaced kind without a namespace
    /// belongs to `default`, as for kubectl.
    pub fn put(&self, object: Value) -> Result<(), Homeless> {
        self.stored().put(object)
    }

    /// Removes an object, which may be described by its names alone.
    pub fn remove(&self, object: &Value) -> Result<(), Homeless> {
        self.stored().remove(object)
    }

    /// The object with the names of the given one.
    pub fn find(&self, object: &Value) -> Result<Option<Value>, Homeless> {
        self.stored().find(object)
    }

    /// All objects of one kind.
    pub fn objects(&self, group: &str, kind: &str) -> Vec<Value> {
        self.stored().of_kind(group, kind)
    }

    /// All objects.
    pub fn all(&self) -> Vec<Value> {
        self.stored().objects.values().cloned().collect()
    }

    /// A client of this cluster.
    pub fn cluster(&self, namespace: &str) -> Cluster {
        Cluster::imitated(Client::new(Server(self.clone()), namespace), namespace)
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        // Nothing that is done under the lock leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Server(Imitation);

impl Service<Request<Body>> for Server {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let imitation = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let asked = Asked {
                method: &parts.method,
                path: parts.uri.path(),
                query: parts.uri.query().unwrap_or_default(),
                content_type: content_type.unwrap_or_default(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            let (status, answer) = imitation.stored().answer(asked);
            let response = Response::builder()
                .status(status)
                .header(CONTENT_TYPE, "application/json")
                .body(Body::from(answer.to_string().into_bytes()));
            response.map_err(kube::Error::HttpError)
        })
    }
}

#[cfg(test)]
mod tests;
