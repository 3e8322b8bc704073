//! The operator from start to end: the parts that it builds, and the order in which they start and stop.
//!
//! Listeners start first, so that a start that hangs can be examined. Must never decide anything about modules. An
//! unreachable cluster does not end the start; a missing directory does.

pub mod announcing;
mod assembly;
mod config_events;
mod debugging;
mod inventory;
mod lifecycle;
mod page;
mod planning;
pub(crate) mod rehearsal;
mod reloading;
mod rendering;
mod reviews;
mod shared;
mod signals;
mod start;
mod status_objects;
pub mod switch;
mod watching;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::channel::{follower, trial};
use addon_core::operator::Operator;
use addon_core::operator::event::Event;
use axum::Router;
use axum_server::{AddrListener, Address};
use child::Spawner;
use intake::Desk;
use jiff::Timestamp;
use jobs::Ground;
use jobs::editions::Editions;
use kube_access::Cluster;
use listeners::gate::Peer;
use mailbox::mailbox;
use parts::{FAILED, Parts};
use report::Report;
use report::secrets::Secrets;
use settings::{ConfigurationError, Environment, Events, HooksArgs, Machine, Program, Settings, StartArgs, Work};
use telling::meters::table;
use telling::notices::Notices;
use telling::notices::announcements::Announcer;
use telling::telemetry;
use telling::telemetry::{LevelHandle, Spools};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use traces::Traces;
use tracing::error;

use crate::dispatch::{self, Tools};
use crate::driver::Driver;
use crate::serve::debug;
use crate::serve::probe::{self, Probe};
use crate::serve::pulse;
use assembly::{Assembled, assemble};
use shared::Outside;
use start::StartError;

/// How long the end of the process may wait until the log is written.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Keeps modules as they should be until it is told to stop.
pub fn main(args: &StartArgs, environment: &Environment) -> ExitCode {
    start_with(Settings::check(args, environment, &Machine::this()), environment)
}

/// Serves hooks without modules until it is told to stop.
pub fn serve_hooks(args: &HooksArgs, environment: &Environment) -> ExitCode {
    start_with(Settings::check_hooks(args, environment, &Machine::this()), environment)
}

fn start_with(checked: Result<Settings, ConfigurationError>, environment: &Environment) -> ExitCode {
    let settings = match checked {
        Ok(settings) => settings,
        Err(error) => return start::refuse(&error),
    };
    let secrets = Secrets::default();
    let (levels, spools) = match telemetry::start(settings.log, secrets.clone()) {
        Ok(started) => started,
        Err(error) => return start::refuse(&error),
    };
    let log = Log {
        levels,
        spools,
        secrets,
    };
    let code = lifecycle::live(&settings, environment, &log).unwrap_or_else(|error| cannot_start(&error));
    log.spools.flush(LAST_WORDS);
    ExitCode::from(code)
}

/// The running log: the handle that changes its level, its buffers, and the secrets that it masks.
#[derive(Clone)]
struct Log {
    levels: LevelHandle,
    spools: Spools,
    secrets: Secrets,
}

async fn operate(settings: &Settings, environment: &Environment, log: Log, spawner: Spawner, mut parts: Parts) -> u8 {
    start::announce(settings);
    let traces = match Traces::start(settings.traces.as_ref(), settings.program().name()) {
        Ok(traces) => traces,
        Err(error) => return cannot_start(&StartError::Traces(error)),
    };
    let code = match build(settings, environment, log, &traces, spawner, &mut parts).await {
        Ok(_socket) => parts.run().await,
        Err(error) => {
            // The reason is logged first, because ending the parts may take time.
            let code = cannot_start(&error);
            parts.stop().await;
            code
        }
    };
    traces.stop().await;
    code
}

fn cannot_start(error: &StartError) -> u8 {
    let hints = error.hints();
    error!(
        error = Report::new(error).chain(),
        hint = (!hints.is_empty()).then(|| hints.join("; ")),
        "Operator cannot start"
    );
    FAILED
}

/// Builds everything and starts it in order. The returned value must live until the end.
async fn build(
    settings: &Settings,
    environment: &Environment,
    log: Log,
    traces: &Traces,
    spawner: Spawner,
    parts: &mut Parts,
) -> Result<impl Drop + use<>, StartError> {
    let (doors, mail) = mailbox(parts.shutdown().clone());
    let meters = Arc::new(start::meters(settings, &log.secrets, &log.spools));
    let (trouble, told_trouble) = watch::channel(None);
    let outside = Outside::new(settings, &doors, &meters, told_trouble, (&log.secrets, &log.spools));
    let socket = listen(settings, log.levels, parts, &outside).await?;
    let assembled = assemble(settings, environment, &outside, trouble, spawner, parts).await?;
    let Assembled {
        tools,
        hands,
        judged,
        inventory,
        gaps: _,
    } = assembled;
    let notices = notices(settings, &tools.ground.cluster, &outside, parts);
    let desk = offer(settings, environment, &tools, &hands.editions, &outside, parts);
    sources::start(settings, environment, desk, source_ways(judged, &outside), parts)?;
    take_part(settings, environment, &tools, &outside, parts)?;
    let operator = Operator::new(seed(), start::policy(settings, environment));
    let traces = traces.clone();
    let run = move |job, cancel| {
        outside.events.wanted(&job);
        dispatch::traced::run(traces.clone(), job, Arc::clone(&tools), cancel)
    };
    let driver = Driver::new(operator, doors, mail, notices, hands, run);
    parts.spawn_driver(driver.run([Event::InventoryChanged(inventory)]));
    Ok(socket)
}

