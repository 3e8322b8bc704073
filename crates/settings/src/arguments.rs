//! The flags of `start` as unvalidated text. Never reads the environment; the validation does that, because it knows
//! whether the flag or a variable counts.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

use clap::Args;

use super::shared_arguments::SharedArgs;

/// The flags of start. Every one has a variable, named in brackets, which counts when the flag is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Modules and hooks")]
pub struct StartArgs {
    /// Directories with modules, joined by colons [env: ADDON_OPERATOR_MODULES_DIR, MODULES_DIR] [default: modules]
    #[arg(long, value_name = "DIRS")]
    pub modules_dir: Option<String>,

    /// Directory with global hooks [env: ADDON_OPERATOR_GLOBAL_HOOKS_DIR, GLOBAL_HOOKS_DIR] [default: global-hooks]
    #[arg(long, value_name = "DIR")]
    pub global_hooks_dir: Option<String>,

    /// Order of modules without a number [env: ADDON_OPERATOR_UNNUMBERED_MODULES_ORDER] [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub unnumbered_modules_order: Option<String>,

    /// Directory for temporary files [env: ADDON_OPERATOR_TMP_DIR] [default: /tmp/addon-operator]
    #[arg(long, value_name = "DIR")]
    pub tmp_dir: Option<String>,

    /// Refuse a module that has no values.yaml [env: ADDON_OPERATOR_STRICT_CHECK_VALUES_MODE_ENABLED] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub strict_check_values_mode_enabled: Option<String>,

    /// Start no module as long as one before it fails [env: ADDON_OPERATOR_STRICT_ORDER] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub strict_order: Option<String>,

    /// Sources that say whether a module runs, in their order: the last one with an opinion wins
    /// [env: ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS] [default: Static,DynamicallyEnabled,KubeConfig,ScriptEnabled]
    #[arg(long, value_name = "NAMES")]
    pub applied_module_extenders: Option<String>,

    /// Longest run of an enabled script [env: ADDON_OPERATOR_ENABLED_SCRIPT_TIMEOUT] [default: 1m]
    #[arg(long, value_name = "DURATION")]
    pub enabled_script_timeout: Option<String>,

    /// Run hooks in a directory of their own [env: ADDON_OPERATOR_SHELL_CHROOT_DIR]
    #[arg(long, value_name = "DIR", hide = true)]
    pub shell_chroot_dir: Option<String>,

    /// Namespace of the releases and the ConfigMap [env: ADDON_OPERATOR_NAMESPACE] [default: the pod's own, else the
    /// kubeconfig's]
    #[arg(long, help_heading = "Cluster")]
    pub namespace: Option<String>,

    /// Name of the ConfigMap with the configuration [env: ADDON_OPERATOR_CONFIG_MAP] [default: addon-operator]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub config_map: Option<String>,

    /// Report state changes of modules as Kubernetes Events [env: ADDON_OPERATOR_EVENTS] [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Cluster")]
    pub events: Option<String>,

    /// Write a Module object for each module and an Operator object, if the cluster has these kinds [env:
    /// ADDON_OPERATOR_STATUS_OBJECTS] [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Cluster")]
    pub status_objects: Option<String>,

    /// Answer an edit of the ConfigMap with the first lines of its plan, as warnings [env: ADDON_OPERATOR_PLAN_WARNINGS] [default:
    /// false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Cluster")]
    pub plan_warnings: Option<String>,

    /// Revisions kept per release, 0 for all [env: HELM_HISTORY_MAX] [default: 10]
    #[arg(long, value_name = "NUMBER", help_heading = "Helm")]
    pub helm_history_max: Option<String>,

    /// Longest run of helm [env: HELM_TIMEOUT] [default: 20m]
    #[arg(long, value_name = "DURATION", help_heading = "Helm")]
    pub helm_timeout: Option<String>,

    /// Name of a release that is never changed [env: HELM_IGNORE_RELEASE] [default: none]
    #[arg(long, value_name = "NAME", help_heading = "Helm")]
    pub helm_ignore_release: Option<String>,

