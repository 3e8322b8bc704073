//! The chart creates the ConfigMap once, at the installation. Later no helm command changes what people wrote, or
//! creates it again.
#![expect(clippy::unwrap_used, reason = "a test may")]

use addon_core::operator::provenance::Provenance;
use k8s_openapi::api::core::v1::ConfigMap;
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
        assert!(is_as_made(&namespace), "the ConfigMap counts as unedited");
        let global = first["global"].as_str().unwrap();
        assert!(global.ends_with("\n{}\n"), "a section that says nothing: {global}");

        let edit = json!({"data": {"global": "project: blue", "fooEnabled": "true"}});
        let edit = format!("--patch={edit}");
        namespace
            .kubectl(["patch", "configmap", "addon-operator", "--type=merge", &edit])
            .unwrap();
        let written = data(&namespace);
        assert!(!is_as_made(&namespace), "the ConfigMap has been edited");
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

/// Whether the operator would take the ConfigMap for unedited since its creation.
fn is_as_made(namespace: &Namespace<'_>) -> bool {
    let found = namespace.kubectl(["get", "configmap", "addon-operator", "--output=json"]);
    let found: ConfigMap = serde_json::from_str(&found.unwrap()).unwrap();
    let provenance = Provenance::read(None, found.metadata.annotations.as_ref());
    provenance.is_as_made(&found.data.unwrap_or_default())
}

#[test]
fn one_that_was_deleted_is_for_people_to_make() {
    for part in HELMS {
        let namespace = testbed::shared::plane().namespace("unmade").unwrap();
        let chart = chart();
        let (chart, image) = (chart.to_str().unwrap(), image_said());
        // The checksum of sections with difficult characters must be that of the values as they are read back.
        let awkward = r#"--set-json=configMap.sections={"one":"a: 'ä<b>&\\n'\n\n","twoEnabled":"true","global":""}"#;
        called(part, &namespace, &["install", "ao", chart, &image, awkward]);
        assert!(is_as_made(&namespace), "{part}: {}", data(&namespace));
        let there = || {
            namespace
                .kubectl(["get", "configmap", "addon-operator", "--ignore-not-found"])
                .unwrap()
        };
        namespace.kubectl(["delete", "configmap", "addon-operator"]).unwrap();
        for command in [
            &["upgrade", "ao", chart, &image][..],
            &["upgrade", "ao", chart, &image, "--set=configMap.name=mistyped"],
            &["rollback", "ao", "1"],
        ] {
            called(part, &namespace, command);
            assert_eq!(there(), "", "{part}: {command:?}");
            let mistyped = namespace.kubectl(["get", "configmap", "mistyped", "--ignore-not-found"]);
            assert_eq!(mistyped.unwrap(), "", "{part}: {command:?}");
        }
    }
}
