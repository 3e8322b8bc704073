//! Health, readiness, converge status and metrics over HTTP.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use addon_core::metric::accept;
use addon_core::metric::escape::Escaping;
use addon_core::operator::health::Health;
use addon_core::operator::query::{ModuleReport, ModulesQuery, QueuesQuery, Status, StatusQuery};
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use leadership::standing::{self, ActingRole};
use listeners::{Loop, Unanswered, not_found, text};
use releases::drift::lookout::Lookout;
use releases::drift::lookout::object_healths::ObjectHealth;
use releases::outdated::Board;
use report::secrets::Secrets;
use serde::Deserialize;
use serde_json::json;
use telling::meters::{Meters, Sample, Unhealthy};
use tokio::sync::watch;
use watches::{Monitors, StaleWatch};

use channel::bell;

/// The reason why the `ConfigMap` cannot be watched; none while it is watched.
pub type Trouble = watch::Receiver<Option<String>>;

/// The sources of the answers to probes and scrapers.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The channels to the loop.
    pub doors: Loop,
    /// The operator's own metrics and those of hooks.
    pub meters: Arc<Meters>,
    /// Shown in `/readyz`.
    pub trouble: Trouble,
    /// The monitors, once the cluster is connected; `/readyz` names stale ones.
    pub monitors: Arc<OnceLock<Monitors>>,
    /// The outdated kinds in releases.
    pub outdated: Board,
    /// The lookout for releases, once the cluster is connected; none without modules.
    pub lookout: Arc<OnceLock<Lookout>>,
    /// The secrets to mask.
    pub secrets: Secrets,
    /// Whether this replica leads. A standby is as ready as its leader, unless the request asks for the replica itself.
    pub standing: standing::Told,
    /// The port at which a leader answers the same routes.
    pub port: u16,
    /// The endpoint for announcements of a new version.
    pub endpoint: bell::Endpoint,
}

/// Every route and its purpose, in the order of the index page.
const ROUTES: [(&str, &str); 7] = [
    (
        "/readyz",
        "ready once the first converge has ended; <code>?verbose</code> says what it waits for, <code>?self</code> keeps a \
         standby from asking its leader",
    ),
    ("/healthz", "alive: the main loop answers"),
    (
        "/status/converge",
        "where the converge stands; <code>?output=json</code> for programs",
    ),
    ("/metrics", "metrics of the operator"),
    ("/metrics/hooks", "metrics that hooks emit"),
    ("/discovery", "these routes as plain text"),
    ("/debug/pprof/cmdline", "how the operator was started"),
];

/// The routes of a program without modules.
const ROUTES_OF_HOOKS: [(&str, &str); 4] = [
    ("/metrics", "metrics of the operator"),
    ("/metrics/hooks", "metrics that hooks emit"),
    ("/discovery", "these routes as plain text"),
    ("/debug/pprof/cmdline", "how the operator was started"),
];

