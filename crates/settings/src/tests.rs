//! The precedence of flags and variables, valid values, and error texts.

use channel_core::leadership::lease::Timing;
use clap::{Args, Command, FromArgMatches};

use super::channel::Follow;
use super::leadership::Name;
use super::page::Page;

use super::*;

mod channel;
mod election;
mod page;
mod reviews;

type Flags<'a> = &'a [&'a str];
type Variables<'a> = &'a [(&'a str, &'a str)];

fn machine() -> Machine {
    Machine {
        pod_namespace: None,
        processors: NonZero::new(2).unwrap(),
        memory_limit: None,
    }
}

/// Parses the flags as the real command line does, and validates them with the variables.
fn check_on(machine: &Machine, flags: &[&str], variables: &[(&str, &str)]) -> Result<Settings, String> {
    let command = StartArgs::augment_args(Command::new("start"));
    let matches = command
        .try_get_matches_from([&["start"], flags].concat())
        .map_err(|error| error.to_string())?;
    let args = StartArgs::from_arg_matches(&matches).unwrap();
    let environment: Environment = variables.iter().copied().collect();
    Settings::check(&args, &environment, machine).map_err(|error| error.to_string())
}

fn check(flags: &[&str], variables: &[(&str, &str)]) -> Result<Settings, String> {
    check_on(&machine(), flags, variables)
}

fn modules(checked: Result<Settings, String>) -> ModuleSettings {
    match checked.unwrap().work {
        Work::Modules(modules) => *modules,
        Work::Hooks(dir) => panic!("only the hooks of {}", dir.display()),
    }
}

fn check_hooks(flags: &[&str], variables: &[(&str, &str)]) -> Result<Settings, String> {
    let command = HooksArgs::augment_args(Command::new("start"));
    let matches = command
        .try_get_matches_from([&["start"], flags].concat())
        .map_err(|error| error.to_string())?;
    let args = HooksArgs::from_arg_matches(&matches).unwrap();
    let environment: Environment = variables.iter().copied().collect();
    Settings::check_hooks(&args, &environment, &machine()).map_err(|error| error.to_string())
}

#[test]
fn hooks_alone_have_names_and_defaults_of_their_own() {
    let settings = check_hooks(&[], &[("ADDON_OPERATOR_LISTEN_PORT", "1"), ("HELM2", "1")]).unwrap();
    assert_eq!(settings.work, Work::Hooks("hooks".into()));
    assert_eq!(settings.listen, "0.0.0.0:9115".parse().unwrap());
    assert_eq!(settings.metrics_prefix, "shell_operator_");
    assert_eq!(settings.tmp_dir, PathBuf::from("/tmp/shell-operator"));
    assert_eq!(
        settings.debug_socket,
        PathBuf::from("/var/run/shell-operator/debug.socket")
    );
    let variables = [
        ("SHELL_OPERATOR_HOOKS_DIR", "/h"),
        ("SHELL_OPERATOR_LISTEN_PORT", "80"),
        ("LOG_LEVEL", "loud"),
    ];
    let settings = check_hooks(&["--listen-address=::1", "--hooks-dir=/there"], &variables).unwrap();
    assert_eq!(settings.work, Work::Hooks("/there".into()));
    assert_eq!(settings.listen, "[::1]:80".parse().unwrap());
    assert_eq!(settings.remarks.len(), 1);
    let refused = check_hooks(&["--listen-port=x"], &[]).unwrap_err();
    assert!(refused.contains("--listen-port is 'x'"), "{refused}");
}

fn webhooks_of(program: &str, configuration: &str) -> WebhookSettings {
    let side = |kind: &str, port: u16| webhooks::WebhookSide {
        service: format!("{program}-{kind}-svc"),
        listen: SocketAddr::from(([0, 0, 0, 0], port)),
        is_set_up: false,
        cert: format!("/{kind}-certs/tls.crt").into(),
        key: format!("/{kind}-certs/tls.key").into(),
        ca: format!("/{kind}-certs/ca.crt").into(),
        is_named: false,
        client_ca: Vec::new(),
    };
    WebhookSettings {
        configuration: configuration.to_owned(),
        owner: None,
        secret: format!("{program}-webhook-certs"),
        admission: side("validating", 9680),
        conversion: side("conversion", 9681),
    }
}

#[test]
fn without_a_word_everything_has_its_default() {
    let settings = check(&[], &[]).unwrap();
    let expected = Settings {
        work: Work::Modules(Box::new(ModuleSettings {
            modules_dirs: vec!["modules".into()],
            global_hooks_dir: "global-hooks".into(),
            unnumbered_order: 1,
            missing_values: MissingValues::NoValues,
            order: Order::Relaxed,
            extenders: Extenders::default(),
            config_map: "addon-operator".into(),
            helm: HelmSettings {
                binary: "helm".into(),
                history_max: 10,
                timeout: Duration::from_mins(20),
                ignore_release: None,
                slots: NonZero::new(2).unwrap(),
            },
            channel: Box::new(ChannelSettings {
                follow: Follow::NoPod,
                registries: [].into(),
                mirrors: [].into(),
                plain: [].into(),
                authority: None,
                keys: None,
                notify_token: None,
            }),
            events: Events::Told,
            has_status_objects: true,
            has_plan_warnings: false,
            drift: Restoring::Absent,
            page: Page::Loopback {
                address: "127.0.0.1:9655".parse().unwrap(),
                is_chosen: false,
            },
            extra_labels: BTreeMap::from([("heritage".to_owned(), "addon-operator".to_owned())]),
            crd_filters: vec!["doc-".to_owned(), "_".to_owned()],
        })),
        tmp_dir: "/tmp/addon-operator".into(),
        tmp_files: TmpFiles::Removed,
        namespace: None,
        pod_name: None,
        leadership: Leadership::Elected {
            lease: "addon-operator-leader-election",
            name: Name::Process { pod: None },
            timing: Timing::USUAL,
        },
        leader_label: None,
        leader_services: None,
        kube: KubeSettings {
            config: Vec::new(),
            context: None,
            server: None,
            limit: RateLimit::default(),
            patch_limit: RateLimit::default(),
            patch_timeout: Duration::from_secs(10),
        },
        hooks: HookSettings {
            timeout: Duration::from_hours(1),
            script_timeout: Duration::from_mins(1),
            slots: NonZero::new(4).unwrap(),
            patience: Duration::from_mins(1),
            output: HookOutput::Lines,
        },
        listen: "0.0.0.0:9650".parse().unwrap(),
        metrics_prefix: "addon_operator_".into(),
        queue_actions: QueueActions::Timed,
        webhooks: webhooks_of("addon-operator", "addon-operator-hooks"),
        log: LogSettings {
            level: LogLevel::Info,
            format: LogFormat::Json,
            client: ClientLog::Quiet,
        },
        traces: None,
        debug_socket: "/var/run/addon-operator/debug.socket".into(),
        secrets: ShownSecrets::AskedFor,
        debug_http: None,
        remarks: Vec::new(),
    };
    assert_eq!(settings, expected);
}

#[test]
fn the_flag_wins_then_the_prefixed_variable() {
    let modules = |flags, variables| modules(check(flags, variables)).modules_dirs;
    let both = [("MODULES_DIR", "c"), ("ADDON_OPERATOR_MODULES_DIR", "b")];
    assert_eq!(
        modules(&["--modules-dir", "a:/x:"], &both),
        [PathBuf::from("a"), "/x".into()]
    );
    assert_eq!(modules(&[], &both), [PathBuf::from("b")]);
    assert_eq!(modules(&[], &both[..1]), [PathBuf::from("c")]);
    assert_eq!(
        modules(&[], &[("MODULES_DIR", "c"), ("ADDON_OPERATOR_MODULES_DIR", "")]),
        [PathBuf::from("c")]
    );
}

#[test]
fn variables_without_our_prefix_count_last() {
    let hooks = |variables| modules(check(&[], variables)).global_hooks_dir;
    assert_eq!(
        hooks(&[("SHELL_OPERATOR_HOOKS_DIR", "a"), ("GLOBAL_HOOKS_DIR", "b")]),
        PathBuf::from("b")
    );
    assert_eq!(hooks(&[("SHELL_OPERATOR_HOOKS_DIR", "a")]), PathBuf::from("a"));
    let settings = check(
        &[],
        &[
            ("SHELL_OPERATOR_TMP_DIR", "/t"),
            ("SHELL_OPERATOR_LISTEN_ADDRESS", "::1"),
            ("SHELL_OPERATOR_LISTEN_PORT", "80"),
            ("SHELL_OPERATOR_PROMETHEUS_METRICS_PREFIX", "p_"),
            ("SHELL_OPERATOR_NAMESPACE", "n"),
            ("UNNUMBERED_MODULE_ORDER", "7"),
            ("STRICT_CHECK_VALUES_MODE_ENABLED", "true"),
        ],
    )
    .unwrap();
    assert_eq!(settings.tmp_dir, PathBuf::from("/t"));
    assert_eq!(settings.listen, "[::1]:80".parse().unwrap());
    assert_eq!(
        (settings.metrics_prefix.as_str(), settings.namespace.as_deref()),
        ("p_", Some("n"))
    );
    let modules = modules(Ok(settings));
    assert_eq!(
        (modules.unnumbered_order, modules.missing_values),
        (7, MissingValues::Refused)
    );
}

#[test]
fn what_is_not_allowed_is_refused_by_name() {
    let rows: &[(Flags, Variables, &str)] = &[
        (
            &["--helm-timeout", "20"],
            &[],
            "--helm-timeout is '20', but it should be a duration above zero such as 90s",
        ),
        (
            &[],
            &[("HELM_TIMEOUT", "soon")],
            "HELM_TIMEOUT is 'soon', but it should be a duration",
        ),
        (
            &[],
            &[("ADDON_OPERATOR_HOOK_TIMEOUT", "0")],
            "ADDON_OPERATOR_HOOK_TIMEOUT is '0'",
        ),
        (
            &[],
            &[("SHELL_OPERATOR_LISTEN_PORT", "99999")],
            "SHELL_OPERATOR_LISTEN_PORT is '99999', but it should be a port",
        ),
        (
            &["--prometheus-listen-address", "localhost"],
            &[],
            "should be an IP address",
        ),
        (&["--namespace", "Upper"], &[], "--namespace is 'Upper'"),
        (&["--config-map", "a..b"], &[], "--config-map is 'a..b'"),
        (
            &["--modules-dir", ":"],
            &[],
            "--modules-dir is ':', but it should be one or more directories",
        ),
        (
            &["--unnumbered-modules-order", "2147483648"],
            &[],
            "--unnumbered-modules-order",
        ),
        (
            &["--helm-slots=0"],
            &[],
            "--helm-slots is '0', but it should be a whole number above zero",
        ),
        (&["--events=maybe"], &[], "should be true or false"),
        (&["--drift=all"], &[], "should be one of off, absent, changed"),
        (&["--log-type=xml"], &[], "should be one of json, text, color"),
        (
            &["--debug-keep-tmp-files=yes"],
            &[],
            "--debug-keep-tmp-files is 'yes', but it should be true or false",
        ),
        (
            &["--crd-extra-labels", "x"],
            &[],
            "--crd-extra-labels is 'x', but it should be labels such as",
        ),
        (
            &["--kube-config", "/no/such/file"],
            &[],
            "should be the path of a kubeconfig that exists",
        ),
        (
            &["--kube-server", "10.0.0.1"],
            &[],
            "should be an address such as https://",
        ),
        (
            &["--kube-client-qps=-1"],
            &[],
            "--kube-client-qps is '-1', but it should be a number above zero",
        ),
        (
            &["--prometheus-metrics-prefix", "1a"],
            &[],
            "--prometheus-metrics-prefix",
        ),
        (
            &[],
            &[("HELM_DRIVER", "configmap")],
            "HELM_DRIVER is 'configmap', but it should be secrets",
        ),
        (&[], &[("HELM_DRIVER", "sql")], "HELM_DRIVER is 'sql'"),
        (
            &["--applied-module-extenders", "Static,kubeConfig"],
            &[],
            "--applied-module-extenders is 'Static,kubeConfig', but it should be names with commas",
        ),
        (
            &["--shell-chroot-dir", "/c"],
            &[],
            "--shell-chroot-dir is '/c', but it should be left out",
        ),
        (
            &[],
            &[("HELM2", "1")],
            "HELM2 environment is found. Helm2 support is deprecated",
        ),
        (
            &[],
            &[("TILLER_BIN_PATH", "/t")],
            "TILLER_BIN_PATH environment is found",
        ),
    ];
    for (flags, variables, expected) in rows {
        let error = check(&[*flags].concat(), variables).map(drop).unwrap_err();
        assert!(error.starts_with("configuration error: "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_variable_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let broken = std::ffi::OsStr::from_bytes(b"a\xff");
    let environment: Environment = [("ADDON_OPERATOR_CONFIG_MAP", broken)].into_iter().collect();
    let error = Settings::check(&StartArgs::default(), &environment, &machine()).unwrap_err();
    assert_eq!(
        error,
        ConfigurationError::NotUnicode {
            name: "ADDON_OPERATOR_CONFIG_MAP"
        }
    );
}

#[test]
fn what_is_allowed_is_understood() {
    let accepted: &[(Flags, Variables)] = &[
        (&[], &[("HELM_DRIVER", "secret")]),
        (&[], &[("HELM_DRIVER", "")]),
        (&[], &[("HELM2", "")]),
        (
            &[],
            &[(
                "ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS",
                "Static,DynamicallyEnabled,KubeConfig,ScriptEnabled",
            )],
        ),
        (&["--debug-keep-tmp-files", "--strict-order"], &[]),
        (
            &["--shell-chroot-dir", ""],
            &[("ADDON_OPERATOR_SHELL_CHROOT_DIR", "/c")],
        ),
    ];
    for (flags, variables) in accepted {
        check(flags, variables).unwrap();
    }
    let settings = check(
        &[
            "--strict-order",
            "--debug-keep-tmp-files=t",
            "--log-level=FATAL",
            "--log-type=text",
            "--log-no-time",
        ],
        &[
            ("HELM_TIMEOUT", "1h30m"),
            ("ADDON_OPERATOR_CRD_EXTRA_LABELS", "heritage=me,a=b"),
        ],
    )
    .unwrap();
    assert_eq!(settings.tmp_files, TmpFiles::Kept);
    assert_eq!(settings.log.level, LogLevel::Error);
    assert_eq!(settings.log.format, LogFormat::Text(Timestamps::Left));
    let modules = modules(Ok(settings));
    assert_eq!(modules.order, Order::Strict);
    assert_eq!(modules.helm.timeout, Duration::from_mins(90));
    assert_eq!(modules.extra_labels["heritage"], "me");
}

#[test]
fn filters_of_crd_files_are_prefixes_and_no_prefix_leaves_nothing_out() {
    for (text, prefixes) in [(",", vec![]), ("doc-,", vec!["doc-"]), (" a , _b", vec!["a", "_b"])] {
        let variables = [("ADDON_OPERATOR_CRD_FILTER_PREFIXES", text)];
        assert_eq!(modules(check(&[], &variables)).crd_filters, prefixes, "{text:?}");
    }
}

#[test]
fn debug_routes_over_tcp_are_asked_for_as_go_does() {
    let address = |said| check(&[], &[("DEBUG_HTTP_SERVER_ADDR", said)]).map(|settings| settings.debug_http);
    assert_eq!(address(":80"), Ok(Some("0.0.0.0:80".parse().unwrap())));
    assert_eq!(address("[::1]:80"), Ok(Some("[::1]:80".parse().unwrap())));
    assert!(
        address("here")
            .unwrap_err()
            .contains("DEBUG_HTTP_SERVER_ADDR is 'here'")
    );
}

#[test]
fn what_has_no_effect_is_said() {
    let remarks = |flags, variables| check(flags, variables).unwrap().remarks;
    assert_eq!(
        remarks(&["--log-level=loud"], &[]),
        ["--log-level is 'loud', which is no level: info is taken"]
    );
    assert_eq!(
        remarks(&[], &[("HELM_MONITOR_KUBE_CLIENT_QPS", "80")]),
        ["HELM_MONITOR_KUBE_CLIENT_QPS has no effect"]
    );
    assert_eq!(remarks(&["--admission-server-enabled"], &[]).len(), 1);
}

#[test]
fn in_a_pod_namespace_and_name_are_known() {
    let pod = Machine {
        pod_namespace: Some("here".into()),
        ..machine()
    };
    let settings = check_on(&pod, &[], &[("HOSTNAME", "operator-0")]).unwrap();
    assert_eq!(
        (settings.namespace.as_deref(), settings.pod_name.as_deref()),
        (Some("here"), Some("operator-0"))
    );
    let settings = check_on(&pod, &["--namespace=there"], &[("HOSTNAME", "operator-0")]).unwrap();
    assert_eq!(settings.namespace.as_deref(), Some("there"));
    assert_eq!(check(&[], &[("HOSTNAME", "laptop")]).unwrap().pod_name, None);
}

#[test]
fn kubeconfigs_are_found_where_kubectl_finds_them() {
    let home = tempfile::tempdir().unwrap();
    let [said, listed, custom] = ["said", "listed", ".kube/config"].map(|name| home.path().join(name));
    fs_err::create_dir(home.path().join(".kube")).unwrap();
    for path in [&said, &listed, &custom] {
        fs_err::write(path, "").unwrap();
    }
    let list = format!("/no/such/file:{}", listed.display());
    let variables = [("HOME", home.path().to_str().unwrap()), ("KUBECONFIG", list.as_str())];
    let found = |flags: &[&str], variables: &[(&str, &str)]| check(flags, variables).unwrap().kube.config;
    assert_eq!(
        found(&["--kube-config", said.to_str().unwrap()], &variables),
        std::slice::from_ref(&said)
    );
    assert_eq!(found(&[], &variables), [listed]);
    assert_eq!(found(&[], &variables[..1]), [custom]);
}

#[test]
fn helm_is_found_on_the_path_unless_it_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let helm = dir.path().join("helm");
    fs_err::write(&helm, "").unwrap();
    let path = format!("/no/such/dir:{}", dir.path().display());
    let binary = |variables: &[(&str, &str)]| modules(check(&[], variables)).helm.binary;
    assert_eq!(
        binary(&[("PATH", &path)]),
        PathBuf::from("helm"),
        "it is not executable"
    );
    fs_err::set_permissions(&helm, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(binary(&[("PATH", &path)]), helm);
    assert_eq!(binary(&[("PATH", &path), ("HELM_BIN", "/h")]), PathBuf::from("/h"));
}

#[test]
fn the_help_of_every_flag_names_its_variable() {
    let command = StartArgs::augment_args(Command::new("start"));
    for flag in command.get_arguments() {
        let help = flag.get_help().unwrap_or_default().to_string();
        assert!(help.contains("[env: "), "{}: {help}", flag.get_id());
    }
}

#[test]
fn hooks_inherit_the_whole_environment() {
    let environment: Environment = [("A", "1"), ("EMPTY", "")].into_iter().collect();
    assert_eq!(
        environment.inherited(),
        [("A".into(), "1".into()), ("EMPTY".into(), "".into())]
    );
}

#[test]
fn secrets_are_shown_to_everybody_only_where_somebody_said_so() {
    let shown = |flags: Flags<'_>, variables: Variables<'_>| check(flags, variables).unwrap().secrets;
    let said = [("ADDON_OPERATOR_SHOW_SECRETS", "true")];
    assert_eq!(shown(&[], &[]), ShownSecrets::AskedFor);
    assert_eq!(shown(&[], &said), ShownSecrets::Always);
    assert_eq!(shown(&["--show-secrets=false"], &said), ShownSecrets::AskedFor);
    assert_eq!(
        check_hooks(&["--show-secrets"], &[]).unwrap().secrets,
        ShownSecrets::Always
    );
}
