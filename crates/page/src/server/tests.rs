//! Real requests to the routes, with sample facts of several sizes.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::{ALLOW, CONTENT_SECURITY_POLICY, HOST};
use futures::StreamExt as _;
use tower::ServiceExt as _;

use super::*;
use crate::facts;
use crate::render::TEMPLATES;

#[path = "../../examples/show/sample.rs"]
mod sample;
#[path = "tests/well_formed.rs"]
mod well_formed;

use well_formed::{check, texts};

/// The largest size of style and script together.
const ASSETS: usize = 200 << 10;

struct Stage {
    router: Router,
    changes: watch::Sender<()>,
    stop: CancellationToken,
}

impl Stage {
    fn of(fleet: Fleet, role: Role) -> Self {
        let (changes, changed) = watch::channel(());
        let known = fleet.operator.clone();
        let machinery = sample::machinery(&fleet);
        let source = Source {
            fleet: Box::new(move || {
                let fleet = fleet.clone();
                Box::pin(async move { Ok(fleet) })
            }),
            module: Box::new(|_| Box::pin(async { Ok(Some(sample::detail())) })),
            events: Box::new(|_| Box::pin(async { Ok(sample::events()) })),
            comparison: Box::new(|_, from, to| {
                Box::pin(async move {
                    if from == 1 {
                        return Err(Unavailable::Unread("no record of revision 1".to_owned()));
                    }
                    Ok(sample::comparison(from, to))
                })
            }),
            machinery: Box::new(move || {
                let machinery = machinery.clone();
                Box::pin(async move { Ok(machinery) })
            }),
            role: Box::new(move || role.clone()),
            known,
            changed,
        };
        let stop = CancellationToken::new();
        Self {
            router: router(source, Access::Loopback, stop.clone()),
            changes,
            stop,
        }
    }

    async fn send(&self, request: Request) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = Request::get(path)
            .header(HOST, "localhost:9655")
            .body(Body::empty())
            .unwrap();
        let answer = self.send(request).await;
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 64 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn well_formed(&self, path: &str) -> String {
        let (status, html) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {html}");
        check(&html).unwrap_or_else(|problem| panic!("{path}: {problem}"));
        html
    }
}

#[tokio::test]
async fn each_view_is_written_at_each_size() {
    for size in [0, 6, 200, 1000] {
        let stage = Stage::of(sample::fleet(size), Role::Leads);
        for path in ["/", "/graph", "/operator"] {
            stage.well_formed(path).await;
        }
        let overview = stage.well_formed("/").await;
        assert_eq!(overview.matches("<tr data-key").count(), size);
        assert!(overview.len() < 1_200_000, "{} bytes", overview.len());
        if size > 0 {
            let module = stage.well_formed("/modules/cert-manager").await;
            assert!(module.contains("web-settings"));
            stage.well_formed("/graph/cert-manager").await;
            let events = stage.well_formed("/modules/cert-manager/events").await;
            assert!(events.contains("ScalingReplicaSet") && !events.contains("<img"));
            let compared = stage.well_formed("/modules/cert-manager/revisions/8/9").await;
            assert!(compared.contains("spec.replicas") && !compared.contains("<img"));
        }
    }
}

#[tokio::test]
async fn hostile_texts_are_shown_as_text() {
    let fleet = sample::hostile();
    let stage = Stage::of(fleet.clone(), Role::Leads);
    let overview = stage.well_formed("/").await;
    let names: Vec<String> = fleet
        .modules
        .iter()
        .map(|module| crate::text::row(&module.name))
        .collect();
    for name in &names {
        assert!(texts(&overview).iter().any(|text| text == name), "{name} is not shown");
    }
    assert!(!overview.contains("<script>alert") && !overview.contains("<img"));
    assert!(!overview.contains('\u{202e}'));
    assert!(
        overview.len() < 100_000,
        "a text of a megabyte is cut: {}",
        overview.len()
    );
    for module in &fleet.modules {
        let path = format!("/modules/{}", crate::text::encoded(&module.name));
        let html = stage.well_formed(&path).await;
        assert!(!html.contains("<script>alert") && !html.contains("<img"));
        stage
            .well_formed(&format!("/graph/{}", crate::text::encoded(&module.name)))
            .await;
    }
    let operator = stage.well_formed("/operator").await;
    assert!(!operator.contains("<script>alert"));
}

#[test]
fn no_template_writes_a_text_without_escaping_it() {
    for (name, text) in TEMPLATES {
        assert!(!text.contains("{{{") && !text.contains("{{&"), "{name}");
        let is_inline = |word: &str| word.starts_with("style=") || word.starts_with("on") && word.contains('=');
        let found: Vec<&str> = text.split_whitespace().filter(|word| is_inline(word)).collect();
        assert_eq!(found, [""; 0], "{name} has a style or a handler in an attribute");
    }
}

#[test]
fn all_assets_are_small() {
    let size = assets::style().text.len() + assets::script().text.len();
    assert!(size < ASSETS, "{size} bytes");
    assert!(!assets::style().text.contains("url(") && !assets::style().text.contains("@import"));
}