    /// Path of the helm binary [env: HELM_BIN] [default: the first helm on PATH]
    #[arg(long, value_name = "FILE", help_heading = "Helm")]
    pub helm_bin: Option<String>,

    /// Limit of helm runs at once [env: ADDON_OPERATOR_HELM_SLOTS] [default: by processors and memory]
    #[arg(long, value_name = "NUMBER", help_heading = "Helm")]
    pub helm_slots: Option<String>,

    /// Repair of objects of releases: off, absent (missing ones), or changed (altered ones, too) [env: ADDON_OPERATOR_DRIFT] [default: absent]
    #[arg(long, value_name = "WHAT", help_heading = "Helm")]
    pub drift: Option<String>,

    /// Labels of every object of a release and of CRDs [env: ADDON_OPERATOR_CRD_EXTRA_LABELS] [default:
    /// heritage=addon-operator]
    #[arg(long, value_name = "LABELS", help_heading = "Helm")]
    pub crd_extra_labels: Option<String>,

    /// Prefixes of file names in crds/ that are left out [env: ADDON_OPERATOR_CRD_FILTER_PREFIXES] [default: doc-,_]
    #[arg(long, value_name = "PREFIXES", help_heading = "Modules and hooks")]
    pub crd_filters: Option<String>,

    /// Ignored: it limited a part of the original that is not needed here [env: HELM_MONITOR_KUBE_CLIENT_QPS]
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub helm_monitor_kube_client_qps: Option<String>,

    /// Ignored: it limited a part of the original that is not needed here [env: HELM_MONITOR_KUBE_CLIENT_BURST]
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub helm_monitor_kube_client_burst: Option<String>,

    /// Address of probes and metrics [env: ADDON_OPERATOR_LISTEN_ADDRESS] [default: 0.0.0.0]
    #[arg(long, value_name = "IP", help_heading = "Listening")]
    pub prometheus_listen_address: Option<String>,

    /// Port of probes and metrics [env: ADDON_OPERATOR_LISTEN_PORT] [default: 9650]
    #[arg(long, value_name = "PORT", help_heading = "Listening")]
    pub prometheus_listen_port: Option<String>,

    /// Prefix of the names of the operator's metrics [env: ADDON_OPERATOR_PROMETHEUS_METRICS_PREFIX] [default:
    /// addon_operator_]
    #[arg(long, value_name = "PREFIX", help_heading = "Listening")]
    pub prometheus_metrics_prefix: Option<String>,

    /// Address of the page for browsers, or off [env: ADDON_OPERATOR_PAGE_LISTEN] [default: 127.0.0.1:9655]
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening")]
    pub page_listen: Option<String>,

    /// Review the bearer token of each request for the page; an address outside of loopback needs it [env:
    /// ADDON_OPERATOR_PAGE_REVIEW] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "Listening")]
    pub page_review: Option<String>,

    /// Ignored, as in the original: nothing listens on it [env: ADDON_OPERATOR_ADMISSION_SERVER_LISTEN_PORT]
    #[arg(long, value_name = "PORT", hide = true)]
    pub admission_server_listen_port: Option<String>,

    /// Ignored, as in the original: nothing is read from it [env: ADDON_OPERATOR_ADMISSION_SERVER_CERTS_DIR]
    #[arg(long, value_name = "DIR", hide = true)]
    pub admission_server_certs_dir: Option<String>,

    /// Ignored: the original's server had no routes [env: ADDON_OPERATOR_ADMISSION_SERVER_ENABLED]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, hide = true)]
    pub admission_server_enabled: Option<String>,

    /// Socket of the debug commands [env: DEBUG_UNIX_SOCKET] [default: /var/run/addon-operator/debug.socket]
    #[arg(long, value_name = "FILE", help_heading = "Debugging")]
    pub debug_unix_socket: Option<String>,

    #[command(flatten)]
    pub shared: SharedArgs,
}
