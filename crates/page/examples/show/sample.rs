//! Sample facts of any size, for tests and pictures: modules of all states, with hostile names and texts among them.

mod of_module;

use std::collections::BTreeMap;

use super::facts::{Converge, Failing, Fleet, HeldRemoval, Machinery, Module, Operator, Queue, Slots, TrialStep};
use serde_json::{Value, json};

pub(crate) use of_module::{comparison, detail, events};

/// Names of add-ons that a cluster could have.
const NAMES: [&str; 24] = [
    "cert-manager",
    "ingress-nginx",
    "external-dns",
    "node-exporter",
    "prometheus",
    "grafana",
    "loki",
    "cilium",
    "metrics-server",
    "cluster-autoscaler",
    "descheduler",
    "velero",
    "vault",
    "sysctl-tuner",
    "aerospike",
    "postgres",
    "redis",
    "kafka",
    "local-path",
    "ceph-csi",
    "snapshot-controller",
    "node-problem",
    "keda",
    "trivy",
];
/// A fixed time: 2026-11-29 20:00 UTC.
pub(crate) const NOW: i64 = 1_795_982_400;

/// Texts that a page must show as they are.
pub(crate) const HOSTILE: [&str; 4] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "{{head.version}} ${x} `id`",
    "\u{202e}gnp.exe עברית العربية",
];

/// Facts with this number of modules.
pub(crate) fn fleet(size: usize) -> Fleet {
    Fleet {
        operator: operator(size),
        modules: (0..size).map(module).collect(),
    }
}

pub(crate) fn operator(size: usize) -> Operator {
    let mut operator = Operator {
        version: "0.2.0".to_owned(),
        namespace: "addons".to_owned(),
        pod: "addon-operator-7c9f8d6b5-x2x8k".to_owned(),
        config_map: "addon-operator".to_owned(),
        ready: true,
        ..Operator::default()
    };
    if size > 100 {
        operator.held = vec![HeldRemoval {
            release: "legacy-monitoring".to_owned(),
            sign: "no directory has it any more".to_owned(),
            reason: "3 removals came at once, more than a third of all releases".to_owned(),
            confirmable: true,
        }];
        operator.config_problems = BTreeMap::from([(
            "keda".to_owned(),
            "key 'keda' is no valid YAML: line 3: expected a mapping, found a sequence".to_owned(),
        )]);
        operator.converge_tasks = 12;
    }
    operator
}

fn name(index: usize) -> String {
    let base = NAMES[index % NAMES.len()];
    match index / NAMES.len() {
        0 => base.to_owned(),
        round => format!(
            "{base}-{}",
            ["blue", "green", "eu", "us", "lab", "edge", "dmz", "ci"][round % 8].to_owned() + &(round / 8).to_string()
        ),
    }
}

/// A chain of three depths over a few modules that many others need.
fn needs(index: usize) -> Vec<String> {
    let needed: &[usize] = match index {
        0 | 7 | 18 => &[],
        1 | 2 | 4 | 8 | 19 => &[7],
        5 | 6 | 12 => &[0, 4],
        _ if index.is_multiple_of(5) => &[],
        _ if index.is_multiple_of(3) => &[1, 5],
        _ if index.is_multiple_of(7) => &[18],
        _ => &[7],
    };
    needed.iter().map(|need| name(*need)).collect()
}

fn module(index: usize) -> Module {
    let healthy = Module {
        name: name(index),
        order: 10 * (1 + u32::try_from(index % 9).expect("a digit")),
        enabled: true,
        decided: true,
        enabled_by: "ConfigMap".to_owned(),
        state: "Ready".to_owned(),
        health: "Healthy".to_owned(),
        version: Some(format!("1.{}.{}", index % 7, index % 4)),
        revision: Some(1 + u32::try_from(index % 12).expect("small")),
        objects: Some(4 + u32::try_from(index % 23).expect("small")),
        ailing: Some(0),
        depends_on: needs(index),
        ..Module::default()
    };
    troubled(index, healthy)
}

/// The module in the state that its number gives it.
fn troubled(index: usize, mut module: Module) -> Module {
    match index % 40 {
        3 => {
            module.state = "Releasing".into();
            module.fails = true;
            module.failures = 7;
            module.error = Some(
                "cannot upgrade release: Deployment/shop is invalid: spec.template.spec.containers[0].image: Required value\nthe chart \
                 of revision 8 has no default for it"
                    .to_owned(),
            );
            module.hints = vec!["set image in the section of the module".to_owned()];
            module.waits_for = "the next try in 42s, after 7 failures".into();
            module.failing = vec![Failing {
                queue: "main".to_owned(),
                task: "ModuleHookRun".to_owned(),
                hook: "hooks/certificates.sh".to_owned(),
                failures: 2,
                error: "exit code 1: openssl: cannot open /etc/ssl/ca.crt".to_owned(),
                next_try: Some(NOW + 42),
            }];
        }
        5 => {
            module.health = "Unhealthy".into();
            module.ailing = Some(1);
            module.unhealthy =
                Some("Deployment/web: 1 of 3 replicas are ready; pod web-5c8 waits: ImagePullBackOff".to_owned());
            module.unhealthy_since = Some(NOW - 5 * 60);
        }
        9 => {
            module.state = "UpgradeHeld".into();
            module.upgrade_held = true;
            module.waits_for = "a person who permits the replacement of StatefulSet/data".into();
        }
        14 | 27 => {
            module.state = "Releasing".into();
            module.health = "RollingOut".into();
            module.waits_for = "hook 'hooks/render.sh' (beforeHelm)".into();
        }
        17 | 33 | 36 => {
            module.enabled = false;
            module.state = "Disabled".into();
            module.health = "Unknown".into();
            module.enabled_by = "Static".into();
            (module.revision, module.objects) = (None, None);
        }
        21 => module.in_maintenance = true,
        30 => module.drift = vec!["Deployment/web: spec.replicas is 5 by kubectl-scale, and 3 by the chart".to_owned()],
        _ => {}
    }
    module
}

