//! A module that acts as a service account of its own, installed by a person who has not allowed the operator to act as
//! that account.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use helm_yaml::yaml;
use serde_json::Value;
use testbed::part::Part;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Stage};

const TOKENS: &str = "serviceaccounts/token";

fn build() -> Stage {
    let stage = Stage::build("tokens", Part::Helm3);
    stage.write("modules/values.yaml", "guestEnabled: true\nplainEnabled: true\n");
    for module in ["010-guest", "020-plain"] {
        let name = &module[4..];
        let chart = format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n");
        stage.write(&format!("modules/{module}/Chart.yaml"), &chart);
        let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        stage.write(&format!("modules/{module}/templates/object.yaml"), &object);
    }
    stage.write("modules/010-guest/module.yaml", "serviceAccount: guest\n");
    stage.write("global-hooks/README.md", "None.");
    // The account itself has all rights that it needs.
    stage.kubectl("create serviceaccount guest");
    let verbs = "--verb=get,list,create,update,patch,delete";
    stage.kubectl(&format!("create role guest {verbs} --resource=configmaps,secrets"));
    let account = format!("--serviceaccount={}:guest", stage.namespace.name());
    stage.kubectl(&format!("create rolebinding guest --role=guest {account}"));
    stage
}

/// The values that `rbac generate` prints, without the right to request tokens.
fn without_tokens(stage: &Stage) -> String {
    let text = fs_err::read_to_string(stage.rights()).unwrap();
    let mut values = yaml::documents_v2(&text).unwrap().remove(0);
    let rules = values.pointer_mut("/rbac/moduleRules/release").unwrap();
    let rules = rules.as_array_mut().unwrap();
    let all = rules.len();
    rules.retain(|rule| rule["resources"] != Value::from(vec![TOKENS]));
    assert_eq!(rules.len() + 1, all, "one rule is about them");
    stage.write("less.yaml", &values.to_string());
    format!("--values={}", stage.path("less.yaml").display())
}

#[test]
fn a_token_that_is_refused_fails_its_module_alone_until_the_right_is_there() {
    let stage = build();
    stage.chart("install", &[&without_tokens(&stage)]);
    let operator = stage.start(&stage.pods()[0]);
    // The other module has its turn later, and does not wait for this one.
    operator.wait_until_ready();
    stage.kubectl("get configmap plain");

    let (said, namespace) = (operator.ask("why guest"), stage.namespace.name());
    let token = format!("create {TOKENS} 'guest' in namespace '{namespace}'");
    let reason = format!("cannot act as service account 'guest': cannot {token}");
    assert!(said.contains(&reason), "{said}");
    let hint =
        format!("allow the verb 'create' on '{TOKENS}' in namespace '{namespace}' to the operator's service account");
    assert!(operator.said().contains(&hint), "{}", operator.said());
    let object = || stage.namespace.kubectl(["get", "configmap", "guest"]);
    assert!(object().is_err(), "nobody else's rights are used instead");

    stage.kubectl(&format!(
        "create role tokens --verb=create --resource={TOKENS} --resource-name=guest"
    ));
    let operators = format!("--serviceaccount={}:ao-addon-operator", stage.namespace.name());
    stage.kubectl(&format!("create rolebinding tokens --role=tokens {operators}"));
    wait_until(PATIENCE, "the module's object", || object().map(Some)).unwrap();
    let ready = || {
        let said = operator.ask("module list -o wide");
        let mut lines = said.lines();
        let ready = lines.any(|line| line.starts_with("guest ") && line.contains(" Ready "));
        if ready { Ok(Some(())) } else { Err(said) }
    };
    wait_until(PATIENCE, "the module to be ready", ready).unwrap();
    operator.stop();
}
