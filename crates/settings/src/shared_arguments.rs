//! The flags of both programs, as unvalidated text. Never reads the environment; the validation does that, because it
//! knows whether the flag or a variable counts.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

use clap::Args;

/// The flags that both programs have by the same names and variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SharedArgs {
    /// Longest run of a hook [env: ADDON_OPERATOR_HOOK_TIMEOUT] [default: 1h]
    #[arg(long, value_name = "DURATION", help_heading = "Hooks")]
    pub hook_timeout: Option<String>,

    /// Limit of hooks that run at once [env: ADDON_OPERATOR_HOOK_SLOTS] [default: twice the processors]
    #[arg(long, value_name = "NUMBER", help_heading = "Hooks")]
    pub hook_slots: Option<String>,

    /// Time after which a hung run no longer keeps others waiting for its slot [env: ADDON_OPERATOR_PATIENCE] [default: 1m]
    #[arg(long, value_name = "DURATION", help_heading = "Hooks")]
    pub patience: Option<String>,

    /// Path of the kubeconfig file [env: KUBE_CONFIG, then KUBECONFIG]
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kube_config: Option<String>,

    /// Context of the kubeconfig [env: KUBE_CONTEXT] [default: its current context]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub kube_context: Option<String>,

    /// Address of the API server [env: KUBE_SERVER] [default: the kubeconfig's]
    #[arg(long, value_name = "URL", help_heading = "Cluster")]
    pub kube_server: Option<String>,

    /// Limit of requests per second to the API server [env: KUBE_CLIENT_QPS] [default: no limit]
    #[arg(long, value_name = "NUMBER", help_heading = "Cluster")]
    pub kube_client_qps: Option<String>,

    /// Requests that may exceed this limit in a burst [env: KUBE_CLIENT_BURST]
    #[arg(long, value_name = "NUMBER", help_heading = "Cluster")]
    pub kube_client_burst: Option<String>,

    /// Limit of requests per second for object patches of hooks [env: OBJECT_PATCHER_KUBE_CLIENT_QPS] [default: no limit]
    #[arg(long, value_name = "NUMBER", help_heading = "Cluster")]
    pub object_patcher_kube_client_qps: Option<String>,

    /// Requests that may exceed this limit in a burst [env: OBJECT_PATCHER_KUBE_CLIENT_BURST]
    #[arg(long, value_name = "NUMBER", help_heading = "Cluster")]
    pub object_patcher_kube_client_burst: Option<String>,

    /// Longest run of one object patch [env: OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT] [default: 10s]
    #[arg(long, value_name = "DURATION", help_heading = "Cluster")]
    pub object_patcher_kube_client_timeout: Option<String>,

    /// Least severe records that are logged: trace, debug, info, warn, error or fatal [env: LOG_LEVEL] [default: info]
    #[arg(long, value_name = "LEVEL", help_heading = "Logging")]
    pub log_level: Option<String>,

    /// Format of the log: json, text or color [env: LOG_TYPE] [default: json]
    #[arg(long, value_name = "TYPE", help_heading = "Logging")]
    pub log_type: Option<String>,

    /// Omit the time in text records [env: LOG_NO_TIME] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Logging")]
    pub log_no_time: Option<String>,

    /// Read the whole output of a hook as one JSON value [env: LOG_PROXY_HOOK_JSON] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Logging")]
    pub log_proxy_hook_json: Option<String>,

    /// TCP address on which the debug routes are served, too [env: DEBUG_HTTP_SERVER_ADDR] [default: none]
    #[arg(long, value_name = "ADDRESS", help_heading = "Debugging")]
    pub debug_http_addr: Option<String>,

    /// Show secrets in values and snapshots in clear text [env: ADDON_OPERATOR_SHOW_SECRETS] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Debugging")]
    pub show_secrets: Option<String>,

    /// Keep temporary files for inspection [env: DEBUG_KEEP_TMP_FILES] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Debugging")]
    pub debug_keep_tmp_files: Option<String>,

    /// Log every request to the API server [env: DEBUG_KUBERNETES_API] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Debugging")]
    pub debug_kubernetes_api: Option<String>,
}
