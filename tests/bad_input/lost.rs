//! The ConfigMap is lost: the operator's own state is there too, or an almost empty ConfigMap takes its place. Objects
//! that hold data must stay.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::process;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, Operator, PATIENCE, Stage, assert_says};

const CLAIM: &str = "\
{{ if .Values.keeper.claim }}
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: keeper}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
{{ end }}
";
const LOST: &str = "Configuration is lost, modules that were released with it are neither upgraded nor removed";

fn configuration() -> Value {
    json!({"good": "size: large", "victimEnabled": "true", "victim": "size: large", "keeper": "claim: true"})
}

/// A stage on which only the ConfigMap switches on the victim, and the keeper has a PersistentVolumeClaim only because
/// of its section.
fn keeping(prefix: &str) -> Stage {
    let stage = Stage::build(prefix);
    stage.write(
        "modules/values.yaml",
        "goodEnabled: true\nkeeperEnabled: true\nplainEnabled: true\n",
    );
    stage.add_module("030-keeper");
    stage.write("modules/030-keeper/templates/claim.yaml", CLAIM);
    stage.add_module("040-plain");
    stage.configure(&configuration());
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage
}

fn claims(objects: &[String]) -> Vec<&String> {
    let is_there = |row: &&String| row.starts_with("PersistentVolumeClaim keeper ") && row.ends_with(" <none> <none>");
    objects.iter().filter(is_there).collect()
}

fn wait_for_no_claim(stage: &Stage) {
    let look = || {
        let objects = stage.objects();
        if claims(&objects).is_empty() {
            Ok(Some(()))
        } else {
            Err(objects.join("\n"))
        }
    };
    wait_until(PATIENCE, "the claim to be deleted", look).unwrap();
}

fn wait_until_gone(stage: &Stage, name: &str) {
    let look = || {
        let objects = stage.objects();
        let is_there = objects.iter().any(|row| row.starts_with(&format!("ConfigMap {name} ")));
        if is_there {
            Err(objects.join("\n"))
        } else {
            Ok(Some(()))
        }
    };
    wait_until(PATIENCE, &format!("{name} to be removed"), look).unwrap();
}

fn lose(stage: &Stage) {
    stage.kubectl("delete configmap addon-operator");
    stage.kubectl("delete secret addon-operator-state");
}

/// Starts an operator that has lost its configuration, and checks all its reports about that.
fn start_lost(stage: &Stage) -> Operator<'_> {
    let operator = stage.start();
    let told = operator.wait_for(&[LOST]);
    assert_says(&told, &["\"level\":\"error\"", "\"releases\":\"good,keeper,victim\""]);
    operator.wait_for(&[CONVERGED]);
    operator
}

#[test]
fn with_the_config_map_and_the_state_lost_nothing_is_upgraded_or_removed() {
    let stage = keeping("both-lost");
    let before = stage.objects();
    assert_eq!(claims(&before).len(), 1, "{before:?}");
    lose(&stage);
    for _ in 0..2 {
        // Every later operator process behaves the same, until a person confirms.
        let operator = start_lost(&stage);
        assert_eq!(stage.objects(), before);
        operator.wait_for_answer(
            "/readyz?verbose",
            200,
            &["configuration lost: release keeper is neither upgraded nor removed"],
        );
        operator.wait_for_answer(
            "/metrics",
            200,
            &["addon_operator_configuration_lost{release=\"keeper\"} 1"],
        );
        assert_says(&operator.ask("why keeper"), &["its configuration is lost"]);
        assert_says(&operator.ask("why victim"), &["its configuration is lost"]);
        operator.wait_for_event("ConfigurationLost");
        operator.stop();
    }
    stage.assert_installed(&["good", "keeper", "plain", "victim"]);

    // With the ConfigMap back, everything goes on as before, and edits are applied.
    let operator = start_lost(&stage);
    stage.configure(&configuration());
    operator.wait_for(&["Modules whose configuration was lost are managed again"]);
    let look = || {
        let (_, metrics) = operator.get("/metrics");
        if metrics.contains("configuration_lost{") {
            Err(metrics)
        } else {
            Ok(Some(()))
        }
    };
    wait_until(PATIENCE, "no series of a loss", look).unwrap();
    let mut edited = configuration();
    edited["good"] = json!("size: huge");
    stage.configure(&edited);
    stage.wait_for_sizes("good:huge keeper:small plain:small victim:large");
    let after: Vec<String> = stage
        .objects()
        .iter()
        .map(|row| row.replace(" huge", " large"))
        .collect();
    assert_eq!(after, before);
    operator.stop();
    stage.assert_installed(&["good", "keeper", "plain", "victim"]);
}

