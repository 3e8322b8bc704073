//! The shipped modules and the global hook, run directly: each script with the files that the operator would give it,
//! each chart with helm. The contract tests and the demo show them with the operator.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use testbed::plane::User;
use testbed::{process, shared};

mod shipped {
    mod aerospike;
    mod node;
    mod schemas;
    mod stage;
    mod unattended;
}

const TUNER_HOOK: &str = "modules/100-sysctl-tuner/hooks/complete-settings.sh";
const NODES_HOOK: &str = "modules/100-sysctl-tuner/hooks/follow-nodes.sh";
const AUDIT_ENABLED: &str = "modules/300-sysctl-audit/enabled";
const FACTS_HOOK: &str = "global-hooks/hooks/cluster-facts.sh";

fn path(inside: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(inside)
}

/// The files that a script has written.
struct Ran {
    output: Output,
    files: tempfile::TempDir,
}

impl Ran {
    fn file(&self, name: &str) -> String {
        fs_err::read_to_string(self.files.path().join(name)).unwrap_or_default()
    }

    /// The path and value of each operation of the patch, in order; the operations must all be additions.
    fn added(&self) -> Vec<(String, Value)> {
        let operations: Vec<Value> = serde_json::from_str(&self.file("patch")).expect("the patch is a JSON list");
        let pair = |operation: &Value| {
            assert_eq!(operation["op"], "add");
            let path = operation["path"].as_str().expect("every operation has a path");
            (path.to_owned(), operation["value"].clone())
        };
        operations.iter().map(pair).collect()
    }

    fn error(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).trim().to_owned()
    }
}

/// Runs a script as the operator does, with files for values and answers, and with the cluster of this test run.
fn run(script: &str, values: &Value) -> Ran {
    run_for(script, values, &json!([]))
}

/// Runs a hook with these binding contexts.
fn run_for(script: &str, values: &Value, contexts: &Value) -> Ran {
    let files = tempfile::tempdir().expect("a temporary folder can be made");
    let file = |name: &str| files.path().join(name);
    fs_err::write(file("values"), values.to_string()).expect("the folder can be written");
    fs_err::write(file("patch"), "").expect("the folder can be written");
    fs_err::write(file("contexts"), contexts.to_string()).expect("the folder can be written");
    let mut command = process::command(path(script));
    command
        .env("FRAMEWORK_DIR", path("frameworks/shell"))
        .env("BINDING_CONTEXT_PATH", file("contexts"))
        .env("VALUES_PATH", file("values"))
        .env("VALUES_JSON_PATCH_PATH", file("patch"));
    command
        .env("MODULE_ENABLED_RESULT", file("result"))
        .env("MODULE_ENABLED_REASON", file("reason"));
    if script == FACTS_HOOK {
        command.envs(shared::plane().environment(User::Admin));
    }
    let output = process::run(command, None).expect("the script is executable, and bash is installed");
    Ran { output, files }
}

#[test]
fn the_tuner_completes_its_settings() {
    let rows = [
        ("web", "36", "registry.k8s.io/pause:3.10.1", "net.core.somaxconn"),
        ("database", "32+", "registry.k8s.io/pause:3.10", "vm.dirty_ratio"),
        ("search", "29", "registry.k8s.io/pause:3.9", "vm.max_map_count"),
    ];
    for (profile, minor, pause, setting) in rows {
        let values = json!({"global": {"cluster": {"minor": minor}, "profile": "another"},
                            "sysctlTuner": {"derived": {}, "profile": profile}});
        let added = run(TUNER_HOOK, &values).added();
        assert_eq!(added.len(), 1, "{profile}");
        assert_eq!(added[0].0, "/sysctlTuner/derived");
        assert_eq!(added[0].1["pauseImage"], pause, "{profile}");
        assert!(added[0].1["preset"][setting].is_string(), "{profile}: {}", added[0].1);
    }
}

#[test]
fn without_profile_and_facts_nothing_is_derived() {
    let ran = run(TUNER_HOOK, &json!({"global": {}, "sysctlTuner": {"profile": "none"}}));
    assert_eq!(
        ran.added(),
        [(
            "/sysctlTuner/derived".to_owned(),
            json!({"preset": {}, "pauseImage": ""})
        )]
    );
}

#[test]
fn the_tuner_makes_room_for_the_neighbours_of_all_nodes() {
    let table = |entries: u32| {
        json!({
            "net.ipv4.neigh.default.gc_thresh1": (entries / 8).to_string(),
            "net.ipv4.neigh.default.gc_thresh2": (entries / 2).to_string(),
            "net.ipv4.neigh.default.gc_thresh3": entries.to_string(),
        })
    };
    let rows = [
        (0, json!(256), json!({})),
        (4, json!(256), json!({})),
        (5, json!(256), table(2048)),
        (8, json!(256), table(2048)),
        (9, json!(256), table(4096)),
        (5000, json!(256), table(131_072)),
        (5, json!(0), json!({})),
        (5, Value::Null, json!({})),
        (5, json!(204.9), table(2048)),
    ];
    for (count, each, expected) in rows {
        let nodes: Vec<_> = (0..count)
            .map(|n| json!({"filterResult": format!("node-{n}")}))
            .collect();
        let context =
            |binding: &str, kind: &str| json!({"binding": binding, "type": kind, "snapshots": {"nodes": nodes}});
        let contexts = [
            context("nodes", "Event"),
            context("beforeHelm", ""),
            context("nodes", "Synchronization"),
        ];
        for context in &contexts {
            let values = json!({"global": {}, "sysctlTuner": {"neighboursPerNode": each}});
            let ran = run_for(NODES_HOOK, &values, &json!([context, context]));
            assert_eq!(ran.error(), "");
            assert_eq!(
                ran.added(),
                [("/sysctlTuner/neighbours".to_owned(), expected.clone())],
                "{count} {context}"
            );
        }
    }
}

