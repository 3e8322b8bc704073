//! Answers of executables with several hooks.

use std::collections::BTreeSet;
use std::time::Duration;

use names::BindingName;

use super::*;
use crate::hook::config::{ConfigVersion, RateLimit, Stage};

fn read(text: &str, kind: HookKind) -> Batch {
    Batch::parse_output(text.as_bytes(), kind).unwrap()
}

fn refused(text: &str) -> String {
    Batch::parse_output(text.as_bytes(), HookKind::Module)
        .unwrap_err()
        .to_string()
}

const FULL: &str = r#"{"version":"v1","has_settings_check":true,"hooks":[
  {"configVersion":"v1","metadata":{"name":"certs","path":"a/b"},
   "schedule":[{"name":"nightly","crontab":"0 3 * * *","queue":"slow"}],
   "kubernetes":[
     {"name":"pods","apiVersion":"v1","kind":"Pod","nameSelector":{"matchNames":["a"]},
      "namespace":{"nameSelector":{"matchNames":null},"labelSelector":{"matchLabels":{"team":"x"}}},
      "labelSelector":{"matchExpressions":[{"key":"app","operator":"Exists"}]},
      "fieldSelector":{"matchExpressions":[{"field":"spec.nodeName","operator":"Equals"}]},
      "executeHookOnEvent":false,"executeHookOnSynchronization":false,"waitForSynchronization":false,
      "keepFullObjectsInMemory":true,"jqFilter":".metadata.name","allowFailure":true,
      "resynchronizationPeriod":"1h","includeSnapshotsFrom":["nodes"],"queue":"slow"},
     {"name":"nodes","kind":"Node"}],
   "onStartup":1,"beforeHelm":2,"afterHelm":3,"beforeDeleteHelm":4,"afterDeleteHelm":5,"allowFailure":true,
   "settings":{"executionMinInterval":3000000000,"executionBurst":2,"enableSchedulesOnStartup":true},
   "logLevel":"debug","whatComesNext":[1]},
  {"configVersion":"v1","metadata":{"name":"idle"}}],
  "readiness":{"configVersion":"v1","metadata":{"name":"readiness"},"schedule":[{"crontab":"*/15 * * * * *"}]}}"#;

#[test]
fn every_field_is_read() {
    let batch = read(FULL, HookKind::Module);
    let [BatchHook { title, config }, idle] = &batch.hooks[..] else {
        panic!("two hooks: {batch:?}");
    };
    assert_eq!((title.as_str(), config.version), ("certs", ConfigVersion::V1));
    let orders: Vec<_> = config
        .stages
        .iter()
        .map(|(stage, order)| (stage.key(), *order))
        .collect();
    let expected = [
        ("onStartup", 1),
        ("beforeHelm", 2),
        ("afterHelm", 3),
        ("beforeDeleteHelm", 4),
        ("afterDeleteHelm", 5),
    ];
    assert_eq!(orders, expected);
    let limit = RateLimit {
        min_interval: Duration::from_secs(3),
        burst: 2,
    };
    assert_eq!(config.rate_limit, Some(limit));

    let [nightly] = &config.schedules[..] else {
        panic!("one schedule: {config:?}");
    };
    assert_eq!((nightly.name.as_str(), nightly.queue.as_str()), ("nightly", "slow"));
    assert_eq!(nightly.group.as_deref(), Some("main"));
    let seen: Vec<_> = nightly.include_snapshots_from.iter().map(BindingName::as_str).collect();
    assert_eq!(seen, ["pods", "nodes"]);
    assert!(!nightly.allow_failure, "it counts for bindings to objects only");

    let [pods, nodes] = &config.kubernetes[..] else {
        panic!("two bindings: {config:?}");
    };
    assert_eq!(pods.events, BTreeSet::new());
    assert!(!pods.run_on_synchronization && !pods.wait_for_synchronization);
    assert!(pods.keep_full_objects && pods.allow_failure);
    assert_eq!(pods.jq_filter.as_deref(), Some(".metadata.name"));
    assert_eq!((&pods.names[..], pods.queue.as_str()), (&["a".to_owned()][..], "slow"));
    assert_eq!(pods.fields[0].value, "", "the library leaves out what is empty");
    let namespaces = pods.namespaces.as_ref().unwrap();
    assert!(namespaces.names.is_empty() && namespaces.labels.is_some());

    assert_eq!(nodes.events.len(), 3);
    assert!(nodes.run_on_synchronization && nodes.wait_for_synchronization && !nodes.keep_full_objects);
    assert_eq!((nodes.queue.as_str(), nodes.group.as_deref()), ("main", Some("main")));

    assert!(idle.config.stages.is_empty(), "a hook may rest");
    assert_eq!(batch.readiness.unwrap().schedules.len(), 1);
}

