use names::BindingName;
use serde_json::json;

use super::*;

fn global(text: &str) -> Result<HookConfig, ConfigError> {
    HookConfig::parse(text, HookKind::Global)
}

fn module(text: &str) -> Result<HookConfig, ConfigError> {
    HookConfig::parse(text, HookKind::Module)
}

fn problems(config: Result<HookConfig, ConfigError>) -> Vec<String> {
    match config.unwrap_err() {
        ConfigError::Schema(problems) | ConfigError::Meaning(problems) => problems,
        error => vec![error.to_string()],
    }
}

#[test]
fn stages_belong_to_a_kind_of_hook() {
    let config = global("configVersion: v1\nonStartup: -5\nbeforeAll: 10\nafterAll: 0").unwrap();
    assert_eq!(config.order(Stage::OnStartup), Some(-5));
    assert_eq!(config.order(Stage::BeforeAll), Some(10));
    assert_eq!(config.order(Stage::AfterAll), Some(0));

    let text = r#"{"configVersion":"v1","beforeHelm":1,"afterHelm":2,"beforeDeleteHelm":3,"afterDeleteHelm":4}"#;
    let config = module(text).unwrap();
    let orders: Vec<_> = config.stages.values().copied().collect();
    assert_eq!(orders, [1, 2, 3, 4]);
    assert_eq!(config.order(Stage::OnStartup), None);

    assert_eq!(
        problems(module("configVersion: v1\nbeforeAll: 1\nbeforeHelm: -1")),
        [
            "beforeHelm in body should be greater than or equal to 0",
            ".beforeAll in body is a forbidden property: known here are afterDeleteHelm, afterHelm, beforeDeleteHelm, beforeHelm, \
             configVersion, dryRun, kubernetes, kubernetesCustomResourceConversion, kubernetesMutating, kubernetesValidating, onStartup, \
             schedule, settings",
        ],
    );
    let [problem] = problems(global("configVersion: v1\nbeforeHelm: 1")).try_into().unwrap();
    assert!(problem.starts_with(".beforeHelm in body is a forbidden property: known here are afterAll, beforeAll, "));
}

#[test]
fn a_schedule_has_defaults() {
    let config = module("configVersion: v1\nschedule:\n- crontab: '*/5 * * * *'").unwrap();
    let [schedule] = config.schedules.as_slice() else {
        panic!("{config:?}")
    };
    assert_eq!(
        serde_json::to_value(schedule).unwrap(),
        json!({"name": "schedule", "crontab": "*/5 * * * *", "allowFailure": false, "timeout": null,
            "includeSnapshotsFrom": [], "queue": "main", "group": null}),
    );
}

#[test]
fn a_condition_names_snapshots_of_the_hook() {
    let bindings = "configVersion: v1\nkubernetes:\n- {name: rules, kind: Pod}\n- {name: twice, kind: Pod}\n- {name: twice, kind: Pod}\n";
    let schedule = |when: &str| {
        module(&format!(
            "{bindings}schedule:\n- {{crontab: '* * * * *', when: {when}}}"
        ))
    };
    let object = |when: &str| module(&format!("{bindings}- {{kind: Secret, when: {when}}}"));
    let condition = Some(Condition {
        snapshots: vec![BindingName::parse("rules").unwrap()],
        jq_filter: Some(".a".to_owned()),
    });
    let text = "{snapshots: [rules], jqFilter: .a}";
    assert_eq!(schedule(text).unwrap().schedules[0].when, condition);
    assert_eq!(object(text).unwrap().kubernetes[3].when, condition);
    let rows = [
        ("{}", "when.snapshots in body is required"),
        ("{snapshots: []}", "when.snapshots in body should have at least 1 items"),
        ("{snapshots: [rules], jq: a}", "when.jq in body is a forbidden property"),
        ("{snapshots: [none]}", "when is invalid: 'none' binding name not found"),
        (
            "{snapshots: [twice]}",
            "when is invalid: there are 2 'twice' binding names",
        ),
        ("{snapshots: [rules], jqFilter: '('}", "jqFilter: compile jqFilter"),
    ];
    for (when, problem) in rows {
        for config in [schedule(when), object(when)] {
            let problems = problems(config).join("\n");
            assert!(problems.contains(problem), "{when}: {problems}");
        }
    }
}

