//! A ConfigMap that is broken, deleted or served with nonsense, and a state Secret that cannot be read.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use serde_json::{Value, json};
use testbed::plane::User;

use super::garbage::{ASKED, ENDED, deep, laughs};
use super::stage::{CONVERGED, Stage, assert_says};

const COUNTED: &str = "addon_operator_config_values_errors_total ";

#[test]
fn a_section_of_the_wrong_type() {
    let stage = Stage::build("wrong-type");
    stage.configure(&json!({"good": "size: large", "victim": "size: large"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert_eq!(stage.sizes(), "good:large victim:large");
    stage.configure(&json!({"good": "size: huge", "victim": "just a text", "lateEnabled": "perhaps"}));
    let told = operator.wait_for(&["last good value stays", "\"key\":\"victim\""]);
    assert_says(
        &told,
        &[
            "\"level\":\"error\"",
            "module config should be array or map",
            "\"config_map\":\"addon-operator\"",
        ],
    );
    assert_says(
        &operator.wait_for(&["last good value stays", "\"key\":\"lateEnabled\""]),
        &["perhaps", "boolean"],
    );
    stage.wait_for_sizes("good:huge victim:large");
    let words = ["ConfigMap key victim: ", "ConfigMap key lateEnabled: "];
    operator.wait_for_answer("/readyz?verbose", 200, &words);
    // Both failures have been counted at least once.
    let counted = |metrics: &str| {
        metrics
            .lines()
            .find_map(|line| line.strip_prefix(COUNTED)?.trim().parse::<u32>().ok())
    };
    let metrics = operator.get("/metrics").1;
    assert!(counted(&metrics).is_some_and(|count| count >= 2), "{metrics}");
    operator.stop();

    // The next operator process knows the last good section too.
    let operator = stage.start();
    operator.wait_for(&["last good value stays", "\"key\":\"victim\""]);
    operator.wait_for(&[CONVERGED]);
    assert_eq!(stage.sizes(), "good:huge victim:large");
    stage.configure(&json!({"good": "size: huge", "victim": "size: mended"}));
    stage.wait_for_sizes("good:huge victim:mended");
    assert!(!operator.get("/readyz?verbose").1.contains("ConfigMap key"));
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn a_config_map_that_is_deleted_changes_nothing() {
    let stage = Stage::build("deleted");
    // Only the ConfigMap switches on the victim.
    stage.write("modules/values.yaml", "goodEnabled: true\n");
    stage.configure(&json!({"good": "size: large", "victimEnabled": "true", "victim": "size: large"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let before = stage.objects();
    stage.kubectl("delete configmap addon-operator");
    let told = operator.wait_for(&["ConfigMap is not found, the last good configuration stays applied"]);
    assert_says(&told, &["\"level\":\"warn\"", "\"config_map\":\"addon-operator\""]);
    operator.stop();
    assert_eq!(stage.objects(), before);
    assert_eq!(stage.sizes(), "good:large victim:large");

    // The ConfigMap is still missing when the next operator starts.
    let operator = stage.start();
    operator.wait_for(&["ConfigMap is not found"]);
    operator.wait_for(&[CONVERGED]);
    assert_eq!(stage.objects(), before);
    stage.assert_installed(&["good", "victim"]);
    stage.configure(&json!({"victimEnabled": "true", "victim": "size: again"}));
    stage.wait_for_sizes("good:small victim:again");
    let before = stage.objects();
    operator.stop();

    // The ConfigMap is deleted while no operator runs.
    stage.kubectl("delete configmap addon-operator");
    let operator = stage.start();
    operator.wait_for(&["ConfigMap is not found"]);
    operator.wait_for(&[CONVERGED]);
    assert_eq!(stage.objects(), before);
    stage.assert_installed(&["good", "victim"]);
    // An edit by a person counts: the module that it switches off is removed.
    stage.configure(&json!({"victimEnabled": "false"}));
    stage.wait_for_sizes("good:small");
    operator.stop();
}

#[test]
fn a_state_that_cannot_be_read() {
    let stage = Stage::build("state");
    stage.write("modules/values.yaml", "goodEnabled: true\n");
    stage.configure(&json!({"good": "size: large", "victimEnabled": "true", "victim": "size: large"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    let before = stage.objects();
    stage.kubectl(
        r#"patch secret addon-operator-state --type=merge --patch={"stringData":{"last-good":"{\"victim\":7","intent.victim":"[","version":"many"}}"#,
    );
    stage.kubectl("delete configmap addon-operator");
    let operator = stage.start();
    let told = operator.wait_for(&["cannot read our own state"]);
    assert_says(&told, &["\"level\":\"warn\"", "addon-operator-state", "last-good"]);
    operator.wait_for(&["Configuration is lost"]);
    operator.wait_for(&[CONVERGED]);
    assert_eq!(stage.objects(), before, "with nothing to go by, nothing is touched");
    stage.assert_installed(&["good", "victim"]);
    // The operator keeps the new good sections as the last good ones.
    stage.configure(&json!({"good": "size: large", "victimEnabled": "true", "victim": "size: new"}));
    stage.wait_for_sizes("good:large victim:new");
    operator.stop();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert!(operator.records(&["cannot read our own state"]).is_empty());
    let aside = stage.kubectl("get secret addon-operator-state-unreadable -o=jsonpath={.data.last-good}");
    assert_eq!(aside, "eyJ2aWN0aW0iOjc=", "what could not be read, in base64");
    // The state Secret is deleted while the operator runs, and nothing goes wrong.
    stage.kubectl("delete secret addon-operator-state");
    stage.configure(&json!({"good": "size: other", "victimEnabled": "true", "victim": "size: new"}));
    stage.wait_for_sizes("good:other victim:new");
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

/// Text that compresses to no less than three quarters of its length.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[(state >> 58) as usize])
    };
    (0..length).map(|_| letter()).collect()
}

/// A ConfigMap whose sections have this many bytes together.
fn full(bytes: usize, good: &str, victim: &str) -> Value {
    let pad = (bytes - 200) / 2;
    let section = |seed, size| format!("size: {size}\npad: {}\n", noise(seed, pad));
    map(&json!({"good": section(1, good), "victim": section(2, victim), "victimEnabled": "true"}))
}

#[test]
fn a_config_map_that_is_full_keeps_nobody_from_helm() {
    let stage = Stage::build("full");
    stage.write("modules/values.yaml", "goodEnabled: true\n");
    stage.configure(&json!({"victimEnabled": "true"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    put(&stage, &full(1_040_000, "large", "large"));
    stage.wait_for_sizes("good:large victim:large");
    put(&stage, &full(1_030_000, "larger", "larger"));
    stage.wait_for_sizes("good:larger victim:larger");
    operator.stop();

    // The next operator reads the last good texts, while one section in the ConfigMap is broken.
    let mut broken = full(1_030_000, "largest", "larger");
    broken["data"]["victim"] = json!("size: [");
    put(&stage, &broken);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_sizes("good:largest victim:larger");
    assert!(operator.records(&["too large"]).is_empty());
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

/// Replaces the ConfigMap. `apply` would store a second copy in an annotation, for which there is no room.
fn put(stage: &Stage, config_map: &Value) {
    let kubectl = stage.namespace().kubectl_as(User::Admin);
    kubectl
        .feed(["replace", "--filename=-"], &config_map.to_string())
        .unwrap();
}

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data})
}

#[test]
fn config_maps_that_hold_anything() {
    let mut stage = Stage::installed("anything");
    stage.set("HELM_HISTORY_MAX", "0");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.configure(&json!({"good": "size: one", "victim": "size: one"}));
    stage.wait_for_sizes("good:one victim:one");

    // A mistake in a key is reported with the key's name, and changes no release.
    let rows = [
        ("victim", json!({"victim": format!("size: {}", deep(5000))}), "nested"),
        ("victim", json!({"victim": laughs("size")}), "victim"),
        ("victim", json!({"victim": "size: \u{0}\u{1}"}), "control"),
        ("victim", json!({"victim": "size: *nobody"}), "line 1"),
        ("victim", json!({"victim": "\u{fffd}\u{fffd}"}), "array or map"),
        ("victim", json!({"victim": "a: 1\na: 2"}), "line 2"),
        ("Some.odd-key_", json!({"Some.odd-key_": "x"}), "camelCased"),
        ("globalEnabled", json!({"globalEnabled": "true"}), "global"),
    ];
    for (round, (key, mut data, word)) in rows.into_iter().enumerate() {
        let size = format!("r{round}");
        data["good"] = json!(format!("size: {size}"));
        if key != "victim" {
            data["victim"] = json!("size: one");
        }
        put(&stage, &map(&data));
        let key = format!("\"key\":\"{key}\"");
        operator.wait_for(&["\"level\":\"error\"", &key, word]);
        stage.wait_for_sizes(&format!("good:{size} victim:one"));
    }
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn config_maps_that_are_deep_large_long_or_frozen() {
    let mut stage = Stage::installed("large");
    stage.set("HELM_HISTORY_MAX", "0");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.configure(&json!({}));

    // A section that is deep but valid, beside binary data of another program.
    let mut config_map = map(&json!({"good": "size: bytes", "victim": format!("{{size: deep, more: {}}}", deep(300))}));
    config_map["binaryData"] = json!({"good.bin": "/////wAA", "lateEnabled": "/////wAA"});
    put(&stage, &config_map);
    stage.wait_for_sizes("good:bytes victim:deep");

    // A ConfigMap of nearly the largest possible size, 1 MiB.
    let large = "x".repeat(500_000);
    put(
        &stage,
        &map(
            &json!({"good": "size: large", "victim": format!("{{size: large, more: {large}}}"), "stranger": format!("a: {large}")}),
        ),
    );
    stage.wait_for_sizes("good:large victim:large");

    // Thousands of keys, each with another mistake: the report comes in bounded time, and the last edit is applied.
    let mut many: serde_json::Map<String, Value> = (0..4000)
        .map(|number| (format!("k{number}Enabled"), json!("perhaps")))
        .collect();
    many.extend([
        ("good".to_owned(), json!("size: many")),
        ("victim".to_owned(), json!("size: many")),
    ]);
    put(&stage, &map(&many.into()));
    stage.wait_for_sizes("good:many victim:many");

    let mut frozen = map(&json!({"good": "size: frozen", "victim": "size: frozen"}));
    frozen["immutable"] = json!(true);
    put(&stage, &frozen);
    stage.wait_for_sizes("good:frozen victim:frozen");
    operator.wait_for_answer("/readyz", 200, &[]);
    operator.stop();

    // A hook that wants to save values to the full ConfigMap gets an error.
    let save =
        "echo '{\"op\": \"add\", \"path\": \"/late/size\", \"value\": \"saved\"}' >$CONFIG_VALUES_JSON_PATCH_PATH\n";
    stage.add_module("030-late");
    stage.write("modules/030-late/hooks/h.sh", &format!("{ASKED}{save}"));
    let operator = stage.start();
    operator.wait_for(&["\"module\":\"late\"", "addon-operator", "immutable"]);
    operator.wait_for(&[ENDED]);
    operator.stop();
    assert_eq!(stage.sizes(), "good:frozen victim:frozen");
    stage.assert_installed(&["good", "victim"]);
}