#[test]
fn what_says_nothing_is_not_there() {
    let batch = read(
        r#"{"version":"v1","hooks":[{"schedule":null,"settings":{},"onStartup":null,"kubernetes":[
            {"kind":"Pod","labelSelector":{},"namespace":{"nameSelector":{"matchNames":[]}},"fieldSelector":null}]}],
            "readiness":null,"has_settings_check":null} {"level":"info"}"#,
        HookKind::Module,
    );
    let HookConfig {
        kubernetes, rate_limit, ..
    } = &batch.hooks[0].config;
    assert_eq!(*rate_limit, None);
    assert!(kubernetes[0].labels.is_none() && kubernetes[0].namespaces.is_none());
    assert_eq!(read(r#"{"version":"v1"}"#, HookKind::Module).hooks, []);
    assert_eq!(read("[]", HookKind::Module).hooks, []);
}

#[test]
fn the_old_form_is_a_list() {
    let batch = read(
        r#" [{"metadata":{"name":"a"},"beforeHelm":1},{"beforeHelm":2}]"#,
        HookKind::Module,
    );
    let titles: Vec<_> = batch.hooks.iter().map(|hook| hook.title.as_str()).collect();
    assert_eq!(titles, ["a", ""]);
    assert_eq!(batch.hooks[1].config.order(Stage::BeforeHelm), Some(2));
}

#[test]
fn global_hooks_run_around_all_modules() {
    let batch = read(
        r#"[{"onStartup":1,"beforeHelm":2,"afterHelm":3,"beforeDeleteHelm":"x"}]"#,
        HookKind::Global,
    );
    let stages: Vec<_> = batch.hooks[0].config.stages.keys().map(|stage| stage.key()).collect();
    assert_eq!(stages, ["onStartup", "beforeAll", "afterAll"]);
}

#[test]
fn names_and_calls_hold_the_number() {
    let named = |kind| {
        let file = HookName::parse("hooks/batch").unwrap();
        let named = read(FULL, kind).named(&file, kind).unwrap();
        assert!(named.checks_settings);
        let hooks = named.hooks.into_iter();
        let shown = hooks.map(|named| (named.name.to_string(), named.call.arguments().join(" ")));
        shown.collect::<Vec<_>>()
    };
    let pair = |name: &str, call: &str| (name.to_owned(), call.to_owned());
    let readiness = pair("hooks/batch-readiness", "hook ready");
    let of_module = [
        pair("hooks/batch:certs:0", "hook run 0"),
        pair("hooks/batch:idle:1", "hook run 1"),
        readiness.clone(),
    ];
    assert_eq!(named(HookKind::Module), of_module);
    let global = [
        pair("hooks/batch-certs-0", "hook run 0"),
        pair("hooks/batch-idle-1", "hook run 1"),
        readiness,
    ];
    assert_eq!(named(HookKind::Global), global);

    let broken = read(r#"[{"metadata":{"name":"a\nb"}}]"#, HookKind::Module);
    let file = HookName::parse("hooks/batch").unwrap();
    assert!(!broken.checks_settings);
    let error = broken.named(&file, HookKind::Module).unwrap_err();
    assert_eq!(error.to_string(), r"batch config: hooks[0] 'a\nb' cannot be named");
}

#[test]
fn mistakes_are_named_by_hook_item_and_field() {
    let text = refused(
        r#"{"version":"v1","hooks":[{"beforeHelm":1},{"metadata":{"name":"b"},"beforeHelm":-1,"kubernetes":[
            {"kind":"Pod"},{"apiVersion":"v1","executeHookOnEvent":["Added"]}],
            "settings":{"executionMinInterval":"3s"}}],
            "readiness":{"schedule":[{"crontab":"* *"}]}}"#,
    );
    for said in [
        "hooks[1] 'b': beforeHelm in body should be greater than or equal to 0",
        "hooks[1] 'b': kubernetes.kind in body is required (in kubernetes[1])",
        r#"kubernetes.executeHookOnEvent in body must be of type boolean: "array": write true or false, without quotes (in kubernetes[1])"#,
        "hooks[1] 'b': settings.executionMinInterval in body must be of type integer",
        "readiness: invalid schedule config [0]: crontab is invalid: ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("hooks[0]"), "{text}");
}