#[test]
fn a_profile_that_does_not_exist_is_an_error_that_names_it() {
    let ran = run(TUNER_HOOK, &json!({"global": {}, "sysctlTuner": {"profile": "odd"}}));
    assert_eq!(ran.output.status.code(), Some(1));
    assert!(
        ran.error().starts_with("unknown profile 'odd' in sysctlTuner.profile"),
        "{}",
        ran.error()
    );
    assert_eq!(ran.file("patch"), "");
}

#[test]
fn the_audit_follows_the_tuner_and_its_interval() {
    let values = |modules: &[&str], seconds: Value| json!({"global": {"enabledModules": modules, "everySeconds": 5}, "sysctlAudit": {"everySeconds": seconds}});
    let rows = [
        (values(&["sysctl-tuner"], json!(60)), "true", ""),
        (values(&["other"], json!(60)), "false", "sysctl-tuner is not enabled"),
        (
            values(&["sysctl-tuner"], json!(0)),
            "false",
            "sysctlAudit.everySeconds is 0",
        ),
    ];
    for (values, result, reason) in rows {
        let ran = run(AUDIT_ENABLED, &values);
        assert_eq!(
            (ran.file("result").as_str(), ran.file("reason").as_str()),
            (result, reason),
            "{values}"
        );
    }
    let ran = run(AUDIT_ENABLED, &values(&["sysctl-tuner"], json!("often")));
    assert_eq!(ran.output.status.code(), Some(1), "no answer is given by guessing");
    assert_eq!(ran.file("result"), "");
}

#[test]
fn the_facts_are_those_of_the_cluster() {
    let answer = shared::plane().kubectl(["get", "--raw", "/version"]).unwrap();
    let version: Value = serde_json::from_str(&answer).unwrap();
    let facts = [
        ("/global/cluster/version".to_owned(), version["gitVersion"].clone()),
        ("/global/cluster/major".to_owned(), version["major"].clone()),
        ("/global/cluster/minor".to_owned(), version["minor"].clone()),
    ];
    let ran = run(FACTS_HOOK, &json!({"global": {"cluster": {"of others": 1}}}));
    assert_eq!(ran.added(), facts, "{}", ran.error());
    let ran = run(FACTS_HOOK, &json!({"global": {}}));
    assert_eq!(
        ran.added()[0],
        ("/global/cluster".to_owned(), json!({})),
        "a parent that is missing is made"
    );
    assert_eq!(ran.added()[1..], facts);
}

/// The manifests that helm renders for a module with these values.
fn rendered(module: &str, values: &Value) -> String {
    let mut command = process::command(shared::plane().programs().join("helm"));
    command
        .args(["template", "shipped"])
        .arg(path(module))
        .args(["--values", "-"]);
    let output = process::run(command, Some(values.to_string().as_bytes())).expect("the testbed has helm");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("manifests are text")
}

#[test]
fn settings_win_over_the_profile_and_large_numbers_stay_whole() {
    let preset = json!({"vm.swappiness": "1", "net.core.somaxconn": "4096"});
    let neighbours = json!({"net.ipv4.neigh.default.gc_thresh3": "2048", "vm.swappiness": "99"});
    let values = json!({"sysctlTuner": {"derived": {"preset": preset, "pauseImage": "pause:derived"},
                                        "neighbours": neighbours,
                                        "settings": {"vm.swappiness": 10, "vm.max_map_count": 1_000_000}}});
    let manifest = rendered("modules/100-sysctl-tuner", &values);
    let wanted = "    net.core.somaxconn = 4096\n    net.ipv4.neigh.default.gc_thresh3 = 2048\n    vm.max_map_count = 1000000\n    vm.swappiness = 10\n";
    assert!(manifest.contains(wanted), "{manifest}");
    assert!(manifest.contains("image: pause:derived"), "{manifest}");
}

#[test]
fn the_charts_render_with_the_values_that_they_bring() {
    let manifest = rendered("modules/100-sysctl-tuner", &json!({}));
    assert!(manifest.contains("image: registry.k8s.io/pause:3.10\n"), "{manifest}");
    let manifest = rendered(
        "modules/300-sysctl-audit",
        &json!({"sysctlAudit": {"everySeconds": 90}}),
    );
    assert!(manifest.contains("periodSeconds: 90\n"), "{manifest}");
}

/// No shipped module may change a cluster, or the values of a user's own modules, before a person switches it on.
#[test]
fn the_shipped_modules_are_off_and_say_nothing_of_values_that_all_modules_see() {
    let text = fs_err::read_to_string(path("modules/values.yaml")).unwrap();
    assert_eq!(helm_yaml::yaml::documents_v2(&text).unwrap(), [json!({})]);
    let image = fs_err::read_to_string(path("image/image.yaml")).unwrap();
    let image = helm_yaml::yaml::documents_v2(&image).unwrap().remove(0);
    // The files of the first directory count.
    assert_eq!(image["run"]["environment"]["MODULES_DIR"], "/modules:/shipped-modules");
    let copies: Vec<&Value> = image["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|layer| &layer["copies"])
        .collect();
    assert!(copies.iter().all(|copies| copies["/modules"].is_null()), "{copies:?}");
    assert!(
        copies.iter().any(|copies| copies["/shipped-modules"] == "modules"),
        "{copies:?}"
    );
}
