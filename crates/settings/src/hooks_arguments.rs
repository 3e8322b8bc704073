//! The flags of a program without modules, as unvalidated text. Never reads the environment; the validation does that,
//! because it knows whether the flag or a variable counts.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

use clap::Args;

use super::StartArgs;
use super::shared_arguments::SharedArgs;
use super::webhook_arguments::WebhookArgs;

/// The flags of start for hooks alone. Every one has a variable, named in brackets, which counts when the flag is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Hooks")]
pub struct HooksArgs {
    /// Directory with hooks [env: SHELL_OPERATOR_HOOKS_DIR] [default: hooks]
    #[arg(long, value_name = "DIR")]
    pub hooks_dir: Option<String>,

    /// Directory for temporary files [env: SHELL_OPERATOR_TMP_DIR] [default: /tmp/shell-operator]
    #[arg(long, value_name = "DIR")]
    pub tmp_dir: Option<String>,

    /// Namespace of the services by which the API server reaches webhooks [env: SHELL_OPERATOR_NAMESPACE] [default: the pod's own]
    #[arg(long, help_heading = "Cluster")]
    pub namespace: Option<String>,

    /// Address of probes and metrics [env: SHELL_OPERATOR_LISTEN_ADDRESS] [default: 0.0.0.0]
    #[arg(long, value_name = "IP", help_heading = "Listening")]
    pub listen_address: Option<String>,

    /// Port of probes and metrics [env: SHELL_OPERATOR_LISTEN_PORT] [default: 9115]
    #[arg(long, value_name = "PORT", help_heading = "Listening")]
    pub listen_port: Option<String>,

    /// Prefix of the names of the operator's metrics [env: SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX] [default:
    /// shell_operator_]
    #[arg(long, value_name = "PREFIX", help_heading = "Listening")]
    pub prometheus_metrics_prefix: Option<String>,

    /// Socket of the debug commands [env: DEBUG_UNIX_SOCKET] [default: /var/run/shell-operator/debug.socket]
    #[arg(long, value_name = "FILE", help_heading = "Debugging")]
    pub debug_unix_socket: Option<String>,

    #[command(flatten)]
    pub webhooks: WebhookArgs,

    #[command(flatten)]
    pub shared: SharedArgs,
}

impl HooksArgs {
    /// The same flags in the form of the program with modules. The names of flags stay the program's own.
    pub(super) fn as_start(&self) -> StartArgs {
        let args = self.clone();
        StartArgs {
            tmp_dir: args.tmp_dir,
            namespace: args.namespace,
            prometheus_listen_address: args.listen_address,
            prometheus_listen_port: args.listen_port,
            prometheus_metrics_prefix: args.prometheus_metrics_prefix,
            debug_unix_socket: args.debug_unix_socket,
            shared: args.shared,
            ..StartArgs::default()
        }
    }
}
