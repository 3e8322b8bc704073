//! The debug socket: the state of the operator, for people and for the debug commands.
//!
//! Paths, formats, status codes and error texts are those of the original. Must never show a secret to a client that
//! did not ask for it, or that must not see it.

mod acts;
pub mod modules;
mod permitted;
mod queues;
mod route;
pub mod unix;

use std::sync::{Arc, OnceLock};

use addon_core::operator::query::{
    ConfigValuesQuery, GlobalHooksQuery, PatchesQuery, Secrets as Wanted, StatusQuery, ValuesQuery,
};
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use channel::answers::Channel;
use hooks::answers::records;
use hooks::answers::snapshots::{self, Snapshots};
use hooks::records::Recorder;
use intake::answers::Reloader;
use leadership::standing::{self, ActingRole};
use listeners::reply::{Format, Reply, document, shown, text};
use listeners::{Loop, Unanswered, not_found};
use names::ModuleName;
use plan::planner::Planner;
use releases::answers::charts::Charts;
use releases::answers::render::Look;
use releases::answers::{apis, lost, purge, render};
use releases::drift::lookout::Lookout;
use report::secrets::Secrets;
use serde::Deserialize;
use serde_json::{Value, json};
use settings::boolean;
use sources::requests::Sources;
use telling::parameters::Parameters;
use watches::Monitors;

use self::route::{PATTERNS, Route, Section};

const NOT_HERE: &str = "records of hook runs are shown at the debug socket, not here\n";

/// The sources of the debug socket's answers.
#[derive(Debug, Clone)]
pub struct Debug {
    /// The channels to the loop.
    pub doors: Loop,
    /// Settings that can be changed at run time.
    pub parameters: Arc<Parameters>,
    /// The source of snapshots, once the cluster is connected.
    pub monitors: Arc<OnceLock<Monitors>>,
    /// The lookout for releases, once the cluster is connected; none without modules.
    pub lookout: Arc<OnceLock<Lookout>>,
    /// The source of charts and releases, once the cluster is connected.
    pub charts: Arc<OnceLock<Charts>>,
    /// Makes plans, once the cluster is connected.
    pub planner: Arc<OnceLock<Planner>>,
    /// Reads directories of modules again, once the operator has begun; none without modules.
    pub reloader: Arc<OnceLock<Reloader>>,
    /// The sources of modules, once the operator follows them.
    pub sources: Arc<OnceLock<Sources>>,
    /// Records runs of hooks.
    pub recorder: Recorder,
    /// The state of the channel.
    pub channel: Channel,
    /// Whether this replica leads; a standby cannot answer most questions.
    pub standing: standing::Told,
    /// The secrets to mask.
    pub secrets: Secrets,
    /// The rule by which clients see secrets.
    pub disclosure: Disclosure,
    /// The powers of a client.
    pub powers: Powers,
}

/// The powers of a client that can reach the routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Powers {
    /// The client may read, and set parameters.
    Looking,
    /// The client may confirm held actions, too.
    Confirming,
}

/// The rule by which clients see secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disclosure {
    /// No client sees secrets.
    Never,
    /// Clients see secrets if they ask for them.
    OnRequest,
    /// All clients see secrets.
    Always,
}