#[test]
fn all_mistakes_of_form_are_named_at_once() {
    let text = r#"
configVersion: v1
onStartup: "first"
schedule:
- name: no crontab
kubernetes:
- kind: ConfigMap
  executeHookOnEvent: [Created]
  jqfilter: .data
  labelSelector: {matchExpressions: [{key: a, operator: Is, values: [b]}]}
  namespace: {}
onStartUp: 1
"#;
    assert_eq!(
        problems(module(text)),
        [
            r#"onStartup in body must be of type integer: "string": write a whole number, without quotes"#,
            "schedule.crontab in body is required",
            "kubernetes.executeHookOnEvent in body should be one of [Added Modified Deleted], got 'Created'",
            "kubernetes.labelSelector.matchExpressions.operator in body should be one of [In NotIn Exists DoesNotExist], got 'Is'",
            "kubernetes.namespace in body should have at least 1 properties",
            "kubernetes.jqfilter in body is a forbidden property: is it 'jqFilter'?",
            ".onStartUp in body is a forbidden property: is it 'onStartup'?",
        ],
    );
}

#[test]
fn what_is_no_configuration_says_why() {
    let rows = [
        (
            "configVersion: v2\nonStartup: 1",
            "config version: 'configVersion' value 'v2' is unsupported",
        ),
        (
            "configVersion: 1",
            "config version: string value is expected for key 'configVersion'",
        ),
        ("configVersion:", "config version: missing 'configVersion' value"),
        (
            "configVersion: v1",
            "hook config in body should have at least 2 properties: it names no binding",
        ),
        (
            "{}",
            "hook config in body should have at least 1 properties: it names no binding",
        ),
        ("", "hook config should be a map, and is null"),
        ("hook: [--config", "hook config is not YAML"),
        ("hello", "hook config should be a map, and is string"),
        (
            "configVersion: v1\nkubernetes: []",
            "kubernetes in body should have at least 1 items",
        ),
        (
            "configVersion: v1\nschedule: [{crontab: '* * * * *'}, {crontab: '61 * * * *'}]",
            "invalid schedule config [1]: crontab is invalid: range '61' of minute is not within 0-59 or ends before it begins",
        ),
        (
            "configVersion: v1\nschedule: [{crontab: '@daily', includeSnapshotsFrom: [maps]}]\nkubernetes: [{kind: Pod}]",
            "invalid schedule config [0]: includeSnapshotsFrom is invalid: 'maps' binding name not found among the kubernetes bindings of this hook",
        ),
        (
            "configVersion: v1\nonStartup: 1\nkubernetes: [{name: a, kind: Pod, includeSnapshotsFrom: [a]}, {name: a, kind: Job}]",
            "invalid kubernetes config [0]: includeSnapshotsFrom is invalid: there are 2 'a' binding names: which one is meant?",
        ),
        (
            "configVersion: v1\nkubernetes: [{kind: Pod, apiVersion: a/b/c}]",
            "invalid kubernetes config [0]: apiVersion is invalid: 'a/b/c' should be a version, or a group and a version: v1, apps/v1",
        ),
        (
            "configVersion: v1\nkubernetes: [{kind: Pod, nameSelector: {matchNames: [a]}, fieldSelector: \
             {matchExpressions: [{field: metadata.name, operator: '=', value: b}]}}]",
            "invalid kubernetes config [0]: fieldSelector 'metadata.name' and nameSelector.matchNames are mutually exclusive",
        ),
        (
            "configVersion: v1\nonStartup: 1\nsettings: {executionMinInterval: 5, executionBurst: 1}",
            r#"settings.executionMinInterval in body must be of type string: "number": put it in quotes"#,
        ),
        (
            "configVersion: v1\nonStartup: 1\nsettings: {executionMinInterval: 5 seconds, executionBurst: 1}",
            "invalid settings: executionMinInterval is invalid: '5 seconds' should be a duration between 0s and 2562047h, such as 30s, 5m or 1h30m",
        ),
        (
            "configVersion: v1\nonStartup: 1\nsettings: {executionBurst: 1}",
            "settings.executionMinInterval in body is required",
        ),
    ];
    for (text, problem) in rows {
        assert_eq!(problems(global(text)), [problem], "{text}");
    }
}

