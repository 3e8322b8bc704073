//! The steps of the start, and all errors that can end it.

mod hooks;
mod policy;
mod zone;

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::policy::Mode;
use blocking::threads::NoThreads;
use certificates::tls::TlsError;
use child::Spawner;
use child::warrant::Warrant;
use disk::{Fault, Problem};
use helm::Helm;
use inquiry::office::BadFile;
use jobs::tmp::TmpDir;
use kube_access::Cluster;
use kube_access::kubeconfig::{Address, ConnectError};
use kube_access::reach::{address, namespace as named_namespace};
use report::Chain;
use report::secrets::Secrets;
use settings::{Environment, Order, QueueActions, Settings, Work};
use telling::meters::Meters;
use telling::telemetry::Spools;
use thiserror::Error;
use tokio::net::TcpListener;
use traces::TracesError;
use tracing::{error, info, warn};

use self::hooks::leads_to_our_cluster;
pub(super) use self::hooks::{hook_environment, hook_tools};
use super::FAILED;
use crate::serve::debug::unix::SocketError;
pub(super) use policy::policy;

/// How long running jobs may go on during a stop. Together with their ending it is less than the 30 s of the whole
/// stop.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Threads(#[from] NoThreads),
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
    #[error("cannot listen on {address} for {what}")]
    Listen {
        address: SocketAddr,
        what: &'static str,
        source: io::Error,
    },
    #[error("cannot open the debug socket")]
    Socket(#[from] SocketError),
    #[error("cannot start with the files on disk: {}", listed(problems))]
    Problems { problems: Vec<Problem>, mode: Mode },
    #[error("cannot prepare the directory for temporary files {}", path.display())]
    TmpDir { path: PathBuf, source: io::Error },
    #[error("cannot find the directory of hooks")]
    HooksDir { source: io::Error },
    #[error("the namespace of the operator is not known")]
    NoNamespace,
    #[error("cannot address the cluster")]
    Connect(#[from] ConnectError),
    #[error("cannot prepare the encryption of webhooks")]
    Tls(#[source] TlsError),
    #[error("there is no kubeconfig to give to helm")]
    NoKubeconfig,
    #[error("cannot start traces")]
    Traces(#[source] TracesError),
    #[error("cannot prepare to ask registries")]
    Registries(#[from] BadFile),
    #[error("cannot find our own program file, which helm needs")]
    OwnProgram(#[source] io::Error),
}

impl StartError {
    pub(super) fn hints(&self) -> Vec<&'static str> {
        match self {
            Self::Listen { .. } => {
                vec!["another process may use it: the flags and variables of `start --help` choose another"]
            }
            Self::HooksDir { .. } => vec!["--hooks-dir or SHELL_OPERATOR_HOOKS_DIR names the directory of hooks"],
            Self::Socket(_) => vec!["choose another place with --debug-unix-socket or DEBUG_UNIX_SOCKET"],
            Self::TmpDir { .. } => vec!["choose another place with --tmp-dir or ADDON_OPERATOR_TMP_DIR"],
            Self::NoNamespace => vec!["set --namespace or ADDON_OPERATOR_NAMESPACE"],
            Self::Problems { problems, mode } => {
                let mut hints: Vec<_> = problems
                    .iter()
                    .map(|problem| about_disk(&problem.fault, *mode))
                    .collect();
                let mut told = BTreeSet::new();
                hints.retain(|hint| told.insert(*hint));
                hints
            }
            Self::Connect(_) => vec!["--kube-config and --kube-context name the cluster"],
            Self::Traces(_) => {
                vec!["TRACING_OTLP_ENDPOINT names the collector of traces; without it no traces are sent"]
            }
            Self::Threads(_)
            | Self::Signals(_)
            | Self::Tls(_)
            | Self::NoKubeconfig
            | Self::Registries(_)
            | Self::OwnProgram(_) => Vec::new(),
        }
    }
}

/// All problems in one text, so that a person can correct them all at once.
fn listed(problems: &[Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(|problem| Chain(problem).to_string()).collect();
    texts.join("; ")
}

fn about_disk(fault: &Fault, mode: Mode) -> &'static str {
    match fault {
        Fault::Missing | Fault::NoDirectory | Fault::Unreadable(_) | Fault::DanglingLink => match mode {
            Mode::Addons => {
                "is its volume mounted? --modules-dir and --global-hooks-dir name the directories of modules and hooks"
            }
            Mode::Hooks => "is its volume mounted? --hooks-dir names the directory of hooks",
        },
        Fault::Name(_) | Fault::HookName(_) | Fault::NameNotUnicode => "rename it",
        _ => "correct the file and start the operator again; nothing was changed in the cluster",
    }
}

/// Ends the process before the log exists. The error's text names its kind.
pub(super) fn refuse(error: &dyn Error) -> ExitCode {
    // Without standard error only the exit code tells the failure.
    drop(writeln!(io::stderr(), "{}", Chain(error)));
    ExitCode::from(FAILED)
}

/// Logs the program's version and settings, so that the log alone explains later records.
pub(super) fn announce(settings: &Settings) {
    let (version, program) = (env!("CARGO_PKG_VERSION"), settings.program().name());
    let (listen, debug_socket) = (settings.listen, settings.debug_socket.display());
    let (namespace, hook_slots) = (&settings.namespace, settings.hooks.slots.get());
    match &settings.work {
        Work::Modules(modules) => {
            let dirs: Vec<String> = modules
                .modules_dirs
                .iter()
                .map(|dir| dir.display().to_string())
                .collect();
            info!(
                version,
                modules_dir = dirs.join(":"),
                global_hooks_dir = %modules.global_hooks_dir.display(),
                namespace,
                config_map = modules.config_map,
                strict_order = modules.order == Order::Strict,
                hook_slots,
                helm = %modules.helm.binary.display(),
                helm_slots = modules.helm.slots.get(),
                %listen,
                %debug_socket,
                "{program} starts"
            );
        }
        Work::Hooks(dir) => {
            info!(version, hooks_dir = %dir.display(), namespace, hook_slots, %listen, %debug_socket, "{program} starts");
        }
    }
    for remark in &settings.remarks {
        warn!(remark, "A setting has no effect");
    }
}

pub(super) async fn bind(address: SocketAddr, what: &'static str) -> Result<TcpListener, StartError> {
    let cannot = |source| StartError::Listen { address, what, source };
    TcpListener::bind(address).await.map_err(cannot)
}

pub(super) fn tmp_dir(settings: &Settings) -> Result<TmpDir, StartError> {
    let prepare = match settings.work {
        Work::Modules(_) => TmpDir::prepare,
        Work::Hooks(_) => TmpDir::prepare_flat,
    };
    prepare(&settings.tmp_dir, settings.tmp_files).map_err(|source| no_tmp_dir(settings, source))
}

fn no_tmp_dir(settings: &Settings, source: io::Error) -> StartError {
    StartError::TmpDir {
        path: settings.tmp_dir.clone(),
        source,
    }
}

/// The folder for the children's kubeconfig. Hooks without modules need none if their own environment leads to the same
/// cluster.
fn private_dir(settings: &Settings, environment: &Environment, tmp: &TmpDir) -> Result<Option<PathBuf>, StartError> {
    if matches!(settings.work, Work::Hooks(_)) && leads_to_our_cluster(settings, environment) {
        return Ok(None);
    }
    let dir = tmp.private().map_err(|source| no_tmp_dir(settings, source))?;
    Ok(Some(dir.to_owned()))
}

/// Connects to the cluster of the settings, without a request.
pub(super) async fn connect(
    settings: &Settings,
    environment: &Environment,
    tmp: &TmpDir,
    meters: &Arc<Meters>,
    warrant: &Warrant,
) -> Result<Cluster, StartError> {
    let address = address(settings, environment);
    let namespace = namespace(settings, &address)?;
    let dir = private_dir(settings, environment, tmp)?;
    let cluster = Cluster::connect(&address, &namespace, dir.as_deref(), Arc::clone(meters)).await?;
    let cluster = cluster.limited(settings.kube.limit).under(warrant);
    info!(server = cluster.server(), namespace, "Cluster is configured");
    Ok(cluster)
}

/// The namespace of the releases; hooks without modules need it only for their webhooks.
fn namespace(settings: &Settings, address: &Address) -> Result<String, StartError> {
    let found = named_namespace(settings, address)?;
    match settings.work {
        Work::Modules(_) => found.ok_or(StartError::NoNamespace),
        Work::Hooks(_) => Ok(found.unwrap_or_else(|| "default".to_owned())),
    }
}

/// Prepares helm. If helm is missing, this is logged at once, and modules without a chart still run. The first job that
/// needs helm asks for its version, so that a start with nothing to do starts no child.
///
/// `None` for hooks without modules.
pub(super) async fn helm(
    settings: &Settings,
    environment: &Environment,
    cluster: &Cluster,
    tmp: &TmpDir,
    spawner: Spawner,
) -> Result<Option<Helm>, StartError> {
    let Work::Modules(modules) = &settings.work else {
        return Ok(None);
    };
    let dir = tmp.sub_dir("helm").map_err(|source| StartError::TmpDir {
        path: tmp.dir().to_owned(),
        source,
    })?;
    let home = environment
        .get("HOME")
        .filter(|_| cluster.uses_credential_plugin())
        .map(PathBuf::from);
    let options = helm::Options {
        binary: modules.helm.binary.clone(),
        dir,
        kubeconfig: cluster.kubeconfig().ok_or(StartError::NoKubeconfig)?.to_owned(),
        namespace: cluster.namespace().to_owned(),
        search_path: environment.get("PATH").unwrap_or_default().to_owned(),
        home,
        post_renderer: std::env::current_exe().map_err(StartError::OwnProgram)?,
        labels: modules.extra_labels.clone(),
        history_max: modules.helm.history_max,
        timeout: modules.helm.timeout,
    };
    let helm = Helm::new(options, spawner);
    check_helm(&helm).await;
    Ok(Some(helm))
}

/// The metrics of the program as which the binary runs, with the name prefix of the settings.
pub(super) fn meters(settings: &Settings, secrets: &Secrets, spools: &Spools) -> Meters {
    let prefix = &settings.metrics_prefix;
    let meters = match settings.work {
        Work::Modules(_) => Meters::new(prefix),
        Work::Hooks(_) => Meters::of_hooks_alone(prefix),
    };
    let meters = meters.hiding(secrets.clone()).told_by(spools.clone());
    match settings.queue_actions {
        QueueActions::Timed => meters,
        QueueActions::Left => meters.without_queue_actions(),
    }
}

async fn check_helm(helm: &Helm) {
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

/// The core's policy, from the settings.
pub(super) fn mode(settings: &Settings) -> Mode {
    match settings.work {
        Work::Modules(_) => Mode::Addons,
        Work::Hooks(_) => Mode::Hooks,
    }
}
