//! Changes that people make in the objects of releases: which are put right, and which stay.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, Operator, PATIENCE, Stage, assert_says};

const ALTERED: &str = "Another writer altered an object of the release";
const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: side, image: side:1}, {name: main, image: main:1, resources: {limits: {cpu: 1000m}}}]}
";

fn start(stage: &Stage) -> Operator<'_> {
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let look = || {
        let watched = operator.ask("raw /module/resource-monitor.json");
        let all = ["ConfigMap/good", "ConfigMap/victim", "Deployment/web"];
        Ok::<_, String>(all.iter().all(|object| watched.contains(object)).then_some(()))
    };
    wait_until(PATIENCE, "all objects to be watched", look).unwrap();
    operator
}

fn wait_for(stage: &Stage, question: &str, answer: &str) {
    let look = || {
        let found = stage.kubectl(question);
        if found == answer { Ok(Some(())) } else { Err(found) }
    };
    wait_until(PATIENCE, &format!("{question} to give {answer}"), look).unwrap();
}

fn patch(stage: &Stage, object: &str, patch: &str) {
    let kubectl = stage.namespace().kubectl_as(User::Admin);
    kubectl
        .run(["patch", object, "--type=merge", "--patch", patch])
        .unwrap();
}

const SIZE: &str = "get configmap good -o=jsonpath={.data.size}";

#[test]
fn what_people_change_is_put_right_and_what_controllers_change_stays() {
    let mut stage = Stage::build("altered");
    stage.set("ADDON_OPERATOR_DRIFT", "changed");
    stage.write("modules/020-victim/module.yaml", "drift: off\n");
    stage.write(
        "modules/values.yaml",
        "goodEnabled: true\nvictimEnabled: true\nwebEnabled: true\n",
    );
    stage.write("modules/030-web/templates/web.yaml", WEB);
    let operator = start(&stage);
    let releases = "get secrets -l owner=helm -o=jsonpath={.items[*].metadata.name}";
    let before = stage.kubectl(releases);

    // One value is changed and one is removed; both are restored. A key that a person has added is kept.
    patch(&stage, "configmap/good", r#"{"data": {"size": "theirs", "more": "x"}}"#);
    wait_for(&stage, SIZE, "small");
    let told = operator.wait_for(&[ALTERED, "\"module\":\"good\""]);
    assert_says(&told, &["ConfigMap/good", "data.size"]);
    patch(&stage, "configmap/good", r#"{"data": {"size": null}}"#);
    wait_for(&stage, SIZE, "small");
    assert_eq!(stage.kubectl("get configmap good -o=jsonpath={.data.more}"), "x");

    // A change of replicas may come from an autoscaler and stays. A change of an image is put right.
    stage.kubectl("scale deployment web --replicas=3");
    stage.kubectl("set image deployment/web main=evil:1");
    let images = "get deployment web -o=jsonpath={.spec.replicas}:{.spec.template.spec.containers[*].image}";
    wait_for(&stage, images, "3:side:1 main:1");
    operator.wait_for(&[ALTERED, "\"module\":\"web\"", "spec.template.spec.containers[1].image"]);

    // A module with repairs switched off is left alone, even if an object is missing.
    stage.kubectl("delete configmap victim");
    // A person who repeats a change wins in the end, and the log names the fields.
    patch(&stage, "configmap/good", r#"{"data": {"size": "mine"}}"#);
    wait_for(&stage, SIZE, "small");
    operator.wait_for(&[
        "alters a field of the release again and again",
        "data.size",
        "kubectl-patch",
    ]);
    patch(&stage, "configmap/good", r#"{"data": {"size": "mine"}}"#);
    let left = "altered: ConfigMap good: data.size is left to kubectl-patch, until the operator starts again";
    assert_says(&operator.ask("why good"), &["health: Healthy", left]);
    assert_says(&operator.ask("module list -o wide"), &["Healthy, altered"]);
    patch(
        &stage,
        "deployment/web",
        r#"{"metadata": {"labels": {"heritage": null}}}"#,
    );
    wait_for(
        &stage,
        "get deployment web -o=jsonpath={.metadata.labels.heritage}",
        "addon-operator",
    );
    assert_eq!(stage.kubectl(SIZE), "mine");
    assert_eq!(stage.kubectl("get configmap victim --ignore-not-found"), "");

    let counted = "addon_operator_modules_altered_resources_total{module=\"good\"";
    operator.wait_for_answer("/metrics", 200, &[counted]);
    operator.stop();
    // Helm wrote a new revision only for the missing object.
    let made = stage.kubectl(releases);
    assert_eq!(made.replace(" sh.helm.release.v1.web.v2", ""), before, "{made}");
}
