//! The steps of the start, and every reason why it can end before it has begun.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::policy::{Mode, Policy};
use jiff::tz::TimeZone;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::FAILED;
use crate::cluster::Cluster;
use crate::cluster::kubeconfig::{Address, ConnectError};
use crate::disk::{Fault, Problem};
use crate::helm::{self, Helm};
use crate::jobs::tmp::TmpDir;
use crate::process::Spawner;
use crate::report::Chain;
use crate::serve::debug::unix::SocketError;
use crate::settings::{Environment, Order, Settings};

/// How long running jobs may go on when a stop was asked for: with what they need to end after that it stays below
/// the half minute that the whole stop may take.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, Error)]
pub(super) enum StartError {
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot start the thread that starts processes")]
    Spawner(#[source] io::Error),
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
    #[error("cannot listen on {address} for probes and metrics")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot open the debug socket")]
    Socket(#[from] SocketError),
    #[error("cannot read modules and hooks")]
    Disk(#[source] JoinError),
    #[error("cannot start with what is on disk")]
    Problem(#[source] Problem),
    #[error("cannot prepare the directory for temporary files {}", path.display())]
    TmpDir { path: PathBuf, source: io::Error },
    #[error("nobody says in which namespace the operator works")]
    NoNamespace,
    #[error("cannot address the cluster")]
    Connect(#[from] ConnectError),
    #[error("cannot find our own program file, which helm needs")]
    OwnProgram(#[source] io::Error),
}

impl StartError {
    pub(super) fn hints(&self) -> Vec<&'static str> {
        match self {
            Self::Listen { .. } => {
                vec!["another process may use it: choose with --prometheus-listen-address and --prometheus-listen-port"]
            }
            Self::Socket(_) => vec!["choose another place with --debug-unix-socket or DEBUG_UNIX_SOCKET"],
            Self::TmpDir { .. } => vec!["choose another place with --tmp-dir or ADDON_OPERATOR_TMP_DIR"],
            Self::NoNamespace => vec!["set --namespace or ADDON_OPERATOR_NAMESPACE"],
            Self::Problem(problem) => vec![about_disk(&problem.fault)],
            Self::Connect(_) => vec!["--kube-config and --kube-context say which cluster"],
            Self::Runtime(_) | Self::Spawner(_) | Self::Signals(_) | Self::Disk(_) | Self::OwnProgram(_) => Vec::new(),
        }
    }
}

fn about_disk(fault: &Fault) -> &'static str {
    match fault {
        Fault::Missing | Fault::NoDirectory | Fault::Unreadable(_) | Fault::DanglingLink => {
            "is its volume mounted? --modules-dir and --global-hooks-dir say where modules and hooks are"
        }
        Fault::Name(_) | Fault::HookName(_) | Fault::NameNotUnicode => "rename it",
        _ => "mend the file and start the operator again; nothing was changed in the cluster",
    }
}

/// Ends before there is a log. The text of such an error names its own kind.
pub(super) fn refuse(error: &dyn Error) -> ExitCode {
    // When standard error is gone too, the exit code has to do.
    drop(writeln!(io::stderr(), "{}", Chain(error)));
    ExitCode::from(FAILED)
}

pub(super) fn runtime() -> Result<Runtime, StartError> {
    Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(StartError::Runtime)
}

/// Says who we are and what we were told, so that a log read later is enough.
pub(super) fn announce(settings: &Settings) {
    let dirs: Vec<String> = settings
        .modules_dirs
        .iter()
        .map(|dir| dir.display().to_string())
        .collect();
    info!(
        version = env!("CARGO_PKG_VERSION"),
        modules_dir = dirs.join(":"),
        global_hooks_dir = %settings.global_hooks_dir.display(),
        namespace = settings.namespace,
        config_map = settings.config_map,
        strict_order = settings.order == Order::Strict,
        hook_slots = settings.hooks.slots.get(),
        helm = %settings.helm.binary.display(),
        helm_slots = settings.helm.slots.get(),
        listen = %settings.listen,
        debug_socket = %settings.debug_socket.display(),
        "addon-operator starts"
    );
    for remark in &settings.remarks {
        warn!(remark, "A setting has no effect");
    }
}

/// The first SIGTERM or SIGINT asks for a stop; returns the number of the second.
pub(super) async fn second_signal(shutdown: &CancellationToken) -> Result<u8, StartError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(StartError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(StartError::Signals)?;
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => ("SIGTERM", 15),
            _ = interrupt.recv() => ("SIGINT", 2),
        }
    };
    let (name, _) = next().await;
    info!(
        signal = name,
        "Signal is received, stopping; a second one ends everything at once"
    );
    shutdown.cancel();
    let (name, number) = next().await;
    warn!(signal = name, "Second signal is received, ending at once");
    Ok(number)
}

pub(super) fn tmp_dir(settings: &Settings) -> Result<TmpDir, StartError> {
    TmpDir::prepare(&settings.tmp_dir, settings.tmp_files).map_err(|source| StartError::TmpDir {
        path: settings.tmp_dir.clone(),
        source,
    })
}

pub(super) fn address(settings: &Settings, environment: &Environment) -> Address {
    Address {
        kube_config: settings.kube.config.clone(),
        context: settings.kube.context.clone(),
        server: settings.kube.server.clone(),
        home: environment.get("HOME").map(PathBuf::from),
    }
}

pub(super) fn helm(
    settings: &Settings,
    environment: &Environment,
    cluster: &Cluster,
    tmp: &TmpDir,
    spawner: Spawner,
) -> Result<Helm, StartError> {
    let dir = tmp.sub_dir("helm").map_err(|source| StartError::TmpDir {
        path: tmp.dir().to_owned(),
        source,
    })?;
    let home = environment
        .get("HOME")
        .filter(|_| cluster.uses_credential_plugin())
        .map(PathBuf::from);
    let options = helm::Options {
        binary: settings.helm.binary.clone(),
        dir,
        kubeconfig: cluster.kubeconfig().to_owned(),
        namespace: cluster.namespace().to_owned(),
        search_path: environment.get("PATH").unwrap_or_default().to_owned(),
        home,
        post_renderer: std::env::current_exe().map_err(StartError::OwnProgram)?,
        labels: settings.extra_labels.clone(),
        history_max: settings.helm.history_max,
        timeout: settings.helm.timeout,
    };
    Ok(Helm::new(options, spawner))
}

/// A helm that is not there is told at once; modules without a chart go on all the same. Its version is asked by the
/// first job that needs it, so that a start with nothing to do starts no child.
pub(super) async fn check_helm(helm: &Helm) {
    match helm.identity().await {
        Ok(_) => info!(binary = %helm.options().binary.display(), "Helm is found"),
        Err(error) => {
            let failure = Failure::from(error);
            error!(
                error = failure.report,
                hint = failure.hints.join("; "),
                "Helm cannot be used, modules with a chart will fail"
            );
        }
    }
}

/// The environment of hooks is ours. Where flags lead us to another cluster than it says, it is told so: hooks talk to
/// the same cluster as we do.
pub(super) fn hook_environment(
    settings: &Settings,
    environment: &Environment,
    cluster: &Cluster,
) -> Vec<(OsString, OsString)> {
    let mut variables = environment.inherited();
    if !leads_to_our_cluster(settings, environment) {
        variables.retain(|(name, _)| name != "KUBECONFIG");
        variables.push(("KUBECONFIG".into(), cluster.kubeconfig().into()));
    }
    variables
}

/// A kubectl in this environment finds the cluster that we found.
fn leads_to_our_cluster(settings: &Settings, environment: &Environment) -> bool {
    let kube = &settings.kube;
    let said = match (environment.get("KUBECONFIG"), environment.get("HOME")) {
        (Some(list), _) => std::env::split_paths(list).filter(|path| path.is_file()).collect(),
        (None, Some(home)) => vec![PathBuf::from(home).join(".kube/config")],
        (None, None) => Vec::new(),
    };
    kube.context.is_none() && kube.server.is_none() && (kube.config.is_empty() || kube.config == said)
}

pub(super) fn policy(settings: &Settings, environment: &Environment) -> Policy {
    Policy {
        mode: Mode::Addons,
        strict_order: settings.order == Order::Strict,
        hook_slots: settings.hooks.slots.get(),
        helm_slots: settings.helm.slots.get(),
        hook_deadline: settings.hooks.timeout,
        shutdown_grace: GRACE,
        ignore_release: settings.helm.ignore_release.clone(),
        time_zone: time_zone(environment),
    }
}

/// `TZ`, as for every other program; crontabs are read in it.
fn time_zone(environment: &Environment) -> TimeZone {
    let Some(name) = environment.get("TZ") else {
        return TimeZone::UTC;
    };
    let name = name.to_string_lossy();
    TimeZone::get(name.trim_start_matches(':')).unwrap_or_else(|error| {
        warn!(%error, "TZ names no time zone, crontabs are read in UTC");
        TimeZone::UTC
    })
}