/// A fleet with texts that try to break the page.
pub(crate) fn hostile() -> Fleet {
    let mut fleet = fleet(6);
    for (index, text) in HOSTILE.into_iter().enumerate() {
        let module = &mut fleet.modules[index];
        module.name = text.into();
        module.error = Some(text.repeat(3));
        module.fails = true;
        module.hints = vec![text.to_owned()];
        module.depends_on = vec![HOSTILE[0].to_owned()];
        module.drift = vec![text.to_owned()];
    }
    fleet.modules[4].error = Some("x".repeat(1 << 20));
    fleet.modules[4].fails = true;
    fleet.operator.pod = HOSTILE[1].into();
    fleet.operator.config_problems = BTreeMap::from([(HOSTILE[0].to_owned(), "y".repeat(1 << 20))]);
    fleet
}

pub(crate) fn queue(name: &str, length: usize) -> Queue {
    Queue {
        name: name.to_owned(),
        status: "sleep for 42s".to_owned(),
        length,
        head: "ModuleRun:main:ingress-nginx:failures 7:helm upgrade".to_owned(),
    }
}

fn slots(kind: &str, number: usize, jobs: &[&str]) -> Slots {
    Slots {
        kind: kind.to_owned(),
        number,
        jobs: jobs.iter().map(|job| (*job).to_owned()).collect(),
    }
}

/// The last converges: the seconds since their end, the milliseconds that they took, the cause, and the failing modules.
const CONVERGES: [(i64, u64, &str, usize); 8] = [
    (240, 6_400, "Config-Changed", 2),
    (3_900, 221_800, "Module-Files-Read", 0),
    (7_260, 900, "Schedule", 0),
    (14_460, 1_100, "Schedule", 0),
    (17_300, 65_000, "Config-Changed", 1),
    (21_660, 1_000, "Schedule", 0),
    (28_860, 900, "Schedule", 0),
    (30_900, 348_200, "Operator-Startup", 1),
];

/// The steps of the trial of the sample, which is in its third one.
const STEPS: [(&str, &str); 6] = [
    ("its pod is ready", "done"),
    ("it leads", "done"),
    ("its first converge is over", "now"),
    ("it has led without new failures", "later"),
    ("the Deployment names it", "later"),
    ("its pods have taken the place of the old ones", "later"),
];

fn step((text, is): &(&str, &str)) -> TrialStep {
    TrialStep {
        text: (*text).to_owned(),
        is: (*is).to_owned(),
    }
}

fn converge((ago, took, reason, failing): &(i64, u64, &str, usize)) -> Converge {
    Converge {
        reason: (*reason).to_owned(),
        ended: NOW - ago,
        took: *took,
        failing: *failing,
    }
}

/// The facts of the operator's view; those of a process that has just begun if there are no modules.
pub(crate) fn machinery(fleet: &Fleet) -> Machinery {
    if fleet.modules.is_empty() {
        return Machinery {
            converges: CONVERGES[..1].iter().map(converge).collect(),
            ..Machinery::default()
        };
    }
    let rows = [
        ("state", "on-trial"),
        ("running", "0.2.0"),
        ("image", "registry.example/addon-operator:0.2"),
        ("channel", "~0.2 (range, of the ConfigMap)"),
        ("policy", "auto, after 1h, in Mon-Fri 09:00-16:00"),
        ("available", "0.2.1 sha256:4f2a…c31"),
        ("trial", "of 0.2.1, begun 4m ago, at most 30m"),
        ("stage", "the pod of the trial runs, its first converge goes on"),
        ("next", "the verdict, when the first converge has ended"),
        ("checked", "20s ago, again in 40s"),
    ];
    Machinery {
        slots: vec![
            slots(
                "helm",
                2,
                &["release of module 'ingress-nginx'", "release of module 'vault'"],
            ),
            slots("hook", 4, &["hook 'hooks/certificates.sh' of module 'web'"]),
            slots("review", 16, &[]),
        ],
        requests_per_second: Some(3.4),
        queues: vec![queue("main", 12), queue("certificates", 1)],
        idle_queues: 41,
        converges: CONVERGES.iter().map(converge).collect(),
        channel: rows.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec(),
        trial: STEPS.iter().map(step).collect(),
        memory: Some(23_330_000),
        started: Some(NOW - 31_250),
    }
}

pub(crate) fn values() -> Value {
    json!({
        "image": {"repository": "registry.example/web", "tag": "1.4.2"},
        "replicas": 3,
        "password": "<masked>",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "tls": {"secretName": "web-tls", "authority": "generated"},
    })
}
