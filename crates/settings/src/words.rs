//! One function for each setting or group: its names, its valid values, its default. Never knows the purpose of a
//! setting.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use addon_core::module::description::Restoring;

use super::program::Program;
use super::said::{self, Setting};
use super::{
    CRD_FILTERS, ClientLog, ConfigurationError, Environment, Events, HelmSettings, HookOutput, HookSettings,
    KubeSettings, LogFormat, LogLevel, LogSettings, Machine, MissingValues, ModuleSettings, QueueActions, RateLimit,
    StartArgs, Timestamps, TmpFiles, labels,
};

/// The default patience: long enough for a hook that waits for a cloud, short enough to notice a hanging one soon.
const PATIENCE: Duration = Duration::from_mins(1);
const HOOK_TIMEOUT: Duration = Duration::from_hours(1);
const ENABLED_SCRIPT_TIMEOUT: Duration = Duration::from_mins(1);
const HELM_TIMEOUT: Duration = Duration::from_mins(20);
const HELM_HISTORY_MAX: u32 = 10;
const OBJECT_PATCH_TIMEOUT: Duration = Duration::from_secs(10);
pub(super) type Checked<T> = Result<T, ConfigurationError>;

/// All sources of settings.
pub(super) struct Words<'a> {
    pub(super) program: Program,
    pub(super) args: &'a StartArgs,
    pub(super) environment: &'a Environment,
    pub(super) machine: &'a Machine,
}

