//! Waits that only their names tell from a standstill.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use testbed::wait::wait_until;

use super::stage::{Operator, PATIENCE, Stage};

/// A helm hook that never ends, because no node takes its pod.
const NEVER: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: never\n  annotations: {helm.sh/hook: post-install, helm.sh/hook-weight: '3'}\nspec: {containers: [{name: c, image: i}]}\n";

/// Waits until the answer about a module contains all of these texts.
fn wait_for_why(operator: &Operator<'_>, module: &str, texts: &[&str]) {
    let claim = format!("why {module} says {texts:?}");
    wait_until(PATIENCE, &claim, || {
        let said = operator.try_ask(&format!("why {module}"));
        let all = texts.iter().all(|text| said.contains(text));
        all.then_some(Some(())).ok_or(said)
    })
    .unwrap();
}

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
    wait_for_why(&operator, "late", &texts);
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
    wait_for_why(&operator, "good", &texts);
    operator.stop();
}
