//! Hooks, charts and configurations that contain secrets: no output of the operator shows one, except to a person who
//! asks for it.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::net::{Ipv4Addr, TcpListener};

use serde_json::json;

use super::stage::{Operator, Stage, assert_says, get_from};

/// The beginning of every secret of this test, in plain text and in the base64 of a Secret.
const MARK: &str = "opensesame";
const PACKED: &str = "b3BlbnNlc2Ft";

const SCHEMA: &str = "
type: object
additionalProperties: true
properties:
  code: {type: string, x-secret: true}
  login: {type: string, format: password}
  tokenOfThanks: {type: string, x-secret: false}
";

/// A hook that writes, measures and watches secrets.
const BUSY: &str = r#"#!/bin/sh
if [ "$1" = --config ]; then
  cat <<END
configVersion: v1
beforeHelm: 1
kubernetes:
- name: whole
  kind: Secret
  nameSelector: {matchNames: [watched]}
  namespace: {nameSelector: {matchNames: [NAMESPACE]}}
- name: filtered
  kind: secret
  jqFilter: '{held: .data}'
  keepFullObjectsInMemory: false
  nameSelector: {matchNames: [watched]}
  namespace: {nameSelector: {matchNames: [NAMESPACE]}}
END
  exit
fi
echo '[{"op": "add", "path": "/victim/made", "value": {"token": "opensesame-patched"}}]' > $VALUES_JSON_PATCH_PATH
echo '[{"op": "add", "path": "/victim/apiKey", "value": "opensesame-saved"}]' > $CONFIG_VALUES_JSON_PATCH_PATH
echo '{"name": "doors", "set": 1, "labels": {"by": "opensesame-named"}}' > $METRICS_PATH
echo 'this is opensesame-named'
"#;

/// A hook that always fails and prints secrets.
const TALKING: &str = "#!/bin/sh
if [ \"$1\" = --config ]; then echo 'configVersion: v1\nafterHelm: 1'; exit; fi
echo 'cannot log in with opensesame-schema and opensesame-patched' >&2
exit 1
";

const CHART: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: quoting}
data: {url: 'postgres://ada:{{ .Values.victim.password }}@db'}
---
apiVersion: v1
kind: Secret
metadata: {name: made}
stringData: {login: '{{ .Values.victim.login }}', other: opensesame-chart}
";

fn stage() -> Stage {
    let mut stage = Stage::build("secrets");
    stage.write("modules/020-victim/openapi/values.yaml", SCHEMA);
    stage.write(
        "modules/020-victim/values.yaml",
        "victim: {size: small, password: opensesame-named, code: opensesame-schema, login: opensesame-format,\n  \
         tokenOfThanks: many}\n",
    );
    let busy = BUSY.replace("NAMESPACE", stage.namespace().name());
    stage.write("modules/020-victim/hooks/busy.sh", &busy);
    stage.write("modules/020-victim/hooks/talking.sh", TALKING);
    stage.write("modules/020-victim/templates/b.yaml", CHART);
    stage.add_module("030-late");
    stage.write("modules/030-late/values.yaml", "late: {password: opensesame-fail}\n");
    stage.write(
        "modules/030-late/templates/b.yaml",
        "{{ fail (printf \"wrong: %s\" .Values.late.password) }}\n",
    );
    stage.write(
        "modules/010-good/openapi/config-values.yaml",
        "type: object\nproperties: {pin: {type: string, format: ipv4, writeOnly: true}}\n",
    );
    stage.kubectl("create secret generic watched --from-literal=key=opensesame-watched");
    stage.configure(&json!({"good": "pin: opensesame-refused\n", "global": "password: opensesame-global\n"}));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    stage.set("DEBUG_HTTP_SERVER_ADDR", listener.local_addr().unwrap().to_string());
    stage.set("LOG_LEVEL", "debug");
    stage
}

/// Every command that shows known values, objects or failures.
const COMMANDS: [&str; 30] = [
    "module list -o wide",
    "module get victim",
    "module get victim -o json",
    "module get late",
    "why victim",
    "why late -o yaml",
    "why good",
    "module values victim",
    "module values victim --global -o json",
    "module config victim",
    "module patches victim",
    "module snapshots victim",
    "module snapshots victim -o json",
    "module render victim",
    "module render victim --debug",
    "module render victim --diff",
    "module resource-monitor",
    "global values",
    "global config -o json",
    "global patches",
    "global snapshots",
    "queue list",
    "queue list -o json",
    "queue main",
    "hook list",
    "global list",
    "config list",
    "raw /module/victim/values.yaml",
    "raw /module/status.json?releases=true",
    "raw /graph?format=text",
];