/// The routes of the debug socket.
pub fn router(debug: Debug) -> Router {
    Router::new()
        .route("/", get(async || text(StatusCode::OK, "debug endpoint is alive")))
        .route(
            "/discovery",
            get(async || text(StatusCode::OK, PATTERNS.join("\n") + "\n")),
        )
        .route("/channel/check", post(acts::check_channel))
        .route("/config/set", post(acts::set_parameter))
        .route("/module/purge", post(acts::confirm_removals))
        .route("/module/reload", post(acts::reload))
        .route("/source/check", post(acts::check_source))
        .route("/config/lost", post(acts::confirm_loss))
        .route("/hook/record", post(acts::record))
        .route("/plan", post(acts::plan))
        .route("/{*path}", get(look))
        .fallback(not_found)
        .with_state(debug)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wishes {
    show_empty: Option<String>,
    global: Option<String>,
    diff: Option<String>,
    debug: Option<String>,
    format: Option<String>,
    releases: Option<String>,
    show_secrets: Option<String>,
    target: Option<String>,
}

impl Wishes {
    /// The part of a chart that the client asks for.
    fn look(&self) -> Look {
        match (is_set(self.diff.as_ref()), is_set(self.debug.as_ref())) {
            (true, _) => Look::Difference,
            (false, true) => Look::Debug,
            (false, false) => Look::Manifest,
        }
    }
}

impl Debug {
    fn snapshots(&self, secrets: Wanted) -> Snapshots<'_> {
        Snapshots {
            doors: &self.doors,
            monitors: self.monitors.get(),
            secrets,
        }
    }

    /// How secrets are shown in the answer; none if the client asks for secrets and must not see them.
    fn secrets(&self, wishes: &Wishes) -> Option<Wanted> {
        match (self.disclosure, is_set(wishes.show_secrets.as_ref())) {
            (Disclosure::Always, _) | (Disclosure::OnRequest, true) => Some(Wanted::Shown),
            (Disclosure::OnRequest | Disclosure::Never, false) => Some(Wanted::Masked),
            (Disclosure::Never, true) => None,
        }
    }
}

/// Parses a flag as Go does; any other text is false.
fn is_set(flag: Option<&String>) -> bool {
    flag.is_some_and(|text| boolean::parse(text) == Some(true))
}

async fn look(State(debug): State<Debug>, Query(wishes): Query<Wishes>, uri: Uri) -> Response {
    let Some(route) = Route::parse(uri.path()) else {
        return not_found().await;
    };
    let standing = debug.standing.borrow().clone();
    if let (ActingRole::Standby(leader), false) = (standing, route.is_of_each_replica()) {
        return leader.instead_of_us();
    }
    let Some(secrets) = debug.secrets(&wishes) else {
        return text(
            StatusCode::FORBIDDEN,
            "secrets are shown to those who ask at the debug socket, not here\n",
        )
        .into_response();
    };
    match debug.answer(route, &wishes, secrets).await {
        Ok(reply) if secrets == Wanted::Masked => reply.masked(&debug.secrets).into_response(),
        Ok(reply) => reply.into_response(),
        Err(unanswered) => unanswered.into_response(),
    }
}

