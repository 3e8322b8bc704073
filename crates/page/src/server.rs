//! The routes of the page. Each answers GET alone.
//!
//! Must never compose a view for each client: what is composed is kept for a moment, and shared.

mod of_module;

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, RETRY_AFTER, VARY,
};
use axum::http::{StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::BoxFuture;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::facts::{Comparison, Detail, Event, Fleet, Machinery, Operator};
use crate::kept::Kept;
use crate::render::{NotWritten, Template, Writer};
use crate::review::{self, Reviewer};
use crate::text::block;
use crate::view::graph::GraphView;
use crate::view::operator::OperatorView;
use crate::view::overview::Overview;
use crate::view::{Head, Place};
use crate::{assets, guard, live};

/// The largest number of streams of news at once.
const STREAMS: usize = 128;
const HTML: &str = "text/html; charset=utf-8";

/// Facts, or the reason why there are none.
pub type Answer<T> = BoxFuture<'static, Result<T, Unavailable>>;

/// Why there is no view.
#[derive(Debug, Error)]
pub enum Unavailable {
    /// The operator does not answer now.
    #[error("{0}")]
    Unanswered(String),
    /// There is no such module.
    #[error("there is no module '{0}'")]
    NoSuchModule(String),
    /// A view could not be read from the cluster.
    #[error("{0}")]
    Unread(String),
    /// A view could not be written.
    #[error(transparent)]
    NotWritten(#[from] NotWritten),
}

/// The role of this replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// It leads, and knows everything.
    Leads,
    /// No replica is known to lead, with the reason if there is one.
    Seeks(String),
    /// This replica leads.
    Standby(String),
}

/// The source of facts. A function asks anew each time.
pub struct Source {
    /// The facts of the overview.
    pub fleet: Box<dyn Fn() -> Answer<Fleet> + Send + Sync>,
    /// The facts about one module; none if there is no such module.
    pub module: Box<dyn Fn(String) -> Answer<Option<Detail>> + Send + Sync>,
    /// The Events about a module, the newest first.
    pub events: Box<dyn Fn(String) -> Answer<Vec<Event>> + Send + Sync>,
    /// The difference of two revisions of a module's release, the number of the first one before the other's.
    pub comparison: Box<dyn Fn(String, u32, u32) -> Answer<Comparison> + Send + Sync>,
    /// The facts of the operator's view.
    pub machinery: Box<dyn Fn() -> Answer<Machinery> + Send + Sync>,
    /// The role of this replica.
    pub role: Box<dyn Fn() -> Role + Send + Sync>,
    /// Facts that are known without a question: version, namespace, pod.
    pub known: Operator,
    /// Told whenever a fact may have changed.
    pub changed: watch::Receiver<()>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

/// A view as it is sent.
#[derive(Debug, Clone)]
struct Written {
    plain: Bytes,
    packed: Bytes,
    tag: Arc<str>,
}

#[derive(Debug)]
struct Inner {
    source: Source,
    fleet: Kept<Arc<Fleet>>,
    views: Kept<Written>,
    /// The views that are read from the cluster. News of the operator do not make them old.
    records: Kept<Written>,
    /// The turn to read one of these: each costs several requests and much memory.
    reading: Semaphore,
    /// Made for the first client: most operators never have one.
    writer: Arc<OnceLock<Writer>>,
    streams: Arc<Semaphore>,
    stop: CancellationToken,
}

type Page = Arc<Inner>;

/// The clients that are answered.
#[derive(Debug)]
pub enum Access {
    /// Each client that can reach loopback.
    Loopback,
    /// Clients whose token is permitted.
    Reviewed(Reviewer),
}

/// The routes. Streams end when the token is cancelled.
pub fn router(source: Source, access: Access, stop: CancellationToken) -> Router {
    let inner = Inner {
        fleet: Kept::new(source.changed.clone()),
        views: Kept::new(source.changed.clone()),
        records: Kept::new(watch::channel(()).1),
        reading: Semaphore::new(1),
        source,
        writer: Arc::default(),
        streams: Arc::new(Semaphore::new(STREAMS)),
        stop,
    };
    let routes = Router::new()
        .route("/", get(overview))
        .route("/graph", get(graph))
        .route("/graph/{name}", get(graph_of))
        .route("/modules/{name}", get(of_module::module))
        .route("/modules/{name}/events", get(of_module::events))
        .route("/modules/{name}/revisions/{from}/{to}", get(of_module::comparison))
        .route("/operator", get(operator))
        .route("/live", get(news))
        .route("/assets/{name}", get(asset))
        .fallback(missing)
        .with_state(Arc::new(inner));
    let guarded = match access {
        Access::Loopback => routes.layer(from_fn(guard::on_loopback)),
        Access::Reviewed(reviewer) => routes.layer(from_fn_with_state(Arc::new(reviewer), review::permitted)),
    };
    guarded.layer(from_fn(guard::headed))
}

async fn overview(State(page): State<Page>, headers: HeaderMap) -> Response {
    let making = async {
        let fleet = page.fleet().await?;
        page.written(Template::Overview, move || Overview::of(&fleet)).await
    };
    page.answer("overview", &headers, making).await
}

async fn graph(State(page): State<Page>, headers: HeaderMap) -> Response {
    let making = async {
        let fleet = page.fleet().await?;
        page.written(Template::Graph, move || GraphView::of(&fleet, None)).await
    };
    page.answer("graph", &headers, making).await
}

async fn graph_of(State(page): State<Page>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let making = async {
        let fleet = page.fleet().await?;
        let view = GraphView::of(&fleet, Some(&name)).ok_or_else(|| Unavailable::NoSuchModule(name.clone()))?;
        page.written(Template::Graph, move || view).await
    };
    page.answer(&format!("graph/{name}"), &headers, making).await
}

async fn operator(State(page): State<Page>, headers: HeaderMap) -> Response {
    let making = async {
        let (fleet, machinery) = (page.fleet().await?, (page.source.machinery)().await?);
        page.written(Template::Operator, move || OperatorView::of(&fleet, &machinery))
            .await
    };
    page.answer("operator", &headers, making).await
}

async fn news(State(page): State<Page>) -> Response {
    if let Ok(seat) = Arc::clone(&page.streams).try_acquire_owned() {
        live::stream(page.source.changed.clone(), page.stop.clone(), seat).into_response()
    } else {
        let text = "too many browsers listen for news, ask again later\n";
        (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "30")], text).into_response()
    }
}