/// For every list of bindings an item that is valid except for its timeout.
fn with_timeout(timeout: &str) -> [(&'static str, String); 5] {
    let rules = "rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]";
    [
        ("schedule", "crontab: '@daily'"),
        ("kubernetes", "kind: Pod"),
        ("kubernetesValidating", rules),
        ("kubernetesMutating", rules),
        (
            "kubernetesCustomResourceConversion",
            "crdName: x.y, conversions: [{fromVersion: v1, toVersion: v2}]",
        ),
    ]
    .map(|(list, item)| {
        let text = format!("configVersion: v1\n{list}: [{{name: a.b.c, {item}{timeout}}}]");
        (list, text)
    })
}

fn timeouts(config: &HookConfig) -> Vec<Option<Duration>> {
    let value = serde_json::to_value(config).unwrap();
    let lists = ["schedules", "kubernetes", "validating", "mutating", "conversions"];
    let items = lists.iter().flat_map(|list| value[*list].as_array().unwrap());
    items
        .map(|item| serde_json::from_value(item["timeout"].clone()).unwrap())
        .collect()
}

#[test]
fn every_binding_may_say_how_long_its_runs_may_take() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let rows = [
        ("", "", None),
        (", timeout: 1m30s", "", seconds(90)),
        ("", "\nsettings: {timeout: 5s}", seconds(5)),
        (", timeout: 1m30s", "\nsettings: {timeout: 5s}", seconds(90)),
    ];
    for (own, settings, timeout) in rows {
        for (list, text) in with_timeout(own) {
            let config = module(&format!("{text}{settings}")).unwrap();
            assert_eq!(timeouts(&config), [timeout], "{list}{own}{settings}");
            let back: HookConfig = serde_json::from_value(serde_json::to_value(&config).unwrap()).unwrap();
            assert_eq!(back, config);
        }
    }
    let config = global("configVersion: v1\nbeforeAll: 1\nsettings: {timeout: 5s}").unwrap();
    assert_eq!((config.timeout, config.rate_limit), (seconds(5), None));
    let both = "settings: {timeout: 5s, executionMinInterval: 1s, executionBurst: 2}";
    let config = global(&format!("configVersion: v1\nbeforeAll: 1\n{both}")).unwrap();
    assert!(config.timeout == seconds(5) && config.rate_limit.is_some());
}

#[test]
fn a_timeout_is_a_duration_that_is_longer_than_nothing() {
    for timeout in ["5 minutes", "30", "", "0s", "-5s"] {
        let problem =
            format!("timeout is invalid: '{timeout}' should be a duration longer than 0s, such as 30s, 5m or 1h30m");
        for (list, text) in with_timeout(&format!(", timeout: '{timeout}'")) {
            assert_eq!(
                problems(module(&text)),
                [format!("invalid {list} config [0]: {problem}")]
            );
        }
        let text = format!("configVersion: v1\nonStartup: 1\nsettings: {{timeout: '{timeout}'}}");
        assert_eq!(problems(module(&text)), [format!("invalid settings: {problem}")]);
    }
    for (list, text) in with_timeout(", timeout: 30") {
        let expected = format!(r#"{list}.timeout in body must be of type string: "number": put it in quotes"#);
        assert_eq!(problems(module(&text)), [expected]);
    }
    assert_eq!(
        problems(module(
            "configVersion: v1\nonStartup: 1\nsettings: {timeout: 1s, executionBurst: 1}"
        )),
        ["settings.executionMinInterval in body is required"],
        "the two keys of the limit still come together"
    );
}

#[test]
fn several_mistakes_are_counted() {
    let error = global("configVersion: v1\na: 1\nb: 2").unwrap_err();
    let text = error.to_string();
    let lines: Vec<_> = text.lines().map(|line| line.split(": known").next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "hook config does not fit its schema: 2 errors occurred:",
            "\t* .a in body is a forbidden property",
            "\t* .b in body is a forbidden property",
        ],
    );
    let keys: Vec<_> = (0..10_000).map(|number| number.to_string()).collect();
    let many = format!("configVersion: v1\nkey{}: 1", keys.join(": 1\nkey"));
    let text = global(&many).unwrap_err().to_string();
    assert!(text.contains("10000 errors") && text.len() < 20_000, "{}", text.len());
}

