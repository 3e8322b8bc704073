//! Counts the requests of the operator's client to the API server, in a layer around the client that neither changes
//! nor delays a request.
//!
//! Names of objects must never become labels, because a cluster has too many of them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::http::{Request, Response};
use futures::future::BoxFuture;
use tower::{Layer, Service};

use super::Meters;
use super::table::cluster;

/// The label of the operator's only client.
const COMPONENT: &str = "main";
/// The label value in place of a status, if there was no answer.
const NO_ANSWER: &str = "<error>";

/// How long a request waited in the rate limit's queue. It is passed as an extension of the request and counts as part
/// of its duration.
#[derive(Debug, Clone, Copy)]
pub struct Waited(pub Duration);

/// The layer for the builder of a client.
#[derive(Debug, Clone)]
pub struct Requests {
    to: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    meters: Arc<Meters>,
    /// The server's URL without a trailing slash.
    address: String,
    /// The server's host and port.
    host: String,
}

impl Requests {
    /// Counts requests to this server, as in `https://10.0.0.1:6443`.
    pub fn to(server: &str, meters: Arc<Meters>) -> Self {
        let address = server.trim_end_matches('/').to_owned();
        let behind_scheme = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
        let host = behind_scheme.split('/').next().unwrap_or_default().to_owned();
        Self {
            to: Arc::new(Server { meters, address, host }),
        }
    }
}

impl<S> Layer<S> for Requests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            to: Arc::clone(&self.to),
        }
    }
}

/// A client whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
    to: Arc<Server>,
}

impl<S, B, A> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let verb = request.method().clone();
        let url = format!("{}{}", self.to.address, template(request.uri().path()));
        let to = Arc::clone(&self.to);
        to.meters.requests.note();
        let waited = request
            .extensions()
            .get::<Waited>()
            .map_or(Duration::ZERO, |waited| waited.0);
        let began = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().map(Response::status);
            let code = code.as_ref().map_or(NO_ANSWER, |code| code.as_str());
            let labels = [COMPONENT, code, verb.as_str(), &to.host];
            to.meters.add(&cluster::REQUEST_RESULT, labels, 1.0);
            let labels = [verb.as_str(), url.as_str()];
            to.meters
                .observe(&cluster::REQUEST_SECONDS, labels, waited + began.elapsed());
            answer
        })
    }
}

/// The path with placeholders for names, so that the number of labels is limited by the server's resources.
fn template(path: &str) -> String {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (root, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => (format!("/api/{version}"), rest),
        ["apis", group, version, rest @ ..] => (format!("/apis/{group}/{version}"), rest),
        _ => return path.to_owned(),
    };
    match rest {
        [] => root,
        ["namespaces", _, "status" | "finalize"] => {
            let subresource = rest[2];
            format!("{root}/namespaces/{{name}}/{subresource}")
        }
        ["namespaces", _, resource, below @ ..] => {
            format!("{root}/namespaces/{{namespace}}/{resource}{}", named(below))
        }
        [resource, below @ ..] => format!("{root}/{resource}{}", named(below)),
    }
}

/// The part of a path after the resource: a name, and a subresource.
fn named(below: &[&str]) -> String {
    match below {
        [] => String::new(),
        [_] => "/{name}".to_owned(),
        [_, subresource, ..] => format!("/{{name}}/{subresource}"),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use futures::future::{Ready, ready};

    use super::*;

    #[test]
    fn names_of_objects_are_no_labels() {
        for (path, wanted) in [
            ("/api/v1/namespaces", "/api/v1/namespaces"),
            ("/api/v1/namespaces/a", "/api/v1/namespaces/{name}"),
            ("/api/v1/namespaces/a/finalize", "/api/v1/namespaces/{name}/finalize"),
            ("/api/v1/configmaps", "/api/v1/configmaps"),
            (
                "/api/v1/namespaces/a/configmaps",
                "/api/v1/namespaces/{namespace}/configmaps",
            ),
            (
                "/api/v1/namespaces/a/configmaps/b",
                "/api/v1/namespaces/{namespace}/configmaps/{name}",
            ),
            (
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            ),
            ("/apis/apps/v1/deployments", "/apis/apps/v1/deployments"),
            ("/apis/a.b/v1/widgets/c/status", "/apis/a.b/v1/widgets/{name}/status"),
            ("/apis", "/apis"),
            ("/api/v1", "/api/v1"),
            ("/apis/apps/v1", "/apis/apps/v1"),
            ("/version", "/version"),
            ("/", "/"),
        ] {
            assert_eq!(template(path), wanted);
        }
    }

    /// A client with a fixed answer.
    struct Answers(Result<StatusCode, ()>);

    impl Service<Request<()>> for Answers {
        type Response = Response<()>;
        type Error = ();
        type Future = Ready<Result<Response<()>, ()>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            let answer = self.0;
            ready(answer.map(|status| {
                let mut response = Response::new(());
                *response.status_mut() = status;
                response
            }))
        }
    }

    #[tokio::test]
    async fn requests_are_counted_by_their_end() {
        let meters = Arc::new(Meters::new("own_"));
        let layer = Requests::to("https://10.0.0.1:6443/", Arc::clone(&meters));
        for answer in [Ok(StatusCode::OK), Ok(StatusCode::CONFLICT), Err(())] {
            let request = Request::put("/api/v1/namespaces/a/configmaps/b?fieldManager=us")
                .body(())
                .unwrap();
            let _ = layer.layer(Answers(answer)).call(request).await;
        }
        let text = meters.render(None);
        for code in ["200", "409", "<error>"] {
            let line = format!(
                "own_kubernetes_client_request_result_total{{code=\"{code}\",component=\"main\",host=\"10.0.0.1:6443\",method=\"PUT\"}} 1\n"
            );
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        let url = "https://10.0.0.1:6443/api/v1/namespaces/{namespace}/configmaps/{name}";
        let line =
            format!("own_kubernetes_client_rate_limiter_latency_seconds_count{{url=\"{url}\",verb=\"PUT\"}} 3\n");
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }

    #[tokio::test]
    async fn the_client_takes_the_layer() {
        let closed = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://{}", listener.local_addr().unwrap())
        };
        let meters = Arc::new(Meters::new("own_"));
        let mut config = kube::Config::new(closed.parse().unwrap());
        config.default_retry = false;
        let builder = kube::client::ClientBuilder::try_from(config).unwrap();
        let client = builder.with_layer(&Requests::to(&closed, Arc::clone(&meters))).build();
        client.apiserver_version().await.unwrap_err();
        let host = closed.trim_start_matches("http://");
        let line = format!(
            "own_kubernetes_client_request_result_total{{code=\"<error>\",component=\"main\",host=\"{host}\",method=\"GET\"}} 1\n"
        );
        let text = meters.render(None);
        assert!(text.contains(&line), "{line} is not in\n{text}");
        assert!(text.contains(&format!("url=\"{closed}/version\"")), "{text}");
    }
}
