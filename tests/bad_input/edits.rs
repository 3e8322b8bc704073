//! Edits of the ConfigMap that the webhook refuses, naming the wrong field, and edits that it must accept.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use serde_json::{Value, json};
use testbed::plane::User;
use testbed::process;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, PATIENCE, Stage, assert_says};

const SIZES: &str = "type: object\nproperties: {size: {type: string, pattern: '^[a-z]+$'}}\n";
const ZONES: &str = "type: object\nproperties: {zone: {type: string}}\n";
const REFUSED: &str = "admission webhook \"config-map.addon-operator.internal\" denied the request: ";
/// A hook that keeps a value of its own in its module's section.
const WRITING: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; exit; fi\n\
                       echo '[{\"op\": \"add\", \"path\": \"/late/seen\", \"value\": \"yes\"}]' > \"$CONFIG_VALUES_JSON_PATCH_PATH\"\n";

impl Stage {
    /// Gives the operators that are started later an address at which the API server reaches their webhooks.
    pub(crate) fn serve_webhooks(&mut self) {
        let address = self.namespace().service_to_us("webhooks").unwrap();
        self.set("VALIDATING_WEBHOOK_SERVICE_NAME", "webhooks");
        self.set("VALIDATING_WEBHOOK_LISTEN_ADDRESS", address.ip().to_string());
        self.set("VALIDATING_WEBHOOK_LISTEN_PORT", address.port().to_string());
    }

    /// Edits keys of the ConfigMap, and returns kubectl's output with the warnings.
    fn edit(&self, data: &Value) -> String {
        self.patch(&json!({ "data": data }), &[])
    }

    /// Patches the ConfigMap, and returns kubectl's output.
    pub(crate) fn patch(&self, patch: &Value, options: &[&str]) -> String {
        let patch = format!("--patch={patch}");
        let arguments = ["patch", "configmap", "addon-operator", "--type=merge", &patch];
        self.say(&[&arguments[..], options].concat())
    }

    fn say(&self, arguments: &[&str]) -> String {
        let mut command = self.namespace().kubectl_as(User::Admin).command();
        command.args(arguments);
        let output = process::run(command, None).unwrap();
        String::from_utf8([output.stderr, output.stdout].concat()).unwrap()
    }

    /// Waits until an invalid edit is refused.
    pub(crate) fn wait_for_refusal(&self) {
        let look = || {
            let patch = json!({"data": {"victimEnabled": "perhaps"}});
            let said = self.patch(&patch, &["--dry-run=server"]);
            if said.contains(REFUSED) {
                Ok(Some(()))
            } else {
                Err(said)
            }
        };
        wait_until(PATIENCE, "a refusal", look).unwrap();
    }

    fn configuration(&self) -> String {
        format!("addon-operator-config.{}", self.namespace().name())
    }
}

#[test]
fn a_bad_edit_is_refused_with_the_field_that_is_wrong() {
    let mut stage = Stage::build("edits");
    stage.write("modules/020-victim/openapi/config-values.yaml", SIZES);
    stage.write("global-hooks/openapi/config-values.yaml", ZONES);
    stage.configure(&json!({"good": "just a text", "victim": "size: large"}));
    stage.serve_webhooks();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_refusal();

    let refused = stage.edit(&json!({"victim": "size: 5", "global": "zone: [a]", "victimEnabled": "true"}));
    assert_says(
        &refused,
        &[
            REFUSED,
            "key 'victim' of module 'victim': ",
            "victim.size in body must be of type string: \"number\"",
            "key 'global': ",
            "global.zone in body must be of type string: \"array\"",
        ],
    );
    // An earlier mistake leads to a warning at every edit, until its own key is edited.
    let warned = stage.edit(&json!({"victim": "size: huge", "nobodyEnabled": "true"}));
    assert_says(
        &warned,
        &[
            "configmap/addon-operator patched",
            "Warning: still wrong: key 'good' of module 'good': ",
            "Warning: key 'nobodyEnabled': there is no module 'nobody', so it says nothing",
        ],
    );
    stage.wait_for_sizes("good:small victim:huge");
    assert_says(&stage.edit(&json!({"good": "another text"})), &[REFUSED, "key 'good'"]);
    assert!(!stage.edit(&json!({"good": "size: mended"})).contains("still wrong"));
    stage.wait_for_sizes("good:mended victim:huge");
    // Edits of other ConfigMaps are not checked. A deletion of the operator's own leads to a warning that explains its
    // effect.
    stage.kubectl("create configmap other --from-literal=victim=text");
    let deleted = stage.say(&["delete", "configmap", "addon-operator", "--dry-run=server"]);
    assert_says(&deleted, &["Warning: modules keep the flags and values", "deleted"]);

    // Without a running operator no edit is refused.
    operator.stop();
    assert_says(&stage.edit(&json!({"victim": "size: 5"})), &["patched"]);
    let operator = stage.start();
    operator.wait_for(&["last good value stays", "\"key\":\"victim\""]);
    stage.wait_for_refusal();
    operator.stop();
    assert_eq!(stage.sizes(), "good:mended victim:huge");
}