#[test]
fn a_kubernetes_binding_is_read_in_whole() {
    let text = r#"
configVersion: v1
settings: {executionMinInterval: 1m30s, executionBurst: 3}
kubernetes:
- name: pods
  apiVersion: v1
  kind: Pod
  executeHookOnEvent: []
  watchEvent: [Added]
  executeHookOnSynchronization: no
  waitForSynchronization: false
  keepFullObjectsInMemory: false
  jqFilter: .metadata.labels
  resynchronizationPeriod: 5m
  allowFailure: true
  nameSelector: {matchNames: [a, b]}
  labelSelector: {matchLabels: {app: x}, matchExpressions: [{key: tier, operator: Exists}]}
  fieldSelector: {matchExpressions: [{field: status.phase, operator: "!=", value: Running}]}
  namespace: {nameSelector: {matchNames: [default]}, labelSelector: {matchLabels: {env: prod}}}
  includeSnapshotsFrom: [others]
  queue: side
  group: pods
- name: others
  kind: Service
  waitForSynchronization: false
  group: pods
schedule:
- crontab: "@daily"
  group: pods
"#;
    let config = module(text).unwrap();
    let [pods, others] = config.kubernetes.as_slice() else {
        panic!("{config:?}")
    };
    assert!(pods.events.is_empty());
    assert!(!pods.run_on_synchronization && !pods.wait_for_synchronization && !pods.keep_full_objects);
    assert!(
        others.wait_for_synchronization,
        "only a queue of its own makes not waiting possible"
    );
    assert_eq!(others.events.len(), 3);
    assert_eq!(pods.names, ["a", "b"]);
    assert_eq!(
        pods.fields,
        [FieldRequirement {
            field: "status.phase".into(),
            equals: false,
            value: "Running".into()
        }]
    );
    assert_eq!(pods.namespaces.as_ref().unwrap().names, ["default"]);
    let names = |bindings: &[BindingName]| bindings.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        names(&pods.include_snapshots_from),
        ["others", "pods"],
        "own wishes come first"
    );
    assert_eq!(names(&others.include_snapshots_from), ["pods", "others"]);
    assert_eq!(names(&config.schedules[0].include_snapshots_from), ["pods", "others"]);
    assert_eq!(
        config.rate_limit,
        Some(RateLimit {
            min_interval: Duration::from_secs(90),
            burst: 3
        })
    );
    let back: HookConfig = serde_json::from_value(serde_json::to_value(&config).unwrap()).unwrap();
    assert_eq!(back, config);
}

