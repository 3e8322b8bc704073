//! Objects that a machine makes up: no panic, and no sentence that is too long or holds a control character.
//!
//! Half of the keys and texts are those of real objects, so that the rules are reached.

use std::collections::BTreeMap;

use health_core::rule::{Rule, RuleText};
use health_core::why::{Around, ContainerName, why, witnesses};
use health_core::{Finding, judge, waits_for_consumer, webhook_services, without_endpoints};
use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

const KEYS: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "uid",
    "generation",
    "observedGeneration",
    "conditions",
    "type",
    "reason",
    "message",
    "replicas",
    "readyReplicas",
    "updatedReplicas",
    "phase",
    "containerStatuses",
    "initContainerStatuses",
    "state",
    "lastState",
    "waiting",
    "running",
    "terminated",
    "exitCode",
    "signal",
    "restartCount",
    "image",
    "containers",
    "ownerReferences",
    "involvedObject",
    "kind",
    "webhooks",
    "clientConfig",
    "service",
    "ordinals",
    "start",
    "desiredNumberScheduled",
    "creationTimestamp",
    "finishedAt",
    "startedAt",
    "ready",
    "volumes",
];

const TEXTS: &[&str] = &[
    "True",
    "False",
    "Ready",
    "Failed",
    "PodScheduled",
    "Unschedulable",
    "Pending",
    "Running",
    "web",
    "p",
    "Pod",
    "CrashLoopBackOff",
    "ErrImagePull",
    "CreateContainerConfigError",
    "FailedCreate",
    "FailedMount",
    "Unhealthy",
    "Readiness probe failed: ",
    "violates PodSecurity \"",
    "volume \"",
    "secret \"",
    "2024-05-01T11:59:00Z",
    "-009999-01-02T01:59:59Z",
    "admission webhook \"",
    "couldn't find key a in b",
    "exceeded quota: ",
];

const KINDS: &[(&str, &str)] = &[
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "PersistentVolumeClaim"),
    ("example.org/v1", "Thing"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
];

fn anything() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        select(TEXTS).prop_map(str::to_owned),
        any::<String>(),
        (select(TEXTS), any::<String>()).prop_map(|(known, odd)| format!("{known}{odd}").repeat(20)),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![any::<i64>(), -2_i64..5].prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 6, |inner| {
        let key = prop_oneof![4 => select(KEYS).prop_map(str::to_owned), 1 => any::<String>()];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(key, inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A pod of the workload, of which some parts are as they should be.
fn pod() -> impl Strategy<Value = Value> {
    let status = |name: &'static str| {
        (anything(), anything(), 0_i64..3).prop_map(move |(state, last, count)| {
            let waiting = json!({"waiting": {"reason": state, "message": last}});
            json!({"name": name, "state": waiting, "lastState": {"terminated": last}, "restartCount": count})
        })
    };
    let parts = (
        status("web"),
        anything(),
        anything(),
        select(&["Pending", "Running", "Failed"][..]),
        anything(),
    );
    parts.prop_map(|(container, init, conditions, phase, spec)| {
        json!({"metadata": {"name": "p", "uid": "p"}, "spec": spec, "status": {"phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "False", "message": conditions}],
            "containerStatuses": [container], "initContainerStatuses": [{"name": "i", "state": init}]}})
    })
}

fn event() -> impl Strategy<Value = Value> {
    (
        select(&["Pod", "StatefulSet", "Job"][..]),
        select(TEXTS),
        anything(),
        anything(),
    )
        .prop_map(|(kind, reason, message, time)| {
            json!({"involvedObject": {"kind": kind, "name": "p"}, "reason": reason, "message": message,
                "lastTimestamp": time})
        })
}

fn workload() -> impl Strategy<Value = Value> {
    (select(KINDS), anything(), anything(), anything()).prop_map(|((version, kind), metadata, spec, status)| {
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status})
    })
}

fn times() -> impl Strategy<Value = Timestamp> {
    let far = prop_oneof![Just(Timestamp::MIN), Just(Timestamp::MAX), Just(Timestamp::UNIX_EPOCH)];
    let usual = "2024-05-01T12:00:00Z".parse().expect("it is a time");
    prop_oneof![far, Just(usual)]
}

fn is_harmless(sentence: &str) -> bool {
    sentence.chars().count() <= 400
        && !sentence
            .chars()
            .any(|character| character.is_control() || character == '\u{202e}')
}

fn check(finding: &Finding) {
    assert!(is_harmless(&finding.sentence), "{finding:?}");
}

proptest! {
    #[test]
    fn any_json_is_judged(object in prop_oneof![anything(), workload()], now in times()) {
        check(&judge(&object, now));
        waits_for_consumer(&object, std::slice::from_ref(&object));
        let told = without_endpoints(&webhook_services(&object));
        assert!(is_harmless(&told.unwrap_or_default()));
        let text = |text: &str| Some(text.to_owned());
        let rule = RuleText {
            api_version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            current: text("status.conditions.exists(c, c.type == 'Ready')"),
            in_progress: text("metadata[status.reason] == spec.replicas"),
            failed: text("status.replicas + 1 > spec.replicas * 2"),
        };
        check(&Rule::compile(&rule).unwrap().judge(&object, now));
    }

    #[test]
    fn any_surroundings_are_explained(
        workload in prop_oneof![anything(), workload()],
        sets in vec(anything(), 0..3),
        pods in vec(prop_oneof![anything(), pod()], 0..4),
        events in vec(prop_oneof![anything(), event()], 0..6),
        line in any::<String>(),
        now in times(),
    ) {
        let name = ContainerName { pod: "p".to_owned(), container: "web".to_owned() };
        let around = Around {
            replica_sets: &sets,
            pods: &pods,
            events: &events,
            last_lines: BTreeMap::from([(name, line)]),
        };
        let _ = witnesses(&workload, &around, now);
        let told = why(&workload, &around, now);
        prop_assert!(told.as_deref().is_none_or(|told| is_harmless(told) && !told.is_empty()), "{told:?}");
    }

    #[test]
    fn any_expression_compiles_or_is_refused(text in any::<String>()) {
        let rule = RuleText {
            api_version: text.clone(),
            kind: text.clone(),
            current: Some(text),
            ..RuleText::default()
        };
        if let Ok(rule) = Rule::compile(&rule) {
            check(&rule.judge(&Value::Object(Map::new()), Timestamp::UNIX_EPOCH));
        }
    }
}