/// The routes of the public port.
pub fn router(probe: Probe) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(own_metrics))
        .route("/metrics/hooks", get(hook_metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/status/converge", get(converge))
        .route("/discovery", get(discovery))
        .route("/debug/pprof/cmdline", get(command_line))
        .route("/channel/notify", post(notify))
        .fallback(not_found)
        .with_state(probe)
}

/// The routes of a program without modules: those that its monitoring uses, and none that would be taken for a probe.
pub fn router_of_hooks(probe: Probe) -> Router {
    Router::new()
        .route("/", get(index_of_hooks))
        .route("/metrics", get(own_metrics))
        .route("/metrics/hooks", get(hook_metrics))
        .route(
            "/discovery",
            get(async || text(StatusCode::OK, listed(&ROUTES_OF_HOOKS))),
        )
        .route("/debug/pprof/cmdline", get(command_line))
        .fallback(not_found)
        .with_state(probe)
}

/// The command line with a zero byte between the arguments, as Go's page with this name.
async fn command_line() -> Response {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    text(StatusCode::OK, words.join("\0"))
}

async fn index_of_hooks() -> Html<String> {
    page("shell-operator", &ROUTES_OF_HOOKS)
}

async fn index() -> Html<String> {
    page("addon-operator", &ROUTES)
}

fn page(program: &str, routes: &[(&str, &str)]) -> Html<String> {
    let rows = routes.iter().fold(String::new(), |mut rows, (path, about)| {
        let _ = writeln!(rows, "  <dt><a href=\"{path}\">{path}</a></dt>\n  <dd>{about}</dd>");
        rows
    });
    let page = include_str!("probe/index.html");
    Html(
        page.replace("{version}", env!("CARGO_PKG_VERSION"))
            .replace("{program}", program)
            .replace("{routes}", rows.trim_end()),
    )
}

async fn discovery() -> Response {
    text(StatusCode::OK, listed(&ROUTES))
}

fn listed(routes: &[(&str, &str)]) -> String {
    routes
        .iter()
        .fold("GET /\n".to_owned(), |all, (path, _)| all + "GET " + path + "\n")
}

/// The operator's own metrics. If the loop does not answer, its series are left out; the other series still describe
/// the process.
async fn own_metrics(State(probe): State<Probe>, asked: HeaderMap) -> Response {
    let sample = sample(&probe).await.ok();
    scraped(escaping(&asked), probe.meters.render(sample.as_ref()))
}

async fn notify(State(probe): State<Probe>, headers: HeaderMap) -> Response {
    bell::announced(&probe.endpoint, &probe.standing, &headers).await
}

async fn sample(probe: &Probe) -> Result<Sample, Unanswered> {
    let doors = &probe.doors;
    let status = listeners::ask(doors, StatusQuery).await?;
    let unhealthy = match probe.lookout.get() {
        Some(lookout) => lookout.unhealthy().await,
        None => Vec::new(),
    };
    Ok(Sample {
        queues: listeners::ask(doors, QueuesQuery).await?,
        modules: listeners::ask(doors, ModulesQuery).await?,
        held: status.held,
        config_lost: status.config_lost,
        outdated: probe.outdated.read(),
        unhealthy: unhealthy.into_iter().map(unhealthy_object).collect(),
    })
}

fn unhealthy_object(object: ObjectHealth) -> Unhealthy {
    Unhealthy {
        module: object.release,
        kind: object.kind,
        namespace: object.namespace,
        name: object.name,
        reason: object.health,
    }
}

async fn hook_metrics(State(probe): State<Probe>, asked: HeaderMap) -> Response {
    let escaping = escaping(&asked);
    scraped(escaping, probe.meters.render_hooks(escaping))
}

/// The escaping of names that the scraper asks for.
fn escaping(asked: &HeaderMap) -> Escaping {
    let accept = asked.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept::escaping(accept.unwrap_or_default())
}

fn scraped(escaping: Escaping, body: String) -> Response {
    let kind = format!("text/plain; version=0.0.4; charset=utf-8; escaping={}", escaping.word());
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

async fn healthz(State(probe): State<Probe>) -> Result<StatusCode, Unanswered> {
    listeners::ask(&probe.doors, StatusQuery).await.map(|_| StatusCode::OK)
}

#[derive(Debug, Deserialize)]
struct ReadyzParameters {
    verbose: Option<String>,
    /// The parameter by which a standby reports its own readiness.
    #[serde(rename = "self")]
    itself: Option<String>,
}

async fn readyz(
    State(probe): State<Probe>,
    Query(parameters): Query<ReadyzParameters>,
) -> Result<Response, Unanswered> {
    let status = listeners::ask(&probe.doors, StatusQuery).await?;
    let standing = probe.standing.borrow().clone();
    if let ActingRole::Standby(leader) = &standing {
        return Ok(match parameters.itself {
            Some(_) => standing::ready(),
            None => standing::readyz(leader, probe.port).await,
        });
    }
    let mut body = String::new();
    let stale = probe.monitors.get().map(Monitors::stale).unwrap_or_default();
    let code = if status.ready && !stale.is_empty() {
        body.push_str("Startup converge done, but the cluster is not seen as it is now\n");
        StatusCode::INTERNAL_SERVER_ERROR
    } else if status.ready {
        body.push_str("Startup converge done.\n");
        StatusCode::OK
    } else {
        body.push_str("Startup converge in progress\n");
        StatusCode::INTERNAL_SERVER_ERROR
    };
    body.extend(stale.iter().map(told_stale));
    if let Some(trouble) = probe.trouble.borrow().as_deref() {
        let _ = writeln!(body, "{trouble}");
    } else if let ActingRole::Seeks { trouble: Some(trouble) } = standing {
        let _ = writeln!(body, "no leader is elected: {trouble}");
    }
    if parameters.verbose.is_some() {
        body.push_str(&details(&status));
        let modules = listeners::ask(&probe.doors, ModulesQuery).await?;
        body.extend(modules.iter().filter_map(told_health));
        let awaited = probe.monitors.get().map(Monitors::awaited_kinds).unwrap_or_default();
        body.extend(awaited.iter().map(told_kind));
    }
    Ok(text(code, probe.secrets.masked(&body)))
}

/// The health of a module whose objects do not do their work. It says nothing about readiness.
fn told_health(module: &ModuleReport) -> Option<String> {
    let word = match module.health {
        Health::Unhealthy => "unhealthy",
        Health::RollingOut => "rolling out",
        Health::Healthy | Health::Unknown => return None,
    };
    let sentence = module.unhealthy.as_deref().unwrap_or("no report yet");
    Some(format!("{word}: module {}: {sentence}\n", module.name))
}

fn told_kind((kind, api_version): &(String, String)) -> String {
    format!("waiting: kind {kind} of {api_version} is watched, and not served any more\n")
}

fn told_stale(watch: &StaleWatch) -> String {
    let StaleWatch {
        kind,
        namespace,
        since,
        error,
    } = watch;
    let place = if namespace.is_empty() {
        "all namespaces"
    } else {
        namespace
    };
    let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("nothing is known of {kind} in {place} for {} s{why}\n", since.as_secs())
}

/// Details for a person, one per line.
fn details(status: &Status) -> String {
    let waiting = status.waiting.iter().map(|what| format!("waiting: {what}\n"));
    let problems = status
        .config_problems
        .iter()
        .map(|(key, why)| format!("ConfigMap key {key}: {why}\n"));
    let lost = status
        .config_lost
        .iter()
        .map(|release| format!("configuration lost: release {release} is neither upgraded nor removed\n"));
    let held = status
        .held
        .iter()
        .map(|held| format!("removal held: {}, {}: {}\n", held.release, held.sign, held.reason));
    let unkept = status.unkept.iter();
    let unkept = unkept.map(|key| format!("ConfigMap key {key}: too large to be kept for a restart\n"));
    let late = status.late.iter().map(|who| format!("late: {who}\n"));
    let old = status.old_values.iter().map(|hook| format!("old values: {hook}\n"));
    let problems = problems.chain(unkept);
    let upgrades = status.held_upgrades.iter();
    let upgrades = upgrades.map(|module| format!("upgrade held: {module}\n"));
    let trial = status
        .held_by_trial
        .iter()
        .map(|held| format!("held by a trial: {held}\n"));
    waiting
        .chain(late)
        .chain(old)
        .chain(problems)
        .chain(lost)
        .chain(held)
        .chain(upgrades)
        .chain(trial)
        .collect()
}

#[derive(Debug, Deserialize)]
struct ConvergeParameters {
    output: Option<String>,
}

async fn converge(
    State(probe): State<Probe>,
    Query(parameters): Query<ConvergeParameters>,
) -> Result<Response, Unanswered> {
    let status = listeners::ask(&probe.doors, StatusQuery).await?;
    if parameters.output.as_deref() == Some("json") {
        let body = format!("{}\n", converge_document(&status));
        return Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response());
    }
    Ok(text(StatusCode::OK, converge_text(&status)))
}

fn converge_text(status: &Status) -> String {
    let tasks = status.converge_tasks;
    match status {
        Status {
            ready: true,
            converge_tasks: 0,
            ..
        } => "STARTUP_CONVERGE_DONE\nCONVERGE_WAIT_TASK\n".to_owned(),
        Status { ready: true, .. } => format!("STARTUP_CONVERGE_DONE\nCONVERGE_IN_PROGRESS: {tasks} tasks\n"),
        Status { not_started: true, .. } => "STARTUP_CONVERGE_NOT_STARTED\n".to_owned(),
        _ => format!("STARTUP_CONVERGE_IN_PROGRESS: {tasks} tasks\n"),
    }
}

fn converge_document(status: &Status) -> serde_json::Value {
    let (first, later) = if status.ready {
        (0, status.converge_tasks)
    } else {
        (status.converge_tasks, 0)
    };
    json!({
        "CONVERGE_IN_PROGRESS": later,
        "CONVERGE_WAIT_TASK": status.ready && later == 0,
        "STARTUP_CONVERGE_DONE": status.ready,
        "STARTUP_CONVERGE_IN_PROGRESS": first,
        "STARTUP_CONVERGE_NOT_STARTED": status.not_started,
    })
}

#[cfg(test)]
mod tests;
