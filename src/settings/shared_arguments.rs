//! What was said on the command line of either program, as it was said: nothing here is checked.
//! Never reads the environment; that is done together with the check, which knows whose word counts.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

use clap::Args;

/// The flags that both programs have by the same names and variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SharedArgs {
    /// How long a hook may run [env: ADDON_OPERATOR_HOOK_TIMEOUT] [default: 1h]
    #[arg(long, value_name = "DURATION", help_heading = "Hooks")]
    pub hook_timeout: Option<String>,

    /// Hooks that may run at once [env: ADDON_OPERATOR_HOOK_SLOTS] [default: twice the processors]
    #[arg(long, value_name = "NUMBER", help_heading = "Hooks")]
    pub hook_slots: Option<String>,

    /// How long others wait for a run that does not get on [env: ADDON_OPERATOR_PATIENCE] [default: 1m]
    #[arg(long, value_name = "DURATION", help_heading = "Hooks")]
    pub patience: Option<String>,

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

    /// Serve the debug routes over TCP too [env: DEBUG_HTTP_SERVER_ADDR]
    #[arg(long, value_name = "ADDRESS", help_heading = "Debugging")]
    pub debug_http_addr: Option<String>,

    /// Show secrets to everybody who looks at values or snapshots [env: ADDON_OPERATOR_SHOW_SECRETS] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Debugging")]
    pub show_secrets: Option<String>,

    /// Leave temporary files for inspection [env: DEBUG_KEEP_TMP_FILES] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Debugging")]
    pub debug_keep_tmp_files: Option<String>,

    /// Log the requests to the API server [env: DEBUG_KUBERNETES_API] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Debugging")]
    pub debug_kubernetes_api: Option<String>,
}
