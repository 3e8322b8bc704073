//! The webhook configurations that the chart creates and the operator fills.

use serde_json::{Value, json};

use super::stage::Stage;
use super::tool::HELMS;

/// The kind of each webhook configuration, and the beginning of its name.
const ALL: [(&str, &str); 3] = [
    ("validatingwebhookconfiguration", "addon-operator-hooks"),
    ("mutatingwebhookconfiguration", "addon-operator-hooks"),
    ("validatingwebhookconfiguration", "addon-operator-config"),
];

/// A webhook that matches no existing object.
fn webhooks(stage: &Stage) -> Value {
    json!([{
        "name": "one.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": stage.namespace.name(), "name": "nobody"}},
        "failurePolicy": "Ignore",
        "namespaceSelector": {"matchLabels": {"never": "there"}},
        "rules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}],
        "sideEffects": "None",
    }])
}

fn names(stage: &Stage) -> Vec<String> {
    let own = |(kind, name): (&str, &str)| format!("{kind} {name}.{}", stage.namespace.name());
    ALL.map(own).into()
}

/// The generation and the contents of each configuration. The generation changes with the contents.
fn stand(stage: &Stage) -> Vec<String> {
    let show = "--output=jsonpath={.metadata.generation}{.webhooks[*].name}";
    let get = |name: String| stage.kubectl(&format!("get {name} {show}"));
    names(stage).into_iter().map(get).collect()
}

#[test]
fn what_the_operator_has_written_into_them_outlives_upgrades_of_the_chart_and_goes_with_it() {
    for helm in HELMS {
        let stage = Stage::build("filled", helm);
        stage.chart("install", &[]);
        assert_eq!(stand(&stage), ["1", "1", "1"], "{helm}: made, and empty");
        for name in names(&stage) {
            stage.patch(&name, &json!({"webhooks": webhooks(&stage)}));
        }
        let filled = ["2one.example.com"; 3];
        assert_eq!(stand(&stage), filled, "{helm}");
        stage.chart("upgrade", &["--set=log.level=debug,podLabels.a=b"]);
        assert_eq!(stand(&stage), filled, "{helm}: upgraded");
        stage.chart("upgrade", &["--reset-values"]);
        assert_eq!(stand(&stage), filled, "{helm}: upgraded again");
        stage.chart("uninstall", &[]);
        for name in names(&stage) {
            let words = ["get"].into_iter().chain(name.split(' '));
            let gone = stage.namespace.kubectl(words).unwrap_err().to_string();
            assert!(gone.contains("NotFound"), "{helm}: {gone}");
        }
    }
}

/// In older charts the operator created the webhook configurations itself.
#[test]
fn one_that_an_operator_has_made_is_in_nobodys_way() {
    for helm in HELMS {
        let stage = Stage::build("made", helm);
        let (kind, name) = ("ValidatingWebhookConfiguration", names(&stage)[0].clone());
        let own = name.split(' ').nth(1).unwrap();
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": own, "labels": {"app.kubernetes.io/managed-by": "addon-operator"}},
            "webhooks": webhooks(&stage),
        });
        stage.write("made.json", &object.to_string());
        stage.kubectl(&format!("create --filename={}", stage.path("made.json").display()));
        stage.chart("install", &[]);
        stage.chart("upgrade", &["--set=log.level=debug"]);
        assert_eq!(stand(&stage), ["1one.example.com", "1", "1"], "{helm}");
        stage.chart("uninstall", &[]);
        stage.kubectl(&format!("delete {name}"));
    }
}
