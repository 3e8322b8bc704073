//! Enabled scripts that delay all modules.

use super::stage::{CONVERGED, Stage, assert_says};

/// Takes longer than other modules wait, and then answers yes.
const SLOW: &str = "#!/bin/sh\nsleep 20\necho true >$MODULE_ENABLED_RESULT\n";
/// Takes longer than a script may.
const HANGING: &str = "#!/bin/sh\nsleep 1000\n";

#[test]
fn the_others_do_not_wait_for_scripts_that_hang() {
    let mut stage = Stage::installed("hanging-scripts");
    stage.set("ADDON_OPERATOR_ENABLED_SCRIPT_TIMEOUT", "30s");
    // The scripts run before those of all other modules, so the others wait for them.
    for (dir, script) in [("001-hanging", HANGING), ("002-slow", SLOW)] {
        stage.add_module(dir);
        stage.write(&format!("modules/{dir}/enabled"), script);
    }
    stage.write(
        "modules/values.yaml",
        "goodEnabled: true\nvictimEnabled: true\nhangingEnabled: true\nslowEnabled: true\n",
    );
    stage.write("modules/010-good/values.yaml", "good: {size: other}\n");

    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for_answer("/readyz", 200, &[]);
    stage.wait_for_sizes("good:other victim:small");
    for module in ["hanging", "slow"] {
        let name = format!("\"module\":\"{module}\"");
        operator.wait_for(&["Enabled script has not answered yet.", &name]);
    }
    assert_says(
        &operator.ask("module why hanging"),
        &["enabled script", "which has been running for"],
    );
    // The late answer still counts.
    stage.wait_for_sizes("good:other slow:small victim:small");

    operator.wait_for(&[
        "Enabled script failed.",
        "failed to execute 'hanging' module's enabled script",
        "did not end within 30s",
        "modules/001-hanging/enabled",
        "ADDON_OPERATOR_ENABLED_SCRIPT_TIMEOUT",
    ]);
    assert_says(
        &operator.ask("module why hanging"),
        &["EnabledScript of hook 'enabled'", "did not end within 30s"],
    );
    operator.stop();
    stage.assert_installed(&["good", "slow", "victim"]);
}