/// An executable of several hooks that checks settings: it allows sizes up to five letters, warns of `odd`, and has no answer
/// for `dumb`.
const CHECKING: &str = r#"#!/bin/sh
case "$1 $2" in
"hook list") echo 'Found 0 items:' ;;
"hook config") echo '{"version": "v1", "hooks": [], "has_settings_check": true}' ;;
"hook check")
  case "$(cat "$SETTINGS_PATH")" in
  *'"size":"odd"'*) echo '{"valid": true, "warnings": ["odd is unusual", "it may change"]}' >&2; exit 1 ;;
  *'"size":"dumb"'*) echo 'no idea' >&2; exit 3 ;;
  *'"size":"'?????'"'*'"spare":7'*) ;;
  *'"size":"'*) echo '{"valid": false, "message": "size should have five letters"}' >&2; exit 1 ;;
  esac ;;
esac
"#;

/// The same, but no settings fit.
const REFUSING: &str = r#"#!/bin/sh
case "$1 $2" in
"hook list") echo 'Found 0 items:' ;;
"hook config") echo '{"version": "v1", "hooks": [], "has_settings_check": true}' ;;
"hook check") echo '{"valid": false, "message": "settings never fit"}' >&2; exit 1 ;;
esac
"#;

#[test]
fn an_executable_of_the_module_has_a_say_about_its_settings() {
    let mut stage = Stage::build("settings");
    stage.write("modules/020-victim/hooks/settings", CHECKING);
    stage.write("modules/030-late/hooks/settings", REFUSING);
    stage.write(
        "modules/020-victim/openapi/config-values.yaml",
        "type: object\nproperties: {size: {type: string}, spare: {type: integer, default: 7}}\n",
    );
    stage.configure(&json!({}));
    stage.serve_webhooks();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_refusal();

    assert_says(
        &stage.edit(&json!({"victim": "size: enormous"})),
        &[
            REFUSED,
            "key 'victim' of module 'victim': size should have five letters",
        ],
    );
    assert_says(&stage.edit(&json!({"victim": "size: large"})), &["patched"]);
    stage.wait_for_sizes("good:small victim:large");
    // An edit of another section does not ask.
    assert!(!stage.edit(&json!({"good": "size: tiny"})).contains("victim"));
    assert_says(
        &stage.edit(&json!({"victim": "size: odd"})),
        &[
            "Warning: key 'victim': odd is unusual",
            "Warning: key 'victim': it may change",
            "patched",
        ],
    );
    // An executable without an answer refuses nothing.
    assert_says(
        &stage.edit(&json!({"victim": "size: dumb"})),
        &["Warning: the settings check of module 'victim'", "no idea", "patched"],
    );
    stage.wait_for_sizes("good:tiny victim:dumb");
    // A plan asks it, too, but no executable of a module that the edit does not touch.
    stage.write("wrong.yaml", "victim: |\n  size: enormous\ngood: |\n  size: any\n");
    stage.write("odd.yaml", "victim: |\n  size: odd\n");
    let plan = |file: &str| operator.ask_for_code(2, &format!("plan -f {}", stage.path(file).display()));
    let wrong = plan("wrong.yaml");
    let refused =
        "victim: the check of its settings, which the webhook asks, refuses it: size should have five letters";
    assert_says(&wrong, &["not applied", refused]);
    assert!(!wrong.contains("never fit"), "{wrong}");
    assert_says(
        &plan("odd.yaml"),
        &["warning: key 'victim': odd is unusual", "victim runs"],
    );
    operator.stop();

    let modules = stage.path("modules").display().to_string();
    let check = |file: &str| {
        let file = stage.path(file).display().to_string();
        let output = stage.said(&["config", "check", "--modules-dir", &modules, &file]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = check("wrong.yaml");
    assert_eq!(code, Some(1), "{said}");
    assert_says(
        &said,
        &[
            "wrong.yaml:1: ",
            "key 'victim' of module 'victim': size should have five letters",
        ],
    );
    let (code, said) = check("odd.yaml");
    assert_eq!(code, Some(0), "{said}");
    assert_says(&said, &["odd.yaml:1: ", "odd is unusual"]);
}

#[test]
fn the_registration_is_kept_and_our_own_writes_pass() {
    let mut stage = Stage::build("kept");
    stage.add_module("030-late");
    stage.write("modules/030-late/hooks/hook.sh", WRITING);
    stage.write(
        "modules/030-late/openapi/config-values.yaml",
        "properties: {seen: {type: string}, wish: {type: string}}",
    );
    stage.configure(&json!({}));
    stage.serve_webhooks();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_refusal();

    let configuration = stage.configuration();
    let shown = "-o=jsonpath={.webhooks[*].name}";
    let get = format!("get validatingwebhookconfiguration {configuration} {shown}");
    stage.kubectl(&format!("delete validatingwebhookconfiguration {configuration}"));
    stage.wait_for_refusal();
    stage.kubectl(&format!(
        "patch validatingwebhookconfiguration {configuration} --type=merge --patch={{\"webhooks\":[]}}"
    ));
    stage.wait_for_refusal();
    assert_eq!(stage.kubectl(&get), "config-map.addon-operator.internal");

    assert_says(&stage.edit(&json!({"late": "wish: large"})), &["patched"]);
    let look = || {
        let section = stage.kubectl("get configmap addon-operator -o=jsonpath={.data.late}");
        let both = section.contains("seen: \"yes\"") || section.contains("seen: yes");
        if both && section.contains("wish: large") {
            Ok(Some(()))
        } else {
            Err(section)
        }
    };
    wait_until(PATIENCE, "the word of the hook in its section", look).unwrap();
    assert!(operator.records(&["denied the request"]).is_empty());
    operator.stop();

    // Without these settings the operator registers no webhook.
    for name in ["SERVICE_NAME", "LISTEN_ADDRESS", "LISTEN_PORT"] {
        stage.unset(&format!("VALIDATING_WEBHOOK_{name}"));
    }
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let gone = || {
        let said = stage.say(&["get", "validatingwebhookconfiguration", &configuration]);
        if said.contains("not found") {
            Ok(Some(()))
        } else {
            Err(said)
        }
    };
    wait_until(PATIENCE, "the end of the registration", gone).unwrap();
    assert_says(&stage.edit(&json!({"victimEnabled": "perhaps"})), &["patched"]);
    operator.stop();
}

#[test]
fn an_edit_that_leaves_out_many_flags_is_refused_until_it_counts_them() {
    let mut stage = Stage::build("omissions");
    stage.write("modules/values.yaml", "goodEnabled: true\n");
    stage.add_module("030-first");
    stage.add_module("040-second");
    let all = |flag: &Value| json!({"victimEnabled": flag, "firstEnabled": flag, "secondEnabled": flag});
    stage.configure(&all(&json!("true")));
    stage.serve_webhooks();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.wait_for_refusal();
    let before = stage.objects();
    let confirmed = |data: &Value, confirmation: &str| {
        let annotations = json!({"addon-operator/confirm-removals": confirmation});
        stage.patch(&json!({"metadata": {"annotations": annotations}, "data": data}), &[])
    };
    let none = all(&Value::Null);
    let refused = stage.edit(&none);
    let names = "their releases would be removed: 'first', 'second', 'victim'.";
    let remedy = "'addon-operator/confirm-removals: \"3\"'";
    assert_says(&refused, &[REFUSED, names, "'firstEnabled: \"false\"'", remedy]);
    assert_says(&confirmed(&none, "2"), &[REFUSED, remedy]);
    assert_eq!(stage.objects(), before);

    let done = "configmap/addon-operator patched";
    let warning = "Warning: nothing switches on module 'second' any more";
    assert_says(&confirmed(&none, "3"), &[done, warning]);
    stage.wait_for_sizes("good:small");
    // The annotation confirmed one edit. It is still there and must not confirm another.
    assert_says(&stage.edit(&all(&json!("true"))), &[done]);
    stage.wait_for_sizes("first:small good:small second:small victim:small");
    operator.wait_for_answer("/readyz", 200, &[]);
    let refused = stage.edit(&none);
    assert_says(
        &refused,
        &[REFUSED, names, "'addon-operator/confirm-removals: \"3, again\"'"],
    );
    // An explicit `false` needs no confirmation.
    assert_says(&stage.edit(&all(&json!("false"))), &[done]);
    stage.wait_for_sizes("good:small");
    operator.stop();
}