fn source_ways(judged: mpsc::UnboundedReceiver<sources::Judged>, outside: &Outside) -> sources::Ways<'_> {
    sources::Ways {
        judged,
        requests: &outside.sources,
        standing: outside.standing.subscribe(),
        keeping: sources::Keeping::InSecrets,
        seed,
    }
}

/// Takes part in the election of a leader, and in trials of versions.
fn take_part(
    settings: &Settings,
    environment: &Environment,
    tools: &Tools,
    outside: &Outside,
    parts: &mut Parts,
) -> Result<(), StartError> {
    let Ground { cluster, spawner, .. } = &*tools.ground;
    let handle = leadership::start(settings, cluster, outside.concerned(spawner), seed(), parts);
    trial::start(settings, environment, cluster, handle, &outside.channel, seed(), parts)?;
    Ok(())
}

/// Makes available those answers of the debug routes that need the tools of the jobs.
fn offer(
    settings: &Settings,
    environment: &Environment,
    tools: &Arc<Tools>,
    editions: &Editions,
    outside: &Outside,
    parts: &Parts,
) -> Option<Arc<Desk>> {
    rendering::offer(&outside.charts, tools, parts.stopping());
    let desk = reloading::offer(settings, environment, tools, editions, outside);
    planning::offer(outside, tools, desk.clone(), parts.stopping());
    desk
}

/// The receivers of notices. With modules they include Kubernetes Events, and the state of modules becomes objects, unless settings switch
/// these off.
fn notices(settings: &Settings, cluster: &Cluster, outside: &Outside, parts: &mut Parts) -> Notices {
    let Outside { meters, secrets, .. } = outside;
    let notices = |config_map: String| {
        let notices = Notices::new(Arc::clone(meters), start::mode(settings), config_map);
        notices.hiding(secrets.clone())
    };
    let Work::Modules(modules) = &settings.work else {
        return notices(String::new());
    };
    if modules.has_status_objects {
        status_objects::start(settings, cluster, outside, parts);
    }
    let notices = notices(modules.config_map.clone());
    match modules.events {
        Events::Left => notices,
        Events::Told => {
            let (announcer, announcements) = Announcer::new(Arc::clone(meters));
            let writer = announcing::Writer {
                cluster: cluster.clone(),
                config_map: modules.config_map.clone(),
                deployment: Arc::clone(&outside.channel.deployment),
                pod: settings.pod_name.clone(),
                meters: Arc::clone(meters),
                secrets: secrets.clone(),
            };
            parts.spawn("the writer of Kubernetes Events", writer.run(announcements));
            outside.channel.announcer.get_or_init(|| announcer.of_channel());
            notices.announced_by(announcer)
        }
    }
}

/// Opens the listeners: probes and metrics, the debug socket, and their timer.
async fn listen(
    settings: &Settings,
    levels: LevelHandle,
    parts: &mut Parts,
    outside: &Outside,
) -> Result<debug::unix::SocketFile, StartError> {
    let Outside {
        doors,
        meters,
        trouble,
        monitors,
        outdated,
        lookout,
        secrets,
        standing,
        ..
    } = outside;
    // The counter exists from the first scrape, so that an alert on its absence does not fire for a young operator.
    meters.add(&table::LIVE_TICKS, [], 0.0);
    let listener = start::bind(settings.listen, "probes and metrics").await?;
    let probe = Probe {
        doors: doors.clone(),
        meters: Arc::clone(meters),
        trouble: trouble.clone(),
        monitors: Arc::clone(monitors),
        outdated: outdated.clone(),
        lookout: Arc::clone(lookout),
        secrets: secrets.clone(),
        standing: standing.subscribe(),
        port: settings.listen.port(),
        endpoint: follower::endpoint(settings, &outside.channel.bell),
    };
    let routes = match settings.program() {
        Program::AddonOperator => probe::router(probe),
        Program::ShellOperator => probe::router_of_hooks(probe),
    };
    serve(parts, "the server of probes and metrics", listener, routes);

    let socket = debugging::listen(settings, levels, parts, outside).await?;
    page::listen(settings, parts, outside).await?;
    parts.spawn("the pulse", pulse::run(doors.clone(), Arc::clone(meters)));
    Ok(socket)
}

fn serve<L, A>(parts: &mut Parts, name: &'static str, listener: L, router: Router)
where
    L: AddrListener<A::Stream, A> + Send + 'static,
    A: Address<Listener = L> + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Peer + Send + Unpin + 'static,
{
    let stop = parts.stopping().clone();
    parts.spawn_graceful(name, async move {
        if let Err(error) = listeners::listen(listener, router, stop).await {
            error!(server = name, %error, "The server ended");
        }
    });
}

/// Any number that differs from run to run: it only spreads retries.
fn seed() -> u64 {
    let nanoseconds = Timestamp::now().subsec_nanosecond();
    u64::from(nanoseconds.unsigned_abs()) << 32 | u64::from(std::process::id())
}
