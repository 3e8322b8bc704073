//! Plans of changes that bring CRDs, namespaces and helm hooks.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use serde_json::json;

use testbed::wait::wait_until;

use crate::bad_input::absence::world::copy;
use crate::bad_input::stage::{CONVERGED, PATIENCE, Stage, assert_says};

pub(super) const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP}
spec:
  group: GROUP
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: string}}}}}
";

pub(super) const GADGET: &str = "apiVersion: GROUP/v1\nkind: Gadget\nmetadata: {name: first}\nsize: small\n";

/// A hook of a module that has nothing else.
const OF_NEEDY: &str = "#!/bin/sh\nif [ \"$1\" = --config ]; then echo 'configVersion: v1\nbeforeHelm: 1'; fi\n";

/// A namespace, an object in it, and helm hooks.
const HOME: &str = r"apiVersion: v1
kind: Namespace
metadata: {name: GROUP}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: at-home, namespace: GROUP}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: before, annotations: {helm.sh/hook: 'pre-install, pre-upgrade', helm.sh/hook-delete-policy: hook-succeeded}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: farewell, annotations: {helm.sh/hook: pre-delete, helm.sh/hook-delete-policy: hook-succeeded}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nowhere, namespace: GROUP-nowhere}
";

/// Waits until kubectl says this.
fn wait_for(stage: &Stage, arguments: &str, expected: &str) {
    let look = || {
        let said = stage.kubectl(arguments);
        if said.trim() == expected {
            Ok(Some(()))
        } else {
            Err(said)
        }
    };
    wait_until(PATIENCE, expected, look).unwrap();
}

#[test]
fn a_plan_knows_the_kinds_and_namespaces_that_it_brings_and_names_helm_hooks() {
    let stage = Stage::build("brought");
    let group = format!("{}.example", stage.namespace().name());
    let of_group = |text: &str| text.replace("GROUP", &group);
    let home = format!("{}-home", stage.namespace().name());
    stage.add_module("030-kinds");
    stage.write("modules/030-kinds/crds/gadget.yaml", &of_group(CRD));
    stage.write("modules/030-kinds/templates/a.yaml", &of_group(GADGET));
    stage.add_module("040-home");
    stage.write("modules/040-home/templates/a.yaml", &HOME.replace("GROUP", &home));
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);

    stage.write("edit.yaml", "{kindsEnabled: 'true', homeEnabled: 'true'}");
    let plan = format!("plan -f {}", stage.path("edit.yaml").display());
    let said = operator.ask_for_code(2, &plan);
    let expected = [
        "kinds is switched on, and runs (ConfigMap)",
        &format!("crds     come first\n     + CustomResourceDefinition gadgets.{group}"),
        "+ Gadget first (a CRD of this plan brings its kind)",
        "home is switched on, and runs (ConfigMap)",
        &format!("+ Namespace {home}"),
        &format!("+ ConfigMap {home}/at-home (in a namespace of this plan)"),
        &format!("! ConfigMap {home}-nowhere/nowhere (its namespace does not exist when its turn comes)"),
        "> ConfigMap before (helm hook: pre-install)\n",
        "objects: 4 created, 0 changed, 0 deleted, 1 refused",
    ];
    assert_says(&said, &expected);

    // It comes true.
    let template = HOME.replace("GROUP", &home);
    let (template, _) = template.rsplit_once("---").unwrap();
    stage.write("modules/040-home/templates/a.yaml", template);
    stage.configure(&json!({"kindsEnabled": "true", "homeEnabled": "true", "needyEnabled": "true"}));
    wait_for(
        &stage,
        &format!("get configmap at-home --namespace={home} --ignore-not-found --output=name"),
        "configmap/at-home",
    );
    wait_for(
        &stage,
        &format!("get gadgets.{group} first --ignore-not-found --output=jsonpath={{.size}}"),
        "small",
    );

    // Of a CRD that is there the changes are told, and a refusal of it.
    copy(&stage.path("modules"), &stage.path("next"));
    let more = of_group(CRD).replace("size: {type: string}", "size: {type: string}, colour: {type: string}");
    stage.write("next/030-kinds/crds/gadget.yaml", &more);
    let plan = format!("plan --modules-dir {}", stage.path("next").display());
    let said = operator.ask_for_code(2, &plan);
    let expected = [
        "kinds runs",
        &format!("~ CustomResourceDefinition gadgets.{group}"),
        "spec.versions[v1].schema.openAPIV3Schema.properties.colour: + {\"type\":\"string\"}",
        "no object changes",
        "modules: 1 run again; objects: 0 created, 1 changed, 0 deleted",
    ];
    assert_says(&said, &expected);
    stage.write(
        "next/030-kinds/crds/gadget.yaml",
        &of_group(CRD).replace("Namespaced", "Cluster"),
    );
    stage.write("next/050-needy/module.yaml", "dependsOn: [kinds]\n");
    stage.write("next/050-needy/hooks/hook.sh", OF_NEEDY);
    let said = operator.ask_for_code(2, &plan);
    let refused = format!("! CustomResourceDefinition gadgets.{group} (refused by the API server: ");
    let obstacle = "error    cannot ensure the CRDs of module 'kinds': crds/gadget.yaml";
    assert_says(&said, &[&refused, "spec.scope", "field is immutable", obstacle]);
    let (_, of_kinds) = said.split_once("kinds would run, and waits").unwrap();
    assert!(!of_kinds.contains("release  "), "{said}");
    assert_says(
        &said,
        &[
            "needy would run, and waits",
            "waits    it needs module 'kinds', which fails",
        ],
    );
    assert!(!said.contains("next try"), "{said}");
    fs_err::remove_dir_all(stage.path("next/050-needy")).unwrap();
    stage.write("next/030-kinds/crds/gadget.yaml", "kind: Nonsense");
    let said = operator.ask_for_code(2, &plan);
    assert_says(&said, &["cannot ensure the CRDs of module 'kinds': crds/gadget.yaml"]);

    stage.write("edit.yaml", "{kindsEnabled: 'true', homeEnabled: 'false'}");
    let said = operator.ask_for_code(2, &format!("plan -f {}", stage.path("edit.yaml").display()));
    let expected = [
        "home is removed (ConfigMap)",
        &format!("- Namespace {home}"),
        "> ConfigMap farewell (helm hook: pre-delete)",
    ];
    assert_says(&said, &expected);
    stage.configure(&json!({"kindsEnabled": "false", "homeEnabled": "false"}));
    wait_for(&stage, "get secrets --output=name --selector=owner=helm,name=home", "");
    operator.stop();
    stage.kubectl(&format!("delete crd gadgets.{group}"));
}
