//! With the rights that `rbac generate` finds, a version of a CRD in which objects are stored can be removed.

use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Stage};

const CATS: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: cats.@NAMESPACE@.example.com}\n\
    spec:\n  group: @NAMESPACE@.example.com\n  scope: Namespaced\n  names: {kind: Cat, plural: cats, singular: cat}\n  versions:\n";

/// A version of a CRD that keeps all unknown fields.
fn version(name: &str, is_stored: bool) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"name": name, "served": true, "storage": is_stored, "schema": schema})
}

#[test]
fn a_version_of_a_crd_goes_with_the_rights_that_are_found() {
    let stage = Stage::build("rights-version", Part::Helm3);
    stage.write("modules/values.yaml", "catsEnabled: true\n");
    let chart = "apiVersion: v2\nname: cats\nversion: 0.1.0\n";
    stage.write("modules/010-cats/Chart.yaml", chart);
    fs_err::create_dir(stage.path("global-hooks")).unwrap();
    let file = "modules/010-cats/crds/cats.yaml";
    stage.write(file, &format!("{CATS}  - {}\n", version("v1", true)));
    let rights = stage.rights();
    stage.chart("install", &[&format!("--values={}", rights.display())]);
    let pods = stage.pods();
    let operator = stage.start(&pods[0]);
    operator.wait_until_ready();
    operator.stop();

    let group = format!("{}.example.com", stage.namespace.name());
    let cat = json!({"apiVersion": format!("{group}/v1"), "kind": "Cat", "metadata": {"name": "tom"}});
    let admin = stage.namespace.kubectl_as(User::Admin);
    admin.feed(["create", "-f", "-"], &cat.to_string()).unwrap();
    let crd = format!("crd cats.{group}");
    let both = [version("v1", false), version("v2", true)];
    stage.patch(&crd, &json!({"spec": {"versions": both}}));
    let wait_for = |versions: &str| {
        let look = || {
            let stored = stage.kubectl(&format!("get {crd} --output=jsonpath={{.status.storedVersions}}"));
            if stored == versions { Ok(Some(())) } else { Err(stored) }
        };
        wait_until(PATIENCE, "the versions in which objects are stored", look).unwrap();
    };
    wait_for(r#"["v1","v2"]"#);

    stage.write(file, &format!("{CATS}  - {}\n", version("v2", true)));
    let beginning = stage.namespace.plane().audit().mark().unwrap();
    let operator = stage.start(&pods[1]);
    operator.wait_until_ready();
    wait_for(r#"["v2"]"#);
    operator.stop();
    let refused = stage.requests(beginning).that(|record| record.code == 403);
    assert!(refused.is_empty(), "{refused}");
}
