//! Waits that only their names tell from a standstill.

use fs_err as fs;
use testbed::kubectl::KubectlError;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Stage};

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

/// Gives a zone and switches a module on, unless its source is down.
const ZONE: &str = r#"#!/bin/sh
if [ "$1" = --config ]; then echo 'configVersion: v1
beforeAll: 1'; exit; fi
while [ -e "${0%/*}/../silent" ]; do sleep 0.1; done
if [ -e "${0%/*}/../down" ]; then echo the registry is down >&2; exit 1; fi
echo '[{"op": "add", "path": "/global/zone", "value": "west"}, {"op": "add", "path": "/zoneEnabled", "value": true}]' >"$VALUES_JSON_PATCH_PATH"
"#;

fn zone_template(edition: u32) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: zone}}\ndata: {{zone: {{{{ .Values.global.zone }}}}, edition: \"{edition}\"}}\n"
    )
}

#[expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]
fn wait_for_zone(stage: &Stage, expected: &str) {
    let look = || {
        let said = stage.namespace().kubectl([
            "get",
            "configmap",
            "zone",
            "--ignore-not-found",
            "--output=jsonpath={.data.zone}:{.data.edition}",
        ])?;
        Ok::<_, KubectlError>((said == expected).then_some(()))
    };
    wait_until(PATIENCE, expected, look).unwrap();
}

/// A stage after a life that has kept the values of the hook. The module has another edition since.
fn with_kept_values(name: &str) -> Stage {
    let stage = Stage::build(name);
    stage.add_module("040-zone");
    stage.write("modules/040-zone/templates/a.yaml", &zone_template(1));
    stage.write("global-hooks/zone.sh", ZONE);
    let operator = stage.start();
    wait_for_zone(&stage, "west:1");
    let keeps = || {
        let state =
            stage
                .namespace()
                .kubectl(["get", "secret", "addon-operator-state", "--output=jsonpath={.data}"])?;
        Ok::<_, KubectlError>(state.contains("hook-values.gz").then_some(()))
    };
    wait_until(PATIENCE, "kept values", keeps).expect("the state Secret keeps the values");
    operator.stop();
    stage.write("modules/040-zone/templates/a.yaml", &zone_template(2));
    stage
}

#[test]
fn modules_run_with_the_last_good_values_of_a_global_hook_that_hangs_at_a_start() {
    let mut stage = with_kept_values("stand-in-hangs");
    stage.write("silent", "");
    stage.set("ADDON_OPERATOR_PATIENCE", "1s");
    let operator = stage.start();
    wait_for_zone(&stage, "west:2");
    operator.wait_for_answer("/readyz", 200, &[]);
    operator.wait_for_why(
        "zone",
        &[
            "state: Ready",
            "global hook 'zone.sh' does not end, so its values are as of 2",
        ],
    );
    let events = operator.wait_for_event("OldValues");
    assert!(events.contains("global hook 'zone.sh' does not end"), "{events}");
    stage.assert_installed(&["good", "victim", "zone"]);

    // The same run goes on, and counts.
    fs::remove_file(stage.path("silent")).unwrap();
    operator.wait_for(&["The global hook has succeeded"]);
    let (_, details) = operator.get("/readyz?verbose");
    assert!(!details.contains("old values"), "{details}");
    operator.stop();
}

#[test]
fn modules_run_with_the_last_good_values_of_a_global_hook_that_fails_at_a_start() {
    let mut stage = with_kept_values("stand-in");
    stage.write("down", "");
    stage.set("ADDON_OPERATOR_PATIENCE", "3s");
    let operator = stage.start();
    wait_for_zone(&stage, "west:2");
    operator.wait_for_answer("/readyz", 200, &[]);
    operator.wait_for_answer(
        "/readyz?verbose",
        200,
        &["old values: global hook 'zone.sh' fails, so its values are as of 2"],
    );
    operator.wait_for_why(
        "zone",
        &["state: Ready", "global hook 'zone.sh' fails, so its values are as of 2"],
    );
    assert!(
        operator
            .ask("module values zone")
            .starts_with("# global hook 'zone.sh' fails, so its values are as of 2")
    );
    let events = operator.wait_for_event("OldValues");
    assert!(events.contains("the registry is down"), "{events}");
    // Switched on by the hook alone, it would be removed if its flag were not kept, too.
    stage.assert_installed(&["good", "victim", "zone"]);

    fs::remove_file(stage.path("down")).unwrap();
    operator.wait_for(&["The global hook has succeeded"]);
    let (_, details) = operator.get("/readyz?verbose");
    assert!(!details.contains("old values"), "{details}");
    assert!(!operator.ask("module values zone").contains('#'));
    operator.stop();
}

#[test]
fn in_strict_order_modules_wait_for_a_global_hook_that_fails_at_a_start() {
    let mut stage = Stage::build("strict-hook");
    stage.write("global-hooks/zone.sh", ZONE);
    let operator = stage.start();
    operator.wait_for_answer("/readyz", 200, &[]);
    operator.stop();
    stage.write("down", "");
    stage.set("ADDON_OPERATOR_PATIENCE", "1s");
    stage.set("ADDON_OPERATOR_STRICT_ORDER", "true");
    let operator = stage.start();
    operator.wait_for_more(&["Hook failed. Will retry"], 3);
    let (code, _) = operator.get("/readyz");
    assert_ne!(code, 200);
    operator.stop();
}

/// A webhook for deletions of the operator's Secrets, which nobody deletes here.
const WEBHOOK: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: '{{ .Release.Namespace }}'}\nwebhooks:\n- name: waits.example.com\n  clientConfig: {service: {namespace: '{{ .Release.Namespace }}', name: server}}\n  rules: [{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [secrets]}]\n  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: '{{ .Release.Namespace }}'}}\n  sideEffects: None\n  admissionReviewVersions: [v1]\n";
const ENDPOINT: &str = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: by-hand, labels: {kubernetes.io/service-name: server}}\naddressType: IPv4\nendpoints: [{addresses: [192.0.2.1], conditions: {ready: true}}]\nports: []\n";

#[test]
fn a_module_that_waits_for_the_server_of_its_webhook_goes_on_by_itself() {
    let stage = Stage::build("server");
    stage.write("modules/020-victim/templates/webhook.yaml", WEBHOOK);
    let operator = stage.start();
    let service = format!("Service '{}/server'", stage.namespace().name());
    operator.wait_for_why("victim", &["waits for ready endpoints", &service]);
    stage.wait_for_sizes("good:small victim:small");
    operator.wait_for_why("good", &["state: Ready"]);
    let admin = stage.namespace().kubectl_as(User::Admin);
    admin.feed(["create", "--filename=-"], ENDPOINT).unwrap();
    operator.wait_for_why("victim", &["state: Ready"]);
    operator.stop();
    // It would keep the namespace from being deleted.
    let configuration = format!("validatingwebhookconfiguration {}", stage.namespace().name());
    stage.kubectl(&format!("delete {configuration}"));
}
