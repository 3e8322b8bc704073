//! Sample facts of one module.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::facts::{Change, Comparison, Detail, Event, FieldChange, LastRun, Object, Revision, Run};
use super::{HOSTILE, NOW, queue, values};

/// The facts about one module beside those of the overview.
pub(crate) fn detail() -> Detail {
    let object = |kind: &str, name: &str, health: &str, sentence: &str| Object {
        kind: kind.to_owned(),
        namespace: "addons".to_owned(),
        name: name.to_owned(),
        health: health.to_owned(),
        sentence: sentence.to_owned(),
    };
    Detail {
        objects: vec![
            object(
                "Deployment",
                "web",
                "Failed",
                "1 of 3 replicas are ready; pod web-5c8 waits: ImagePullBackOff",
            ),
            object("Deployment", "worker", "Healthy", ""),
            object("Service", "web", "Healthy", ""),
            object("ConfigMap", "web-settings", "Healthy", ""),
            object(
                "HorizontalPodAutoscaler",
                "web",
                "RollingOut",
                "the target has no metrics yet",
            ),
        ],
        values: values(),
        section: json!({"image": {"tag": "1.4.2"}, "replicas": 3, "password": "<masked>"}),
        defaults: json!({"image": {"tag": "1.4.0"}, "replicas": 1}),
        patches: json!([{"op": "add", "path": "/web/tls/authority", "value": "generated"}]),
        history: history(),
        hooks: BTreeMap::from([
            (
                "hooks/certificates.sh".to_owned(),
                vec!["certificates".to_owned(), "nodes".to_owned()],
            ),
            ("hooks/render.sh".to_owned(), Vec::new()),
        ]),
        last_runs: last_runs(),
        runs: runs(),
        queues: vec![queue("main", 3)],
    }
}

fn history() -> Vec<Revision> {
    let revision = |number: u32, status: &str, config: &str| Revision {
        number,
        status: status.to_owned(),
        written: NOW - i64::from(10 - number) * 86_000,
        config: Some(config.to_owned()),
    };
    vec![
        revision(6, "superseded", "a"),
        revision(7, "failed", "b"),
        revision(8, "superseded", "b"),
        revision(9, "deployed", "b"),
    ]
}

fn last_runs() -> BTreeMap<String, LastRun> {
    BTreeMap::from([(
        "hooks/certificates.sh".to_owned(),
        LastRun {
            binding: "certificates".to_owned(),
            began: NOW - 108,
            seconds: 0.184,
            end: "exit code 1".to_owned(),
            failure: "openssl: cannot open /etc/ssl/ca.crt".to_owned(),
            output: vec![
                "renewing the authority".to_owned(),
                HOSTILE[0].to_owned(),
                "openssl: cannot open /etc/ssl/ca.crt".to_owned(),
            ],
        },
    )])
}

fn runs() -> Vec<Run> {
    vec![Run {
        id: "20261129-200000-1".to_owned(),
        hook: "hooks/certificates.sh".to_owned(),
        binding: "certificates".to_owned(),
        began: "2026-11-29T19:58:12Z".to_owned(),
        seconds: 0.184,
        end: "exit code 1".to_owned(),
        failure: Some("openssl: cannot open /etc/ssl/ca.crt".to_owned()),
    }]
}

/// The Events of a module, with texts that try to break the page among them.
pub(crate) fn events() -> Vec<Event> {
    let event = |ago: i64, is_warning: bool, reason: &str, object: &str, message: &str, count: u32| Event {
        last: NOW - ago,
        is_warning,
        reason: reason.to_owned(),
        object: object.to_owned(),
        message: message.to_owned(),
        count,
    };
    let pull = "Failed to pull image \"registry.example/web:typo\": not found";
    let hostile = HOSTILE.map(|text| event(2_400, true, text, text, text, 1));
    let plain = [
        event(20, true, "Failed", "Pod/web-5c8-x7f2k", pull, 4),
        event(
            95,
            false,
            "ScalingReplicaSet",
            "Deployment/web",
            "Scaled up replica set web-5c8 from 0 to 1",
            1,
        ),
        event(
            95,
            false,
            "ModuleRun",
            "ConfigMap/addon-operator",
            "module 'web' is at revision 9",
            1,
        ),
    ];
    plain.into_iter().chain(hostile).collect()
}

/// The difference of two revisions.
pub(crate) fn comparison(from: u32, to: u32) -> Comparison {
    let field = |path: &str, before: &str, after: &str| FieldChange {
        path: path.to_owned(),
        before: before.to_owned(),
        after: after.to_owned(),
    };
    let change = |act: &str, object: &str, fields: Vec<FieldChange>| Change {
        act: act.to_owned(),
        object: object.to_owned(),
        fields,
    };
    let hostile = HOSTILE.map(|text| field(text, text, text)).to_vec();
    Comparison {
        from,
        to,
        changes: vec![
            change(
                "changed",
                "Deployment web",
                vec![
                    field("spec.replicas", "1", "3"),
                    field(
                        "spec.template.spec.containers[web].image",
                        "\"registry.example/web:1.4.2\"",
                        "\"registry.example/web:typo\"",
                    ),
                    field("spec.template.spec.containers[web].env[LEVEL].value", "", "\"debug\""),
                ],
            ),
            change("new", "HorizontalPodAutoscaler web", Vec::new()),
            change("gone", "Ingress web", Vec::new()),
            change("changed", "ConfigMap web-settings", hostile),
        ],
    }
}