async fn asset(Path(name): Path<String>) -> Response {
    match assets::named(&name) {
        Some(asset) => {
            let headers = [
                (CONTENT_TYPE, asset.kind),
                (CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ];
            (headers, asset.text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn missing(State(page): State<Page>, uri: Uri) -> Response {
    let name = uri.path().trim_start_matches('/');
    let title = "There is no such page";
    page.message(name, StatusCode::NOT_FOUND, title, "The menu leads to all views.")
}

/// A message in the place of a view.
#[derive(Debug, Serialize)]
struct Message<'a> {
    head: Head,
    title: &'a str,
    text: String,
}

impl Inner {
    async fn fleet(&self) -> Result<Arc<Fleet>, Unavailable> {
        self.fleet
            .get("", async { Ok(Arc::new((self.source.fleet)().await?)) })
            .await
    }

    async fn answer(
        &self,
        name: &str,
        headers: &HeaderMap,
        making: impl Future<Output = Result<Written, Unavailable>>,
    ) -> Response {
        self.answer_from(&self.views, name, headers, making).await
    }

    async fn answer_from(
        &self,
        views: &Kept<Written>,
        name: &str,
        headers: &HeaderMap,
        making: impl Future<Output = Result<Written, Unavailable>>,
    ) -> Response {
        match (self.source.role)() {
            Role::Leads => {}
            Role::Standby(leader) => {
                let text = format!("{leader} leads and knows the state of modules. `addon-operator page` leads to it.");
                return self.message(
                    name,
                    StatusCode::SERVICE_UNAVAILABLE,
                    "This replica is a standby",
                    &text,
                );
            }
            Role::Seeks(reason) => {
                return self.message(
                    name,
                    StatusCode::SERVICE_UNAVAILABLE,
                    "No leader is elected yet",
                    &reason,
                );
            }
        }
        match views.get(name, making).await {
            Ok(written) => written.answer(headers),
            Err(error @ Unavailable::NoSuchModule(_)) => self.message(
                name,
                StatusCode::NOT_FOUND,
                "There is no such module",
                &error.to_string(),
            ),
            Err(error @ Unavailable::Unanswered(_)) => {
                let title = "The operator does not answer now";
                self.message(name, StatusCode::SERVICE_UNAVAILABLE, title, &error.to_string())
            }
            Err(error @ Unavailable::Unread(_)) => self.message(
                name,
                StatusCode::BAD_GATEWAY,
                "The cluster does not tell this",
                &error.to_string(),
            ),
            Err(error @ Unavailable::NotWritten(_)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(error = %error, cause, "A view of the page could not be written");
                self.message(
                    name,
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "This view cannot be shown",
                    &error.to_string(),
                )
            }
        }
    }

    /// A message in the place of the view with this name.
    fn message(&self, name: &str, status: StatusCode, title: &str, text: &str) -> Response {
        let head = Head::of(&self.source.known, Place::Elsewhere, title);
        let root = "../".repeat(name.matches('/').count());
        let message = Message {
            head: Head {
                root,
                still: status == StatusCode::BAD_GATEWAY,
                ..head
            },
            title,
            text: block(text),
        };
        // Without a template only the title is left.
        let writer = self.writer.get_or_init(Writer::default);
        let body = writer.write(Template::Message, &message);
        let body = body.unwrap_or_else(|_| title.to_owned());
        (status, [(CONTENT_TYPE, HTML)], body).into_response()
    }

    /// Writes a view in a thread where it may take its time.
    async fn written<V: Serialize>(
        &self,
        template: Template,
        view: impl FnOnce() -> V + Send + 'static,
    ) -> Result<Written, Unavailable> {
        let writer = Arc::clone(&self.writer);
        let writing = move || {
            let html = writer.get_or_init(Writer::default).write(template, &view())?;
            Ok(Written::of(html))
        };
        blocking::run(writing).await
    }
}

impl Written {
    fn of(html: String) -> Self {
        let mut tag = String::from("\"");
        for byte in Sha256::digest(html.as_bytes()).iter().take(12) {
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        let packed = packer.write_all(html.as_bytes()).and_then(|()| packer.finish());
        Self {
            plain: html.into(),
            packed: packed.expect("writing to memory does not fail").into(),
            tag: tag.into(),
        }
    }

    fn answer(self, asked: &HeaderMap) -> Response {
        let says = |name, word: &str| {
            let value = asked.get(name).and_then(|value| value.to_str().ok());
            value.is_some_and(|value| value.split(',').any(|part| part.trim() == word))
        };
        let tag = (ETAG, self.tag.to_string());
        if says(IF_NONE_MATCH, &self.tag) {
            return (StatusCode::NOT_MODIFIED, [tag]).into_response();
        }
        let common = [
            (CONTENT_TYPE, HTML.to_owned()),
            (VARY, "accept-encoding".to_owned()),
            tag,
        ];
        if says(ACCEPT_ENCODING, "gzip") {
            (common, [(CONTENT_ENCODING, "gzip")], self.packed).into_response()
        } else {
            (common, self.plain).into_response()
        }
    }
}

#[cfg(test)]
mod tests;