#[test]
fn a_person_who_confirms_that_it_is_gone_is_taken_at_his_word() {
    let stage = keeping("confirmed");
    lose(&stage);
    let operator = start_lost(&stage);
    assert_says(&operator.ask("config lost"), &["good\nkeeper\nvictim\n"]);
    assert_eq!(
        operator.ask("config lost -o json").trim(),
        r#"{"lost":["good","keeper","victim"]}"#
    );
    assert_says(&operator.ask("config lost --confirm"), &["good, keeper, victim"]);
    // The values of files are used, and helm removes the objects that they do not ask for.
    wait_for_no_claim(&stage);
    stage.wait_for_sizes("good:small keeper:small plain:small victim:large");
    assert_says(&operator.ask("config lost"), &["no configuration is lost"]);
    operator.stop();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert!(operator.records(&[LOST]).is_empty(), "that was said once and for all");
    // No confirmation says that the victim may be removed. Then the ConfigMap does.
    stage.wait_for_sizes("good:small keeper:small plain:small victim:large");
    stage.configure(&json!({"victimEnabled": "false"}));
    wait_until_gone(&stage, "victim");
    operator.stop();
}

/// Runs helm on the chart that installs the operator.
fn helm(stage: &Stage, arguments: &[&str]) {
    let plane = stage.namespace().plane();
    let mut helm = process::command(plane.program(Part::Helm3));
    helm.args(arguments)
        .arg(format!("--namespace={}", stage.namespace().name()))
        .env("HOME", stage.path("home"))
        .env("KUBECONFIG", stage.namespace().kubeconfig(User::Admin));
    let output = process::run(helm, None).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_nearly_empty_config_map_of_our_chart_takes_nothing_back() {
    let stage = keeping("charts-own");
    let before = stage.objects();
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/addon-operator");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    stage.kubectl("delete configmap addon-operator");
    operator.wait_for(&["ConfigMap is not found"]);
    let options = [
        "--set=image.repository=registry.local/addon-operator",
        "--set=replicas=0",
    ];
    // Other tests need a cluster without the kinds of status objects.
    helm(
        &stage,
        &[&["install", "ao", chart, "--skip-crds"], &options[..]].concat(),
    );
    // After this edit the ConfigMap is no longer as it was made, so its content counts, and nothing else.
    let patch = |data: &Value| {
        let patch = format!("--patch={}", json!({ "data": data }));
        let words = ["patch", "configmap", "addon-operator", "--type=merge", &patch];
        stage.namespace().kubectl(words).unwrap();
    };
    operator.stop();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    assert_eq!(stage.objects(), before, "neither flags nor sections are taken back");
    patch(&json!({"plain": "size: huge"}));
    stage.wait_for_sizes("good:large keeper:small plain:huge victim:large");
    assert_eq!(claims(&stage.objects()), claims(&before));

    // An upgrade of the chart creates no ConfigMap. One that a person creates counts.
    stage.kubectl("delete configmap addon-operator");
    operator.wait_for_more(&["ConfigMap is not found"], 1);
    helm(
        &stage,
        &[&["upgrade", "ao", chart, "--reset-then-reuse-values"], &options[..]].concat(),
    );
    assert_eq!(stage.kubectl("get configmaps addon-operator --ignore-not-found"), "");
    stage.configure(&json!({"good": "size: large", "victimEnabled": "false", "keeper": "claim: true"}));
    wait_until_gone(&stage, "victim");
    assert_eq!(claims(&stage.objects()), claims(&before));
    operator.stop();
}