impl Debug {
    async fn answer(&self, route: Route<'_>, wishes: &Wishes, secrets: Wanted) -> Result<Reply, Unanswered> {
        Ok(match route {
            Route::QueueMain(format) => self.queue_main(format).await?,
            Route::QueueList(format) => self.queue_list(format, is_set(wishes.show_empty.as_ref())).await?,
            Route::ModuleList(format) => self.module_list(format).await?,
            Route::ModuleStatus(format) => self.module_status(format, is_set(wishes.releases.as_ref())).await?,
            Route::ModuleStatusOf { name, format } => self.module_status_of(name, format).await?,
            Route::ModuleApis(format) => {
                apis::outdated_kinds(&self.doors, self.charts.get(), format, wishes.target.as_deref()).await?
            }
            Route::ModulePurge(format) => purge::held(&self.doors, format).await?,
            Route::ModuleMonitors(format) => self.resource_monitors(format).await?,
            Route::Graph => self.graph(wishes.format.as_deref()).await?,
            Route::ChannelStatus(format) => self.channel.status(&self.standing.borrow(), format),
            Route::SourceStatus { module, format } => {
                sources::answers::status(self.sources.get(), module, format).await?
            }
            Route::ConfigLost(format) => lost::lost(&self.doors, format).await?,
            Route::ConfigList(format) => shown(format, &self.parameters.list(), || self.parameters.table()),
            Route::GlobalList(format) => {
                let names = listeners::ask(&self.doors, GlobalHooksQuery).await?;
                document(format, &json!({ "globalHooks": names }))
            }
            Route::Global { section, format } => {
                let value = self.section(section, None, false, secrets).await?;
                let value = value.unwrap_or_default();
                match section {
                    Section::Patches => document(format, &patches(value)),
                    Section::Values => document(format, &value).remarked(self.old_values().await?),
                    Section::Config => document(format, &value),
                }
            }
            Route::HookList(format) => snapshots::hook_list(&self.doors, format).await?,
            Route::HookSnapshots { name, format } => self.snapshots(secrets).of_hook(name, format).await?,
            Route::HookRecords(format) => match self.powers {
                Powers::Looking => text(StatusCode::FORBIDDEN, NOT_HERE),
                Powers::Confirming => records::records(&self.recorder, format).await,
            },
            Route::HookRecord { id, format } => match self.powers {
                Powers::Looking => text(StatusCode::FORBIDDEN, NOT_HERE),
                Powers::Confirming => records::record_of(&self.recorder, id, format).await,
            },
            Route::GlobalSnapshots(format) => self.snapshots(secrets).of_global_hooks(format).await?,
            Route::ModuleSnapshots { name, format } => self.snapshots(secrets).of_module(name, format).await?,
            Route::ModuleRender { name } => {
                render::render(&self.doors, self.charts.get(), name, wishes.look(), secrets).await?
            }
            Route::Module { name, section, format } => {
                let global = is_set(wishes.global.as_ref());
                let answer = self.module(name, section, global, secrets).await?;
                let reply = module_reply(name, section, format, answer);
                if section == Section::Values {
                    reply.remarked(self.old_values().await?)
                } else {
                    reply
                }
            }
        })
    }

    /// The global hooks that fail while values of an earlier run serve for them, as texts.
    async fn old_values(&self) -> Result<Vec<String>, Unanswered> {
        Ok(listeners::ask(&self.doors, StatusQuery).await?.old_values)
    }

    /// `None`: there is no such module.
    async fn module(
        &self,
        name: &str,
        section: Section,
        with_global: bool,
        secrets: Wanted,
    ) -> Result<Option<Value>, Unanswered> {
        let Ok(module) = ModuleName::parse(name) else {
            return Ok(None);
        };
        self.section(section, Some(module), with_global, secrets).await
    }

    /// `None`: there is no such module.
    async fn section(
        &self,
        section: Section,
        module: Option<ModuleName>,
        with_global: bool,
        secrets: Wanted,
    ) -> Result<Option<Value>, Unanswered> {
        let doors = &self.doors;
        let answer = match section {
            Section::Values => {
                let query = ValuesQuery {
                    module,
                    with_global,
                    secrets,
                };
                listeners::ask(doors, query).await?
            }
            Section::Config => {
                let query = ConfigValuesQuery {
                    module,
                    with_global,
                    secrets,
                };
                listeners::ask(doors, query).await?
            }
            Section::Patches => listeners::ask(doors, PatchesQuery { module, secrets }).await?,
        };
        Ok(answer.ok())
    }
}

fn module_reply(name: &str, section: Section, format: Format, answer: Option<Value>) -> Reply {
    match (answer, section) {
        (Some(value), Section::Patches) => document(format, &patches(value)),
        (Some(value), Section::Values | Section::Config) => document(format, &value),
        (None, Section::Values | Section::Config) => text(StatusCode::INTERNAL_SERVER_ERROR, "module not found\n"),
        (None, Section::Patches) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("unknown module {name}\n")),
    }
}

/// Patches in the original's shape: a list of patches. It has at most one patch, because all patches are combined into
/// one.
fn patches(operations: Value) -> Value {
    if operations.is_null() {
        operations
    } else {
        json!([{ "Operations": operations }])
    }
}

#[cfg(test)]
mod tests;