#[test]
fn what_is_no_answer_is_refused() {
    for (printed, said) in [
        ("", "not JSON: it is empty"),
        ("Hello", "not JSON: expected value at line 1 column 1"),
        (r#"{"version":"v1""#, "not JSON: EOF while parsing"),
        ("3", "should be a map or a list, and is number"),
        (r#"{"version":"v2","hooks":3}"#, "unknown version 'v2'"),
        (r#"{"level":"info","msg":"hello"}"#, "there is no key 'version'"),
        (r#"{"version":1}"#, "version in body must be of type string"),
        (r#"{"version":"v1","hooks":{}}"#, "hooks in body must be of type array"),
        (
            r#"{"version":"v1","hooks":[],"has_settings_check":1}"#,
            "must be of type boolean",
        ),
        ("[3]", "hooks[0]: hook config should be a map, and is number"),
        (
            r#"[{"configVersion":"v0"}]"#,
            "hooks[0]: config version: 'configVersion' value 'v0' is unsupported",
        ),
        (
            r#"[{"metadata":{"name":3}}]"#,
            "metadata.name in body must be of type string",
        ),
        (
            r#"[{"kubernetes":[{"kind":"Pod","labelSelector":{"other":{"a":1}}}]}]"#,
            "forbidden property",
        ),
    ] {
        let text = refused(printed);
        assert!(
            text.starts_with("batch config") && text.contains(said),
            "{said}: {text}"
        );
    }
    let error = Batch::parse_output(b"{\n\xff", HookKind::Module).unwrap_err();
    assert_eq!(error, BatchError::NoText(2));
}

#[test]
fn a_list_of_hooks_is_told_by_its_count() {
    for (printed, is_list) in [
        ("Found 1 items:\n0 - a\n", true),
        ("log\nFound 9999 items", true),
        ("Found 0 items:", false),
        ("Found 10000 items:", false),
        ("Found 01 items", false),
        ("Found  items, Found 3 things, Found 12 items", true),
        ("", false),
    ] {
        assert_eq!(lists_hooks(printed), is_list, "{printed}");
    }
}

#[test]
fn the_message_of_a_failed_run_is_found_among_its_log() {
    let stderr = "starting\n{\"level\":\"info\",\"msg\":\"x\"}\n{\"message\":\"execute: no nodes\"}\n\n";
    assert_eq!(message(stderr).as_deref(), Some("execute: no nodes"));
    for silent in ["", "no space\n", "{\"message\":3}", "{\"message\":\" \"}", "3"] {
        assert_eq!(message(silent), None, "{silent}");
    }
}
