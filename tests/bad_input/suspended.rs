//! Modules whose objects people maintain, by the commands for that.

use serde_json::json;
use testbed::plane::User;

use super::stage::{CONVERGED, Stage, assert_says};

#[test]
fn a_suspended_module_is_left_alone_until_it_is_resumed() {
    let stage = Stage::build("suspended");
    stage.configure(&json!({}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let kubeconfig = stage.namespace().kubeconfig(User::Operator);
    let place = format!(
        "--kube-config {} --namespace {}",
        kubeconfig.display(),
        stage.namespace().name()
    );
    let said = operator.ask(&format!("module suspend victim {place}"));
    assert_says(&said, &["module 'victim' is suspended"]);
    let key = "get configmap addon-operator -o=jsonpath={.data.victimMaintenance}";
    assert_eq!(stage.kubectl(key), "NoResourceReconciliation");
    // A second time nothing is to be done.
    let said = operator.ask(&format!("module suspend victim {place}"));
    assert_says(&said, &["module 'victim' is suspended"]);
    operator.wait_for_why("victim", &["maintenance"]);
    stage.kubectl("delete configmap victim");
    stage.configure(&json!({"good": "size: large", "victimMaintenance": "NoResourceReconciliation"}));
    stage.wait_for_sizes("good:large");
    let said = operator.ask(&format!("module resume victim {place}"));
    assert_says(&said, &["module 'victim' is maintained by the operator"]);
    assert_eq!(stage.kubectl(key), "");
    stage.wait_for_sizes("good:large victim:small");
    let said = operator.ask_in_vain(&format!("module suspend no_name {place}"));
    assert_says(&said, &["no_name"]);
    operator.stop();
}