#[test]
fn webhooks_are_checked_as_the_api_server_would() {
    let rules = "rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]";
    let config = module(&format!(
        "configVersion: v1\nkubernetesValidating: [{{name: a.b.c, {rules}}}]"
    ))
    .unwrap();
    let binding = &config.validating[0];
    assert_eq!(binding.timeout_seconds, 10);
    assert_eq!(binding.failure_policy, FailurePolicy::Fail);
    assert_eq!(binding.rules[0].api_groups, [""]);

    let text = format!("configVersion: v1\nkubernetesMutating: [{{name: short, timeoutSeconds: 31, {rules}}}]");
    assert_eq!(
        problems(module(&text)),
        [
            "invalid kubernetesMutating config [0]: timeoutSeconds is invalid: should be between 1 and 30",
            "invalid kubernetesMutating config [0]: name is invalid: 'short' should be a domain of at least three parts, such as pods.example.com",
        ],
    );
    let text = format!("configVersion: v1\nkubernetesValidating: [{{name: a.b.c, {rules}}}, {{name: a.b.c, {rules}}}]");
    assert_eq!(
        problems(module(&text)),
        ["invalid kubernetesValidating config [1]: name is invalid: 'a.b.c' is not unique"]
    );
    assert_eq!(
        problems(module("configVersion: v1\nkubernetesValidating: [{name: a.b.c}]")),
        ["kubernetesValidating.rules in body is required"],
    );

    let text = "configVersion: v1\nkubernetesCustomResourceConversion: [{name: c, crdName: x.y, \
                conversions: [{fromVersion: v1, toVersion: v2}]}]";
    assert_eq!(module(text).unwrap().conversions[0].conversions[0].to_version, "v2");
}

#[test]
fn version_0_means_its_form_in_version_1() {
    let v0 =
        module("beforeHelm: 10\nschedule: [{name: s, crontab: '0 * * * *', allowFailure: true, extra: 1}]").unwrap();
    let v1 =
        module("configVersion: v1\nbeforeHelm: 10\nschedule: [{name: s, crontab: '0 * * * *', allowFailure: true}]")
            .unwrap();
    assert_eq!(v0.version, ConfigVersion::V0);
    assert_eq!(
        HookConfig {
            version: ConfigVersion::V1,
            ..v0
        },
        v1
    );

    let v0 = global(
        "onKubernetesEvent: [{kind: Pod, event: [add, delete], selector: {matchLabels: {a: b}}, objectName: x, \
         namespaceSelector: {matchNames: [ns]}, jqFilter: .a}]",
    )
    .unwrap();
    let v1 = global(
        "configVersion: v1\nkubernetes: [{name: onKubernetesEvent, kind: Pod, executeHookOnEvent: [Added, Deleted], \
         executeHookOnSynchronization: false, labelSelector: {matchLabels: {a: b}}, nameSelector: {matchNames: [x]}, \
         namespace: {nameSelector: {matchNames: [ns]}}, jqFilter: .a}]",
    )
    .unwrap();
    assert_eq!(
        HookConfig {
            version: ConfigVersion::V1,
            ..v0
        },
        v1
    );

    assert_eq!(
        global("onKubernetesEvent: [{kind: Pod}]").unwrap().kubernetes[0]
            .events
            .len(),
        3
    );
    assert_eq!(
        problems(global(
            "onKubernetesEvent: [{kind: Pod, event: [create]}, {kind: Pod}, {}]"
        )),
        [
            "onKubernetesEvent.event in body should be one of [add update delete], got 'create' (in onKubernetesEvent[0])",
            "onKubernetesEvent.kind in body is required (in onKubernetesEvent[2])",
        ],
    );
    assert_eq!(
        problems(global("kubernetes: [{kind: Pod}]")),
        ["config version: 'kubernetes' needs a version, and there is no key 'configVersion'"],
    );
}

mod anything {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_output_is_too_much(text in "(configVersion: v1\n)?[a-zA-Z:{}\\[\\]\\-,\" \n*&0-9]{0,80}") {
            let _ = global(&text);
        }

        #[test]
        fn schedules_mean_the_same_in_both_versions(
            name in "[a-z]{1,8}",
            minute in 0..60,
            allow_failure: bool,
            order in 0_i64..100,
        ) {
            let body = format!("onStartup: {order}\nschedule: [{{name: '{name}', crontab: '{minute} * * * *', allowFailure: {allow_failure}}}]");
            let v0 = global(&body).unwrap();
            let v1 = global(&format!("configVersion: v1\n{body}")).unwrap();
            prop_assert_eq!(HookConfig { version: ConfigVersion::V1, ..v0 }, v1);
        }
    }
}
