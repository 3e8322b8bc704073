//! The stack of services that carries requests to the API server.
//!
//! It is the client library's own but for one thing: there, connections gather small writes, so that a request with a body
//! waits now and then for the server's acknowledgement of its head, which the kernel sends 40 ms later. Must never decide
//! about a request: what is asked, how long that may take and how fast requests may follow each other is told elsewhere.

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt as _, DynBody};
use tower::util::BoxService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};
use tower_http::decompression::{DecompressionBody, DecompressionLayer};

/// Takes requests and gives answers, whatever lies between.
type Stack = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// The stack for this cluster. To one behind a proxy it is the library's own in whole.
pub(super) fn builder(config: Config) -> kube::Result<ClientBuilder<Stack>> {
    if config.proxy_url.is_some() {
        return ClientBuilder::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let service = ServiceBuilder::new()
        .map_response(boxed)
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Client::builder(TokioExecutor::new()).build(connector));
    Ok(ClientBuilder::new(service.boxed(), config.default_namespace.clone()))
}

fn boxed(response: Response<DecompressionBody<Incoming>>) -> Response<Box<DynBody>> {
    response.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
}