#[track_caller]
fn assert_silent(what: &str, said: &str) {
    let quotes: Vec<&str> = said
        .lines()
        .filter(|line| line.contains(MARK) || line.contains(PACKED))
        .collect();
    assert!(quotes.is_empty(), "{what} shows a secret: {quotes:#?}");
}

fn wait_for_all(operator: &Operator<'_>) {
    operator.wait_for(&["Hook failed", "talking.sh"]);
    operator.wait_for(&["ModuleRun failed", "\"module\":\"late\""]);
    operator.wait_for(&["some modules still fail"]);
}

#[test]
fn nobody_sees_a_secret_who_does_not_ask_for_it() {
    let stage = stage();
    let operator = stage.start();
    wait_for_all(&operator);
    for command in COMMANDS {
        assert_silent(command, &operator.ask(command));
    }
    for path in [
        "/metrics",
        "/metrics/hooks",
        "/readyz?verbose",
        "/status/converge?output=json",
    ] {
        assert_silent(path, &operator.get(path).1);
    }
    let events = operator.wait_for_event("ModuleFailed");
    assert_silent("an Event", &events);
    assert_silent("the log", &operator.said());

    // All of these reports exist, and none contains a secret.
    assert_says(
        &operator.ask("why victim"),
        &["cannot log in with <masked> and <masked>"],
    );
    assert_says(&operator.ask("why late"), &["wrong: <masked>"]);
    assert_says(&operator.get("/metrics/hooks").1, &["by=\"<masked>\""]);
    assert_says(&operator.get("/readyz?verbose").1, &["good.pin", "<masked>"]);
    assert_says(&events, &["<masked>"]);
    operator.wait_for(&["this is <masked>"]);
    let values = operator.ask("module values victim");
    assert_says(
        &values,
        &[
            "size: small",
            "tokenOfThanks: many",
            "token: <masked>",
            "apiKey: <masked>",
        ],
    );

    // A person who asks for secrets gets them.
    let rows: [(&str, &[&str]); 7] = [
        (
            "module values victim",
            &[
                "opensesame-named",
                "opensesame-schema",
                "opensesame-format",
                "opensesame-patched",
            ],
        ),
        ("module config victim", &["opensesame-saved"]),
        ("module patches victim", &["opensesame-patched"]),
        (
            "module snapshots victim -o json",
            &["\"held\":{\"key\":\"b3Blb", "\"data\":{\"key\":\"b3Blb"],
        ),
        ("module render victim", &["opensesame-chart", "ada:opensesame-named@db"]),
        ("global values", &["opensesame-global"]),
        ("why victim", &["cannot log in with opensesame-schema"]),
    ];
    for (command, words) in rows {
        assert_says(&operator.ask(&format!("{command} --show-secrets")), words);
    }
    // The texts for other programs were never masked.
    let shown = stage.kubectl("get configmap quoting addon-operator -o json");
    assert_says(&shown, &["ada:opensesame-named@db", "opensesame-saved"]);
    operator.stop();
}

#[test]
fn what_anybody_can_reach_shows_none_unless_the_operator_was_told_to() {
    let mut stage = stage();
    let address = stage.variable("DEBUG_HTTP_SERVER_ADDR");
    let operator = stage.start();
    wait_for_all(&operator);
    let get = |path: &str| get_from(&address, path).unwrap();
    let values = get("/module/victim/values.json");
    assert_eq!(values.0, 200, "{values:?}");
    assert_silent("the address", &values.1);
    assert_eq!(get("/module/victim/values.json?showSecrets=true").0, 403);
    operator.stop();

    stage.set("ADDON_OPERATOR_SHOW_SECRETS", "true");
    let operator = stage.start();
    wait_for_all(&operator);
    assert_says(&operator.ask("module values victim"), &["opensesame-schema"]);
    assert_says(
        &get_from(&address, "/module/victim/values.json").unwrap().1,
        &["opensesame-schema"],
    );
    // The log has more readers than the debug commands, so it never shows a secret.
    assert_silent("the log", &operator.said());
    operator.stop();
}
