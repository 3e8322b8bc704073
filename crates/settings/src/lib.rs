//! Flags and variables of the program: a text becomes a value, or an error that names the flag or variable.
//!
//! Must never open a connection and never print; the caller prints the error and ends with code 1.
//!
//! ```text
//!   flags (arguments) ----+
//!                         +--> said: the text that counts, and its source
//!   environment ----------+       |
//!                                 v
//!                  words: one function for each setting: its names, its valid values, its default
//!                                 |
//!                                 v
//!                             Settings
//! ```
//!
//! Begin with `Settings`, and find the names of one of its fields in `words`.

mod arguments;
pub mod boolean;
pub mod channel;
pub mod duration;
mod environment;
mod hooks_arguments;
mod labels;
pub mod leadership;
mod listening;
mod log;
mod machine;
mod order;
pub mod page;
mod program;
mod said;
mod shared_arguments;
mod traces;
mod unsupported;
pub mod variables;
mod webhook_arguments;
pub mod webhooks;
mod words;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use addon_core::module::description::Restoring;
use addon_core::module::enabling::Extenders;
use thiserror::Error;

pub use arguments::StartArgs;
pub use environment::Environment;
pub use hooks_arguments::HooksArgs;
pub use log::{ClientLog, LogFormat, LogLevel, LogSettings, Timestamps};
pub use machine::Machine;
pub use program::Program;
pub use traces::{TraceSettings, Trust};

use channel::ChannelSettings;
use leadership::{LeaderLabel, LeaderServices, Leadership};
use said::Setting;
use webhook_arguments::WebhookArgs;
use webhooks::WebhookSettings;
use words::Words;

/// The default prefixes of file names in `crds/` that do not count as CRDs, separated by commas.
pub const CRD_FILTERS: &str = "doc-,_";

/// Variables of installations for Helm 2, which must not be taken for ours.
const HELM2_VARIABLES: [&str; 5] = [
    "ADDON_OPERATOR_TILLER_LISTEN_PORT",
    "ADDON_OPERATOR_TILLER_PROBE_LISTEN_PORT",
    "TILLER_MAX_HISTORY",
    "TILLER_BIN_PATH",
    "HELM2",
];

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigurationError {
    #[error("configuration error: {name} is '{value}', but it should be {allowed}")]
    NotAllowed {
        name: &'static str,
        value: String,
        allowed: &'static str,
    },
    #[error("configuration error: {name} is not valid text in UTF-8")]
    NotUnicode { name: &'static str },
    #[error("configuration error: {by} needs {name}, which is not set")]
    Needed { name: &'static str, by: &'static str },
    #[error(
        "configuration error: {variable} environment is found. Helm2 support is deprecated in \
         Addon-operator v1.1+, please adopt Helm2 releases and use Helm3."
    )]
    Helm2 { variable: &'static str },
}

/// All settings of the program, validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub work: Work,
    pub tmp_dir: PathBuf,
    pub tmp_files: TmpFiles,
    /// The operator's namespace. If it is not set and the operator is in no pod, the kubeconfig's context may have it;
    /// otherwise see [`NAMESPACE_HINT`].
    pub namespace: Option<String>,
    /// The name of the operator's pod, in a cluster.
    pub pod_name: Option<String>,
    pub leadership: Leadership,
    /// The label of the operator's pod while it leads, if one is wanted.
    pub leader_label: Option<LeaderLabel>,
    /// The Services that lead to the operator's pod while it leads.
    pub leader_services: Option<LeaderServices>,
    pub kube: KubeSettings,
    pub hooks: HookSettings,
    /// The address of probes and metrics.
    pub listen: SocketAddr,
    pub metrics_prefix: String,
    pub queue_actions: QueueActions,
    pub webhooks: WebhookSettings,
    pub log: LogSettings,
    pub traces: Option<TraceSettings>,
    pub debug_socket: PathBuf,
    /// Whether the debug socket shows secrets.
    pub secrets: ShownSecrets,
    /// The TCP address of the debug routes, for every client that can reach it.
    pub debug_http: Option<SocketAddr>,
    /// Settings without an effect, which lead to a warning at the start.
    pub remarks: Vec<String>,
}

/// The work of the program.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Modules and global hooks.
    Modules(Box<ModuleSettings>),
    /// The hooks of this directory, without modules.
    Hooks(PathBuf),
}

/// The settings of a program with modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleSettings {
    pub modules_dirs: Vec<PathBuf>,
    pub global_hooks_dir: PathBuf,
    /// The order of modules whose directory name has no number.
    pub unnumbered_order: u32,
    pub missing_values: MissingValues,
    pub order: Order,
    /// The sources that decide whether a module is enabled, in their order.
    pub extenders: Extenders,
    pub config_map: String,
    pub events: Events,
    /// Whether the state of modules is written into objects of the cluster.
    pub has_status_objects: bool,
    /// Whether the first lines of a plan are warnings for the person who edits the ConfigMap.
    pub has_plan_warnings: bool,
    pub helm: HelmSettings,
    pub channel: Box<ChannelSettings>,
    /// Which drift of releases is reverted, unless a module sets it itself.
    pub drift: Restoring,
    pub page: page::Page,
    /// The labels of every object of a release and of CRDs; never empty.
    pub extra_labels: BTreeMap<String, String>,
    /// Prefixes of file names that do not count as CRDs.
    pub crd_filters: Vec<String>,
}

