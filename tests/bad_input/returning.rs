//! Upgrades after which the objects of a module do not do their work, and that are taken back.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use serde_json::json;
use testbed::part::Part;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, PATIENCE, Stage, assert_says};

const RETURNS: &str = "health: {onFailure: return, rules: [{apiVersion: v1, kind: ConfigMap, \
                       failed: \"data.size == 'broken'\"}]}";
/// A claim that its value enlarges.
const CLAIM: &str = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\n\
                     spec: {storageClassName: none, accessModes: [ReadWriteOnce], \
                     resources: {requests: {storage: 1Mi}}}\n";

fn stage(prefix: &str) -> Stage {
    let stage = Stage::build(prefix);
    stage.add_module("015-web");
    stage.write("modules/015-web/module.yaml", RETURNS);
    stage.write(
        "modules/values.yaml",
        "goodEnabled: true\nvictimEnabled: true\nwebEnabled: true\npageEnabled: true\n",
    );
    stage
}

fn revisions(stage: &Stage) -> String {
    let columns = "-o=jsonpath={.items[*].metadata.labels.version}";
    stage.kubectl(&format!("get secrets -l owner=helm,name=web {columns}"))
}

fn wait_for_revisions(stage: &Stage, expected: &str) {
    let look = || {
        let found = revisions(stage);
        if found == expected { Ok(Some(())) } else { Err(found) }
    };
    wait_until(PATIENCE, &format!("the revisions {expected}"), look).unwrap();
}

#[test]
fn an_unhealthy_upgrade_is_taken_back_once() {
    let stage = stage("returns");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for_why("web", &["health: Healthy"]);
    stage.configure(&json!({"web": "size: broken"}));
    operator.wait_for(&[
        "taking the upgrade back",
        "web",
        "ConfigMap web: the rule `failed` holds",
    ]);
    stage.wait_for_sizes("good:small victim:small web:small");
    wait_for_revisions(&stage, "1 2 3");
    let why = [
        "state: UpgradeHeld",
        "health: Healthy",
        "is taken back: the objects of revision 2 did not do their work (ConfigMap web: the rule `failed` holds)",
        "the objects of revision 1 are back",
        "module upgrade web --again",
    ];
    operator.wait_for_why("web", &why);
    assert_says(&operator.wait_for_event("UpgradeHeld"), &["is taken back: the objects"]);

    // A deleted object comes back as it was, not as it did not work.
    stage.kubectl("delete configmap web");
    stage.wait_for_sizes("good:small victim:small web:small");
    wait_for_revisions(&stage, "1 2 3 4");
    operator.stop();
    let operator = stage.start();
    operator.wait_for_why("web", &why);
    assert_eq!(revisions(&stage), "1 2 3 4");

    // A person tries it again in vain.
    assert_says(&stage.command("module upgrade web --again"), &["is tried again"]);
    wait_for_revisions(&stage, "1 2 3 4 5 6");
    stage.wait_for_sizes("good:small victim:small web:small");
    operator.wait_for_why("web", &["revision 5 did not do their work", "revision 4 are back"]);

    stage.configure(&json!({"web": "size: large"}));
    stage.wait_for_sizes("good:small victim:small web:large");
    operator.wait_for_why("web", &["state: Ready", "health: Healthy"]);
    assert_eq!(revisions(&stage), "1 2 3 4 5 6 7");
    operator.stop();
}

/// With helm 4. Another module, without a claim, is taken back.
#[test]
fn an_upgrade_that_changed_a_claim_is_kept() {
    let mut stage = stage("kept");
    stage.set("HELM_BIN", testbed::shared::program(Part::Helm4));
    stage.add_module("016-page");
    stage.write("modules/016-page/module.yaml", RETURNS);
    stage.write(
        "modules/015-web/module.yaml",
        &RETURNS.replace("rules:", "ignore: [{kind: PersistentVolumeClaim}], rules:"),
    );
    stage.write(
        "modules/015-web/templates/claim.yaml",
        "{{ if eq .Values.web.size \"broken\" }}\nCLAIM{{ end }}\n"
            .replace("CLAIM", CLAIM)
            .as_str(),
    );
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for_why("web", &["health: Healthy"]);
    operator.wait_for_why("page", &["health: Healthy"]);
    stage.configure(&json!({"web": "size: broken", "page": "size: broken"}));
    operator.wait_for(&[
        "the upgrade is not taken back",
        "the upgrade changed PersistentVolumeClaim disk",
    ]);
    operator.wait_for_why(
        "web",
        &[
            "state: Ready",
            "health: Unhealthy",
            "revision 2 is not healthy and stays, because the upgrade changed",
        ],
    );
    stage.wait_for_sizes("good:small page:small victim:small web:broken");
    operator.wait_for_why("page", &["is taken back: the objects of revision 2", "health: Healthy"]);
    assert_eq!(revisions(&stage), "1 2");
    assert!(!stage.kubectl("get pvc disk -o name").is_empty());
    operator.stop();
}
