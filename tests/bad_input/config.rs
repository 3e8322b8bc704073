//! A ConfigMap that is broken, gone or answered for by somebody who talks nonsense, and a state that cannot be read.

use serde_json::json;

use super::stage::{CONVERGED, Stage, assert_says};

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
    assert_says(&operator.get("/metrics").1, &["config_values_errors_total 2"]);
    operator.stop();

    // The last good section is known in the next life, too.
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
    // Only the ConfigMap speaks for the victim.
    stage.write("modules/values.yaml", "goodEnabled: true\n");
    stage.configure(&json!({"good": "size: large", "victimEnabled": "true", "victim": "size: large"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.kubectl("delete configmap addon-operator");
    let told = operator.wait_for(&["ConfigMap is not found, what was last good stays in force"]);
    assert_says(&told, &["\"level\":\"warn\"", "\"config_map\":\"addon-operator\""]);
    operator.stop();
    assert_eq!(stage.sizes(), "good:large victim:large");

    // It is still gone when the next life begins.
    let operator = stage.start();
    operator.wait_for(&["ConfigMap is not found"]);
    operator.wait_for(&[CONVERGED]);
    assert_eq!(stage.sizes(), "good:large victim:large");
    stage.assert_installed(&["good", "victim"]);
    stage.configure(&json!({"victimEnabled": "true", "victim": "size: again"}));
    stage.wait_for_sizes("good:small victim:again");
    operator.stop();

    // And it may go while nobody looks.
    stage.kubectl("delete configmap addon-operator");
    let operator = stage.start();
    operator.wait_for(&["ConfigMap is not found"]);
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    assert_eq!(stage.sizes(), "good:small victim:again");
    stage.assert_installed(&["good", "victim"]);
}

#[test]
fn a_state_that_cannot_be_read() {
    let stage = Stage::build("state");
    stage.write("modules/values.yaml", "goodEnabled: true\n");
    stage.configure(&json!({"good": "size: large", "victimEnabled": "true", "victim": "size: large"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage.kubectl(
        r#"patch secret addon-operator-state --type=merge --patch={"stringData":{"last-good":"{\"victim\":7","intent.victim":"[","version":"many"}}"#,
    );
    stage.kubectl("delete configmap addon-operator");
    let operator = stage.start();
    let told = operator.wait_for(&["cannot read our own state"]);
    assert_says(&told, &["\"level\":\"warn\"", "addon-operator-state", "last-good"]);
    operator.wait_for(&[CONVERGED]);
    stage.assert_installed(&["good", "victim"]);
    // What is in force is kept anew.
    stage.configure(&json!({"good": "size: large", "victimEnabled": "true", "victim": "size: new"}));
    stage.wait_for_sizes("good:large victim:new");
    operator.stop();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert!(operator.records(&["cannot read our own state"]).is_empty());
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
}
