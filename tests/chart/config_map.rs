//! The ConfigMap is made once. After that no helm command touches what people wrote.
#![expect(clippy::unwrap_used, reason = "a test may")]

use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;

use super::tool::{HELMS, chart, helm, image_said, printed};

fn called(part: Part, namespace: &Namespace<'_>, arguments: &[&str]) -> String {
    let inside = format!("--namespace={}", namespace.name());
    let arguments = arguments.iter().copied().chain([inside.as_str()]);
    printed(helm(part, Some(&namespace.kubeconfig(User::Admin)), arguments))
}

fn data(namespace: &Namespace<'_>) -> Value {
    let found = namespace.kubectl(["get", "configmap", "addon-operator", "--output=json"]);
    serde_json::from_str::<Value>(&found.unwrap()).unwrap()["data"].take()
}

#[test]
fn what_people_write_stays() {
    for part in HELMS {
        let namespace = testbed::shared::plane().namespace("kept").unwrap();
        let chart = chart();
        let (chart, image) = (chart.to_str().unwrap(), image_said());
        let notes = called(part, &namespace, &["install", "ao", chart, &image]);
        assert!(notes.contains("edit configmap addon-operator"), "{notes}");
        let first = data(&namespace);
        let global = first["global"].as_str().unwrap();
        assert!(global.ends_with("\n{}\n"), "a section that says nothing: {global}");

        let edit = json!({"data": {"global": "project: blue", "fooEnabled": "true"}});
        let edit = format!("--patch={edit}");
        namespace
            .kubectl(["patch", "configmap", "addon-operator", "--type=merge", &edit])
            .unwrap();
        let written = data(&namespace);
        for command in [
            &["upgrade", "ao", chart, &image, "--set=replicas=1"][..],
            &["upgrade", "ao", chart, &image, "--set=configMap.create=false"],
            &["upgrade", "ao", chart, &image, "--set=configMap.sections.global=red"],
            &["rollback", "ao", "1"],
            &["uninstall", "ao", "--wait"],
            &["install", "another", chart, &image],
            &["upgrade", "another", chart, &image, "--set=replicas=0"],
            &["uninstall", "another"],
        ] {
            called(part, &namespace, command);
            assert_eq!(data(&namespace), written, "{part}: {command:?}");
        }
    }
}
