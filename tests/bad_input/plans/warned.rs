//! Plans as warnings for a person who edits the ConfigMap.

use serde_json::json;

use crate::bad_input::stage::{CONVERGED, Stage, assert_says};

/// A hook that takes its time when it is tried for a plan.
const SLOW: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"beforeHelm\":1,\"dryRun\":true}'; exit; fi\n\
                    [ -z \"$ADDON_OPERATOR_DRY_RUN\" ] || sleep 60\n";

#[test]
fn an_edit_is_answered_with_its_plan_if_that_is_wanted() {
    let mut stage = Stage::build("warned");
    stage.write("modules/020-victim/hooks/slow.sh", SLOW);
    stage.serve_webhooks();
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_refusal();
    let edit = json!({"data": {"good": "size: large"}});
    let said = stage.patch(&edit, &["--dry-run=server"]);
    assert!(!said.contains("Warning"), "{said}");
    operator.stop();

    stage.set("ADDON_OPERATOR_PLAN_WARNINGS", "true");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_refusal();
    let said = stage.patch(&edit, &["--dry-run=server"]);
    let expected = [
        "Warning: 1. good runs",
        "size: small → large",
        "~ ConfigMap good",
        "modules: 1 run again",
        "patched",
    ];
    assert_says(&said, &expected);
    assert!(!said.contains("still at work"), "{said}");
    assert_eq!(stage.sizes(), "good:small victim:small");
    // The API server cuts nothing off, and a secret is not in a warning.
    let said = stage.patch(
        &json!({"data": {"good": "password: open-sesame"}}),
        &["--dry-run=server"],
    );
    assert_says(&said, &["Warning: 1. good runs"]);
    assert!(!said.contains("open-sesame"), "{said}");
    // Half of a secret would be there if a long text were cut before.
    let text = format!("password: open-sesame\nsize: {}open-sesame", "x".repeat(194));
    let said = stage.patch(&json!({"data": {"good": text}}), &["--dry-run=server"]);
    assert_says(&said, &["Warning: 1. good runs", "xxx"]);
    assert!(!said.contains("open"), "{said}");
    // The edit does not wait for a plan that takes its time.
    let said = stage.patch(&json!({"data": {"victim": "size: large"}}), &["--dry-run=server"]);
    assert_says(&said, &["Warning: the plan is not made within", "patched"]);
    // An edit that is refused has no plan.
    let said = stage.patch(&json!({"data": {"goodEnabled": "perhaps"}}), &["--dry-run=server"]);
    assert!(said.contains("denied") && !said.contains("Warning: 1."), "{said}");
    operator.stop();
}
