//! What was said on the command line of a program that serves hooks alone, as it was said: nothing here is checked.
//! Never reads the environment; that is done together with the check, which knows whose word counts.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

use clap::Args;

use super::StartArgs;
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

    /// How long a hook may run [env: ADDON_OPERATOR_HOOK_TIMEOUT] [default: 1h]
    #[arg(long, value_name = "DURATION")]
    pub hook_timeout: Option<String>,

    /// Hooks that may run at once [env: ADDON_OPERATOR_HOOK_SLOTS] [default: twice the processors]
    #[arg(long, value_name = "NUMBER")]
    pub hook_slots: Option<String>,

    /// Namespace of the services of webhooks [env: SHELL_OPERATOR_NAMESPACE] [default: the pod's own]
    #[arg(long, help_heading = "Cluster")]
    pub namespace: Option<String>,

    /// Path of the kubeconfig [env: KUBE_CONFIG, then KUBECONFIG]
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kube_config: Option<String>,

    /// Context of the kubeconfig [env: KUBE_CONTEXT]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub kube_context: Option<String>,

    /// Address of the API server instead of the kubeconfig's [env: KUBE_SERVER]
    #[arg(long, value_name = "URL", help_heading = "Cluster")]
    pub kube_server: Option<String>,

    /// Requests per second to the API server [env: KUBE_CLIENT_QPS] [default: no limit of ours]
    #[arg(long, value_name = "NUMBER", help_heading = "Cluster")]
    pub kube_client_qps: Option<String>,

    /// Requests at once before the limit counts [env: KUBE_CLIENT_BURST]
    #[arg(long, value_name = "NUMBER", help_heading = "Cluster")]
    pub kube_client_burst: Option<String>,

    /// Likewise for object patches [env: OBJECT_PATCHER_KUBE_CLIENT_QPS]
    #[arg(long, value_name = "NUMBER", help_heading = "Cluster")]
    pub object_patcher_kube_client_qps: Option<String>,

    /// Likewise for object patches [env: OBJECT_PATCHER_KUBE_CLIENT_BURST]
    #[arg(long, value_name = "NUMBER", help_heading = "Cluster")]
    pub object_patcher_kube_client_burst: Option<String>,

    /// How long one object patch may take [env: OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT] [default: 10s]
    #[arg(long, value_name = "DURATION", help_heading = "Cluster")]
    pub object_patcher_kube_client_timeout: Option<String>,

    /// Address of the routes for people and metrics [env: SHELL_OPERATOR_LISTEN_ADDRESS] [default: 0.0.0.0]
    #[arg(long, value_name = "IP", help_heading = "Listening")]
    pub listen_address: Option<String>,

    /// Their port [env: SHELL_OPERATOR_LISTEN_PORT] [default: 9115]
    #[arg(long, value_name = "PORT", help_heading = "Listening")]
    pub listen_port: Option<String>,

    /// What the names of our metrics begin with [env: SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX] [default:
    /// shell_operator_]
    #[arg(long, value_name = "PREFIX", help_heading = "Listening")]
    pub prometheus_metrics_prefix: Option<String>,

    /// trace, debug, info, warn, error or fatal [env: LOG_LEVEL] [default: info]
    #[arg(long, value_name = "LEVEL", help_heading = "Logging")]
    pub log_level: Option<String>,

    /// json, text or color [env: LOG_TYPE] [default: json]
    #[arg(long, value_name = "TYPE", help_heading = "Logging")]
    pub log_type: Option<String>,

    /// Leave the time out of text records [env: LOG_NO_TIME] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Logging")]
    pub log_no_time: Option<String>,

    /// Take a hook's whole output for one JSON value [env: LOG_PROXY_HOOK_JSON] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Logging")]
    pub log_proxy_hook_json: Option<String>,

    /// Socket of the debug commands [env: DEBUG_UNIX_SOCKET] [default: /var/run/shell-operator/debug.socket]
    #[arg(long, value_name = "FILE", help_heading = "Debugging")]
    pub debug_unix_socket: Option<String>,

    /// Serve the debug routes over TCP too [env: DEBUG_HTTP_SERVER_ADDR]
    #[arg(long, value_name = "ADDRESS", help_heading = "Debugging")]
    pub debug_http_addr: Option<String>,

    /// Leave temporary files for inspection [env: DEBUG_KEEP_TMP_FILES] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Debugging")]
    pub debug_keep_tmp_files: Option<String>,

    /// Log the requests to the API server [env: DEBUG_KUBERNETES_API] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Debugging")]
    pub debug_kubernetes_api: Option<String>,

    #[command(flatten)]
    pub webhooks: WebhookArgs,
}

impl HooksArgs {
    /// What the program with modules means by the same words; how they are called is the program's.
    pub(super) fn as_start(&self) -> StartArgs {
        let args = self.clone();
        StartArgs {
            tmp_dir: args.tmp_dir,
            hook_timeout: args.hook_timeout,
            hook_slots: args.hook_slots,
            namespace: args.namespace,
            kube_config: args.kube_config,
            kube_context: args.kube_context,
            kube_server: args.kube_server,
            kube_client_qps: args.kube_client_qps,
            kube_client_burst: args.kube_client_burst,
            object_patcher_kube_client_qps: args.object_patcher_kube_client_qps,
            object_patcher_kube_client_burst: args.object_patcher_kube_client_burst,
            object_patcher_kube_client_timeout: args.object_patcher_kube_client_timeout,
            prometheus_listen_address: args.listen_address,
            prometheus_listen_port: args.listen_port,
            prometheus_metrics_prefix: args.prometheus_metrics_prefix,
            log_level: args.log_level,
            log_type: args.log_type,
            log_no_time: args.log_no_time,
            log_proxy_hook_json: args.log_proxy_hook_json,
            debug_unix_socket: args.debug_unix_socket,
            debug_http_addr: args.debug_http_addr,
            debug_keep_tmp_files: args.debug_keep_tmp_files,
            debug_kubernetes_api: args.debug_kubernetes_api,
            ..StartArgs::default()
        }
    }
}
