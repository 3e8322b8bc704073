//! Plans of modules whose account may not do what their charts ask for.

use serde_json::json;
use testbed::wait::wait_until;

use crate::bad_input::stage::{CONVERGED, PATIENCE, Stage, assert_says};

const OBJECTS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: allowed}\n---\n\
                       apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n";

#[test]
fn a_plan_names_the_rights_that_an_account_lacks() {
    let stage = Stage::build("unallowed");
    stage.add_module("030-small");
    stage.write("modules/030-small/module.yaml", "serviceAccount: small\n");
    stage.write("modules/030-small/templates/a.yaml", OBJECTS);
    stage.kubectl("create serviceaccount small");
    stage.kubectl("create role small --verb=* --resource=configmaps,secrets");
    let namespace = stage.namespace().name();
    stage.kubectl(&format!(
        "create rolebinding small --role=small --serviceaccount={namespace}:small"
    ));
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.write("edit.yaml", "{smallEnabled: 'true'}");
    let plan = format!("plan -f {}", stage.path("edit.yaml").display());
    let said = operator.ask_for_code(2, &plan);
    let expected = [
        "+ ConfigMap allowed",
        "! Service web (refused by the API server: ",
        "services",
        "hint: allow the verb 'get' on 'services'",
        "to the service account 'small'",
        "objects: 1 created, 0 changed, 0 deleted, 1 refused",
    ];
    assert_says(&said, &expected);
    // The right is all that is missing.
    stage.kubectl("create role web --verb=* --resource=services");
    stage.kubectl(&format!(
        "create rolebinding web --role=web --serviceaccount={namespace}:small"
    ));
    let allowed = || {
        let said = operator.ask_for_code(2, &plan);
        let is_allowed = said.contains("+ Service web") && said.contains("objects: 2 created, 0 changed, 0 deleted\n");
        is_allowed.then_some(Some(())).ok_or(said)
    };
    wait_until(PATIENCE, "a plan with the right", allowed).unwrap();
    operator.stop();
}