impl Words<'_> {
    pub(super) fn said(
        &self,
        flag: &'static str,
        value: Option<&String>,
        variables: &[&'static str],
    ) -> Checked<Setting> {
        Setting::look_up(self.environment, flag, value.map(String::as_str), variables)
    }

    /// The settings of a program with modules.
    pub(super) fn modules(&self) -> Checked<ModuleSettings> {
        Ok(ModuleSettings {
            modules_dirs: self.modules_dirs()?,
            global_hooks_dir: self.global_hooks_dir()?,
            unnumbered_order: self.unnumbered_order()?,
            missing_values: self.missing_values()?,
            order: self.order()?,
            extenders: self.extenders()?,
            config_map: self.config_map()?,
            events: self.events()?,
            has_status_objects: self.has_status_objects()?,
            has_plan_warnings: self.has_plan_warnings()?,
            helm: self.helm()?,
            channel: self.channel()?,
            drift: self.drift()?,
            page: self.page()?,
            extra_labels: self.extra_labels()?,
            crd_filters: self.crd_filters()?,
        })
    }

    fn modules_dirs(&self) -> Checked<Vec<PathBuf>> {
        let variables = ["ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR"];
        let said = self.said("--modules-dir", self.args.modules_dir.as_ref(), &variables)?;
        let split = |text: &str| {
            let dirs: Vec<_> = text
                .split(':')
                .filter(|dir| !dir.is_empty())
                .map(PathBuf::from)
                .collect();
            (!dirs.is_empty()).then_some(dirs)
        };
        let dirs = said.parsed("one or more directories joined by colons", split)?;
        Ok(dirs.unwrap_or_else(|| vec!["modules".into()]))
    }

    fn global_hooks_dir(&self) -> Checked<PathBuf> {
        let variables = [
            "ADDON_OPERATOR_GLOBAL_HOOKS_DIR",
            "GLOBAL_HOOKS_DIR",
            "SHELL_OPERATOR_HOOKS_DIR",
        ];
        let said = self.said("--global-hooks-dir", self.args.global_hooks_dir.as_ref(), &variables)?;
        Ok(said.path().unwrap_or_else(|| "global-hooks".into()))
    }

    fn missing_values(&self) -> Checked<MissingValues> {
        let variables = [
            "ADDON_OPERATOR_STRICT_CHECK_VALUES_MODE_ENABLED",
            "STRICT_CHECK_VALUES_MODE_ENABLED",
        ];
        let value = self.args.strict_check_values_mode_enabled.as_ref();
        let strict = self
            .said("--strict-check-values-mode-enabled", value, &variables)?
            .flag()?;
        Ok(if strict {
            MissingValues::Refused
        } else {
            MissingValues::NoValues
        })
    }

    pub(super) fn tmp_dir(&self) -> Checked<PathBuf> {
        let said = self.said(
            "--tmp-dir",
            self.args.tmp_dir.as_ref(),
            self.program.tmp_dir_variables(),
        )?;
        Ok(said.path().unwrap_or_else(|| self.program.tmp_dir().into()))
    }

    pub(super) fn tmp_files(&self) -> Checked<TmpFiles> {
        let value = self.args.shared.debug_keep_tmp_files.as_ref();
        let kept = self
            .said("--debug-keep-tmp-files", value, &["DEBUG_KEEP_TMP_FILES"])?
            .flag()?;
        Ok(if kept { TmpFiles::Kept } else { TmpFiles::Removed })
    }

    pub(super) fn namespace(&self) -> Checked<Option<String>> {
        let variables = self.program.namespace_variables();
        let said = self.said("--namespace", self.args.namespace.as_ref(), variables)?;
        let read = |text: &str| said::is_dns_label(text).then(|| text.to_owned());
        let said = said.parsed("small letters, digits and dashes, 63 at most", read)?;
        Ok(said.or_else(|| self.machine.pod_namespace.clone()))
    }

    pub(super) fn pod_name(&self) -> Checked<Option<String>> {
        let said = Setting::look_up(self.environment, "", None, &["ADDON_OPERATOR_POD", "HOSTNAME"])?.text();
        // Outside of a pod the host's name means nothing in the cluster.
        let in_pod = self.machine.pod_namespace.is_some() || self.environment.get("ADDON_OPERATOR_POD").is_some();
        Ok(said.filter(|_| in_pod))
    }

    fn config_map(&self) -> Checked<String> {
        let said = self.said(
            "--config-map",
            self.args.config_map.as_ref(),
            &["ADDON_OPERATOR_CONFIG_MAP"],
        )?;
        let read = |text: &str| said::is_object_name(text).then(|| text.to_owned());
        let name = said.parsed("the name of an object: small letters, digits, dashes and dots", read)?;
        Ok(name.unwrap_or_else(|| "addon-operator".to_owned()))
    }

    fn events(&self) -> Checked<Events> {
        let said = self.said("--events", self.args.events.as_ref(), &["ADDON_OPERATOR_EVENTS"])?;
        Ok(if said.flag_or(true)? {
            Events::Told
        } else {
            Events::Left
        })
    }

    fn has_status_objects(&self) -> Checked<bool> {
        let value = self.args.status_objects.as_ref();
        let said = self.said("--status-objects", value, &["ADDON_OPERATOR_STATUS_OBJECTS"])?;
        said.flag_or(true)
    }

    fn has_plan_warnings(&self) -> Checked<bool> {
        let value = self.args.plan_warnings.as_ref();
        let said = self.said("--plan-warnings", value, &["ADDON_OPERATOR_PLAN_WARNINGS"])?;
        said.flag_or(false)
    }

    pub(super) fn kube(&self) -> Checked<KubeSettings> {
        let args = self.args;
        let context = self
            .said("--kube-context", args.shared.kube_context.as_ref(), &["KUBE_CONTEXT"])?
            .text();
        let server = self.said("--kube-server", args.shared.kube_server.as_ref(), &["KUBE_SERVER"])?;
        let url = |text: &str| {
            let address = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            address.is_some_and(|rest| !rest.is_empty()).then(|| text.to_owned())
        };
        let qps = self.said(
            "--kube-client-qps",
            args.shared.kube_client_qps.as_ref(),
            &["KUBE_CLIENT_QPS"],
        )?;
        let burst = self.said(
            "--kube-client-burst",
            args.shared.kube_client_burst.as_ref(),
            &["KUBE_CLIENT_BURST"],
        )?;
        let value = args.shared.object_patcher_kube_client_qps.as_ref();
        let patch_qps = self.said(
            "--object-patcher-kube-client-qps",
            value,
            &["OBJECT_PATCHER_KUBE_CLIENT_QPS"],
        )?;
        let value = args.shared.object_patcher_kube_client_burst.as_ref();
        let patch_burst = self.said(
            "--object-patcher-kube-client-burst",
            value,
            &["OBJECT_PATCHER_KUBE_CLIENT_BURST"],
        )?;
        let value = args.shared.object_patcher_kube_client_timeout.as_ref();
        let patch_timeout = self.said(
            "--object-patcher-kube-client-timeout",
            value,
            &["OBJECT_PATCHER_KUBE_CLIENT_TIMEOUT"],
        )?;
        Ok(KubeSettings {
            config: self.kube_config()?,
            context,
            server: server.parsed("an address such as https://10.0.0.1:6443", url)?,
            limit: RateLimit {
                per_second: qps.rate()?,
                burst: burst.count()?,
            },
            patch_limit: RateLimit {
                per_second: patch_qps.rate()?,
                burst: patch_burst.count()?,
            },
            patch_timeout: patch_timeout.duration()?.unwrap_or(OBJECT_PATCH_TIMEOUT),
        })
    }

    /// The kubeconfig files. A named file must exist; the default one may be missing.
    fn kube_config(&self) -> Checked<Vec<PathBuf>> {
        let said = self.said("--kube-config", self.args.shared.kube_config.as_ref(), &["KUBE_CONFIG"])?;
        if let Some(path) = said.parsed("the path of a kubeconfig that exists", existing_file)? {
            return Ok(vec![path]);
        }
        if let Some(list) = self.environment.get("KUBECONFIG") {
            // As with kubectl, files of the list may be missing.
            return Ok(std::env::split_paths(list).filter(|path| path.is_file()).collect());
        }
        let custom = self
            .environment
            .get("HOME")
            .map(|home| PathBuf::from(home).join(".kube/config"));
        Ok(custom.filter(|path| path.is_file()).into_iter().collect())
    }

    fn helm(&self) -> Checked<HelmSettings> {
        let args = self.args;
        let binary = self.said("--helm-bin", args.helm_bin.as_ref(), &["HELM_BIN"])?.path();
        let path = self.environment.get("PATH");
        let history = self.said(
            "--helm-history-max",
            args.helm_history_max.as_ref(),
            &["HELM_HISTORY_MAX"],
        )?;
        let timeout = self.said("--helm-timeout", args.helm_timeout.as_ref(), &["HELM_TIMEOUT"])?;
        let ignore = self.said(
            "--helm-ignore-release",
            args.helm_ignore_release.as_ref(),
            &["HELM_IGNORE_RELEASE"],
        )?;
        let slots = self.said("--helm-slots", args.helm_slots.as_ref(), &["ADDON_OPERATOR_HELM_SLOTS"])?;
        Ok(HelmSettings {
            binary: binary
                .or_else(|| said::find_program("helm", path))
                .unwrap_or_else(|| "helm".into()),
            history_max: history
                .parsed("a whole number, 0 for no limit", |text| text.parse().ok())?
                .unwrap_or(HELM_HISTORY_MAX),
            timeout: timeout.duration()?.unwrap_or(HELM_TIMEOUT),
            ignore_release: ignore.text(),
            slots: slots.count()?.unwrap_or_else(|| self.machine.helm_slots()),
        })
    }

    pub(super) fn hooks(&self) -> Checked<HookSettings> {
        let args = self.args;
        let timeout = self.said(
            "--hook-timeout",
            args.shared.hook_timeout.as_ref(),
            &["ADDON_OPERATOR_HOOK_TIMEOUT"],
        )?;
        let script = self.said(
            "--enabled-script-timeout",
            args.enabled_script_timeout.as_ref(),
            &["ADDON_OPERATOR_ENABLED_SCRIPT_TIMEOUT"],
        )?;
        let slots = self.said(
            "--hook-slots",
            args.shared.hook_slots.as_ref(),
            &["ADDON_OPERATOR_HOOK_SLOTS"],
        )?;
        let patience = self.said(
            "--patience",
            args.shared.patience.as_ref(),
            &["ADDON_OPERATOR_PATIENCE"],
        )?;
        let proxy = self.said(
            "--log-proxy-hook-json",
            args.shared.log_proxy_hook_json.as_ref(),
            &["LOG_PROXY_HOOK_JSON"],
        )?;
        Ok(HookSettings {
            timeout: timeout.duration()?.unwrap_or(HOOK_TIMEOUT),
            script_timeout: script.duration()?.unwrap_or(ENABLED_SCRIPT_TIMEOUT),
            slots: slots.count()?.unwrap_or_else(|| self.machine.hook_slots()),
            patience: patience.duration()?.unwrap_or(PATIENCE),
            output: if proxy.flag()? {
                HookOutput::Json
            } else {
                HookOutput::Lines
            },
        })
    }

    fn drift(&self) -> Checked<Restoring> {
        let said = self.said("--drift", self.args.drift.as_ref(), &["ADDON_OPERATOR_DRIFT"])?;
        Ok(said
            .parsed("one of off, absent, changed", Restoring::parse)?
            .unwrap_or(Restoring::Absent))
    }

    fn extra_labels(&self) -> Checked<BTreeMap<String, String>> {
        let variables = ["ADDON_OPERATOR_CRD_EXTRA_LABELS"];
        let said = self.said("--crd-extra-labels", self.args.crd_extra_labels.as_ref(), &variables)?;
        let labels = said.parsed("labels such as heritage=addon-operator,team=core", labels::parse)?;
        Ok(labels::with_ours(labels.unwrap_or_default()))
    }

    /// The prefixes of files that are no CRDs. An empty prefix is ignored, because every name begins with it.
    fn crd_filters(&self) -> Checked<Vec<String>> {
        let variables = ["ADDON_OPERATOR_CRD_FILTER_PREFIXES"];
        let said = self
            .said("--crd-filters", self.args.crd_filters.as_ref(), &variables)?
            .text();
        let prefixes = said.as_deref().unwrap_or(CRD_FILTERS).split(',').map(str::trim);
        Ok(prefixes
            .filter(|prefix| !prefix.is_empty())
            .map(str::to_owned)
            .collect())
    }

    /// Whether operations on queues are measured. The original knows only the value `no`.
    pub(super) fn queue_actions(&self) -> Checked<QueueActions> {
        let said = Setting::look_up(self.environment, "", None, &["QUEUE_ACTIONS_METRICS"])?.text();
        Ok(match said.as_deref() {
            Some("no") => QueueActions::Left,
            _ => QueueActions::Timed,
        })
    }

    pub(super) fn log(&self) -> Checked<LogSettings> {
        let args = self.args;
        let level = self
            .said("--log-level", args.shared.log_level.as_ref(), &["LOG_LEVEL"])?
            .text();
        let kind = self.said("--log-type", args.shared.log_type.as_ref(), &["LOG_TYPE"])?;
        let no_time = self
            .said("--log-no-time", args.shared.log_no_time.as_ref(), &["LOG_NO_TIME"])?
            .flag()?;
        let requests = self.said(
            "--debug-kubernetes-api",
            args.shared.debug_kubernetes_api.as_ref(),
            &["DEBUG_KUBERNETES_API"],
        )?;
        let time = if no_time { Timestamps::Left } else { Timestamps::Shown };
        let read = |text: &str| match text {
            "json" => Some(LogFormat::Json),
            "text" => Some(LogFormat::Text(time)),
            "color" => Some(LogFormat::Color(time)),
            _ => None,
        };
        Ok(LogSettings {
            // An unknown level has always meant info, and leads to a warning.
            level: level.and_then(|text| LogLevel::parse(&text)).unwrap_or(LogLevel::Info),
            format: kind
                .parsed("one of json, text, color", read)?
                .unwrap_or(LogFormat::Json),
            client: if requests.flag()? {
                ClientLog::Requests
            } else {
                ClientLog::Quiet
            },
        })
    }
}

fn existing_file(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    path.is_file().then_some(path)
}
