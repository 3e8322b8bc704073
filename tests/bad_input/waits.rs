//! Waits that only their names tell from a standstill.

use super::stage::Stage;

/// A helm hook that never ends, because no node takes its pod.
const NEVER: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: never\n  annotations: {helm.sh/hook: post-install, helm.sh/hook-weight: '3'}\nspec: {containers: [{name: c, image: i}]}\n";

#[test]
fn a_helm_hook_that_never_ends_is_named_with_its_pod() {
    let stage = Stage::installed("never");
    stage.add_module("030-late");
    stage.write("modules/030-late/templates/never.yaml", NEVER);
    let operator = stage.start();
    let texts = [
        "waits for: helm hook Pod/never (post-install, weight 3), begun ",
        "s ago and given up after ",
        "its pod is Pending",
    ];
    operator.wait_for_why("late", &texts);
    operator.stop();
}

#[test]
fn modules_behind_a_global_hook_that_fails_are_undecided_and_name_it() {
    let stage = Stage::installed("undecided");
    let hook = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nonStartup: 1'; exit; fi\necho no registry >&2\nexit 1\n";
    stage.write("global-hooks/fails.sh", hook);
    let operator = stage.start();
    let texts = [
        "enabled: unknown, not decided yet",
        "state: Undecided",
        "waits for: what runs before all modules: ",
        "fails.sh",
        "no registry",
    ];
    operator.wait_for_why("good", &texts);
    operator.stop();
}
