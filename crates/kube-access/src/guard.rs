//! Refuses all writes after the lease has run out; the check is made just before a request is sent.
//!
//! Reads are never refused. Requests for the lease itself do not use this check.

use std::task::{Context, Poll};

use child::warrant::Warrant;
use futures::future::{BoxFuture, ready};
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tower::Service;

/// A client that refuses writes once the warrant has run out.
pub(super) fn before(client: &Client, warrant: &Warrant) -> Client {
    let namespace = client.default_namespace().to_owned();
    let guarded = Guarded {
        client: client.clone(),
        warrant: warrant.clone(),
    };
    Client::new(guarded, namespace)
}

struct Guarded {
    client: Client,
    warrant: Warrant,
}

impl Service<Request<Body>> for Guarded {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
        if writes && let Err(error) = self.warrant.may_write() {
            return Box::pin(ready(Err(kube::Error::Service(error.into()))));
        }
        let client = self.client.clone();
        Box::pin(async move { client.send(request).await })
    }
}