#[tokio::test]
async fn each_answer_is_guarded_and_only_loopback_may_ask() {
    let stage = Stage::of(sample::fleet(6), Role::Leads);
    for path in [
        "/",
        "/nowhere",
        "/live",
        "/modules/absent",
        &format!("/assets/{}", assets::style().name),
    ] {
        let request = Request::get(path)
            .header(HOST, "127.0.0.1")
            .body(Body::empty())
            .unwrap();
        let answer = stage.send(request).await;
        assert_eq!(answer.headers()[CONTENT_SECURITY_POLICY], guard::POLICY, "{path}");
        let is_asset = path.starts_with("/assets");
        let cached = answer.headers()[CACHE_CONTROL].to_str().unwrap().to_owned();
        assert_eq!(cached.contains("immutable"), is_asset, "{path}: {cached}");
        let request = Request::get(path)
            .header(HOST, "evil.example")
            .body(Body::empty())
            .unwrap();
        let answer = stage.send(request).await;
        assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST, "{path}");
    }
}

#[tokio::test]
async fn nothing_but_get_is_answered() {
    let stage = Stage::of(sample::fleet(6), Role::Leads);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let request = Request::builder()
            .method(method)
            .uri("/")
            .header(HOST, "localhost")
            .body(Body::empty())
            .unwrap();
        let answer = stage.send(request).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers()[ALLOW], "GET,HEAD");
    }
}

#[tokio::test]
async fn a_view_that_the_client_has_is_not_sent_again() {
    let stage = Stage::of(sample::fleet(6), Role::Leads);
    let ask = |name, value: &str| {
        Request::get("/")
            .header(HOST, "localhost")
            .header(name, value)
            .body(Body::empty())
            .unwrap()
    };
    let packed = stage.send(ask(ACCEPT_ENCODING, "br, gzip")).await;
    assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
    let tag = packed.headers()[ETAG].to_str().unwrap().to_owned();
    let again = stage.send(ask(IF_NONE_MATCH, &tag)).await;
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    let other = stage.send(ask(IF_NONE_MATCH, "\"other\"")).await;
    assert_eq!(other.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_trial_shows_the_step_that_it_takes() {
    let stage = Stage::of(sample::fleet(6), Role::Leads);
    let (_, html) = stage.get("/operator").await;
    let now = "<li class=\"now\" aria-current=\"step\">its first converge is over</li>";
    assert!(html.contains(now), "{html}");
    assert_eq!(html.matches("aria-current=\"step\"").count(), 1, "{html}");
}

#[tokio::test]
async fn an_operator_that_has_just_begun_has_its_view() {
    let stage = Stage::of(sample::fleet(0), Role::Leads);
    let (status, html) = stage.get("/operator").await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        html.contains("No task waits or runs.") && html.contains("Last converges"),
        "{html}"
    );
    check(&html).unwrap();
}

#[tokio::test]
async fn a_standby_says_who_leads() {
    let stage = Stage::of(sample::fleet(0), Role::Standby("op-2".to_owned()));
    let (status, html) = stage.get("/modules/any").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        html.contains("This replica is a standby") && html.contains("op-2 leads"),
        "{html}"
    );
    check(&html).unwrap();
    assert!(html.contains("href=\"../assets/"), "links lead up from a view below");
}

#[tokio::test]
async fn an_absent_module_is_named() {
    let stage = Stage::of(sample::fleet(6), Role::Leads);
    for path in [
        "/modules/absent",
        "/graph/absent",
        "/modules/absent/events",
        "/modules/absent/revisions/1/2",
    ] {
        let (status, html) = stage.get(path).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(html.contains("there is no module &#x27;absent&#x27;"), "{html}");
    }
}

#[tokio::test]
async fn a_view_that_the_cluster_does_not_tell_has_the_reason() {
    let stage = Stage::of(sample::fleet(6), Role::Leads);
    let (status, html) = stage.get("/modules/cert-manager/revisions/1/2").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert!(html.contains("no record of revision 1"), "{html}");
    assert!(
        html.contains("href=\"../../../../assets/"),
        "links lead up from a view below"
    );
}

#[tokio::test(start_paused = true)]
async fn the_stream_says_at_most_once_a_second_that_something_has_changed() {
    let stage = Stage::of(sample::fleet(6), Role::Leads);
    let request = Request::get("/live")
        .header(HOST, "localhost")
        .body(Body::empty())
        .unwrap();
    let mut words = stage.send(request).await.into_body().into_data_stream();
    let mut next = async || String::from_utf8(words.next().await.unwrap().unwrap().to_vec()).unwrap();
    assert_eq!(next().await, "event: changed\ndata: 1\n\n");
    let before = tokio::time::Instant::now();
    for _ in 0..100 {
        stage.changes.send_replace(());
    }
    assert_eq!(next().await, "event: changed\ndata: 2\n\n");
    assert!(before.elapsed() >= Duration::from_secs(1));
    assert_eq!(next().await, ":\n\n", "a silent stream says that it lives");
    stage.stop.cancel();
    assert!(words.next().await.is_none());
}

#[tokio::test]
async fn streams_are_bounded() {
    let stage = Stage::of(sample::fleet(6), Role::Leads);
    let ask = || {
        Request::get("/live")
            .header(HOST, "localhost")
            .body(Body::empty())
            .unwrap()
    };
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let answer = stage.send(ask()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        open.push(answer);
    }
    assert_eq!(stage.send(ask()).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    open.pop();
    assert_eq!(stage.send(ask()).await.status(), StatusCode::OK);
}