/// The hint for an unknown namespace.
pub const NAMESPACE_HINT: &str =
    "set --namespace or ADDON_OPERATOR_NAMESPACE, or a namespace in the kubeconfig's context";

/// The meaning of a missing values file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingValues {
    NoValues,
    Refused,
}

/// The effect of a failed module on later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Later modules go on after the failure.
    Relaxed,
    /// Later modules wait until the failed one succeeds.
    Strict,
}

/// Whether changes of modules' states are reported as Kubernetes Events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    Told,
    Left,
}

/// Whether secrets in values are shown to people; they are never in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownSecrets {
    /// Secrets are shown only if a client of the debug socket asks for secrets.
    AskedFor,
    /// Secrets are always shown, as scripts for the original expect.
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TmpFiles {
    Removed,
    Kept,
}

#[derive(Debug, Clone, PartialEq)]
pub struct KubeSettings {
    /// Kubeconfig files to merge; the first one takes precedence. Without any the pod's own account is used.
    pub config: Vec<PathBuf>,
    pub context: Option<String>,
    pub server: Option<String>,
    pub limit: RateLimit,
    pub patch_limit: RateLimit,
    pub patch_timeout: Duration,
}

/// Whether operations on queues are measured, which needs eight series for each queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueActions {
    Timed,
    Left,
}

/// A rate limit of the operator's own, in addition to the API server's.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RateLimit {
    pub per_second: Option<f64>,
    pub burst: Option<NonZero<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmSettings {
    /// The path of helm; just `helm` if there is none on the `PATH`, so that the first attempt names the missing
    /// program.
    pub binary: PathBuf,
    /// The number of kept revisions; zero for all.
    pub history_max: u32,
    pub timeout: Duration,
    pub ignore_release: Option<String>,
    pub slots: NonZero<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSettings {
    pub timeout: Duration,
    /// The time limit of enabled scripts.
    pub script_timeout: Duration,
    pub slots: NonZero<usize>,
    /// The time after which a long run no longer keeps other runs waiting for its slot.
    pub patience: Duration,
    pub output: HookOutput,
}

/// How the output of hooks is split for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOutput {
    Lines,
    Json,
}

impl Settings {
    /// Validates flags and variables. The flag takes precedence over the variables, and the prefixed variable over
    /// others.
    pub fn check(args: &StartArgs, environment: &Environment, machine: &Machine) -> Result<Self, ConfigurationError> {
        refuse_helm2(environment)?;
        let words = Words {
            program: Program::AddonOperator,
            args,
            environment,
            machine,
        };
        words.refuse_unsupported()?;
        let work = Work::Modules(Box::new(words.modules()?));
        Self::with(work, &words, &WebhookArgs::default(), words.remarks()?)
    }

    /// Validates the settings of a program without modules, which has fewer settings and other names for some.
    pub fn check_hooks(
        args: &HooksArgs,
        environment: &Environment,
        machine: &Machine,
    ) -> Result<Self, ConfigurationError> {
        let words = Words {
            program: Program::ShellOperator,
            args: &args.as_start(),
            environment,
            machine,
        };
        let dir = words.said("--hooks-dir", args.hooks_dir.as_ref(), &["SHELL_OPERATOR_HOOKS_DIR"])?;
        let work = Work::Hooks(dir.path().unwrap_or_else(|| "hooks".into()));
        Self::with(work, &words, &args.webhooks, words.common_remarks()?)
    }

    fn with(
        work: Work,
        words: &Words<'_>,
        webhooks: &WebhookArgs,
        remarks: Vec<String>,
    ) -> Result<Self, ConfigurationError> {
        let flag = words.args.debug_unix_socket.as_deref();
        Ok(Self {
            work,
            tmp_dir: words.tmp_dir()?,
            tmp_files: words.tmp_files()?,
            namespace: words.namespace()?,
            pod_name: words.pod_name()?,
            leadership: words.leadership()?,
            leader_label: words.leader_label()?,
            leader_services: words.leader_services()?,
            kube: words.kube()?,
            hooks: words.hooks()?,
            listen: words.listen()?,
            metrics_prefix: words.metrics_prefix()?,
            queue_actions: words.queue_actions()?,
            webhooks: words.webhooks(webhooks)?,
            log: words.log()?,
            traces: words.traces()?,
            debug_socket: debug_socket(words.program, flag, words.environment)?,
            secrets: words.shown_secrets()?,
            debug_http: words.debug_http()?,
            remarks,
        })
    }

    /// Which of the two programs this is.
    pub fn program(&self) -> Program {
        match self.work {
            Work::Modules(_) => Program::AddonOperator,
            Work::Hooks(_) => Program::ShellOperator,
        }
    }
}

/// The path of the debug socket for debug commands.
pub fn debug_socket(
    program: Program,
    flag: Option<&str>,
    environment: &Environment,
) -> Result<PathBuf, ConfigurationError> {
    let said = Setting::look_up(environment, "--debug-unix-socket", flag, &["DEBUG_UNIX_SOCKET"])?;
    Ok(said.path().unwrap_or_else(|| program.debug_socket().into()))
}

fn refuse_helm2(environment: &Environment) -> Result<(), ConfigurationError> {
    match HELM2_VARIABLES.iter().find(|name| environment.get(name).is_some()) {
        Some(variable) => Err(ConfigurationError::Helm2 { variable }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
