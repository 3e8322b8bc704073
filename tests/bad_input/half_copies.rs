//! Files are missing in a module's directory: the objects that they rendered stay, until the files are back or a person
//! confirms the removal.

use fs_err as fs;
use serde_json::json;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, PATIENCE, Stage, assert_says};

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
                     storageClassName: none\n  resources: {requests: {storage: 1Mi}}\n";

fn with_a_claim(prefix: &str) -> Stage {
    let stage = Stage::build(prefix);
    stage.write("modules/020-victim/templates/claim.yaml", CLAIM);
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    stage
}

fn claim(stage: &Stage) -> String {
    let live = "get pvc data --ignore-not-found -o=jsonpath={.metadata.uid}{.metadata.deletionTimestamp}";
    stage.kubectl(live)
}

#[test]
fn what_missing_files_rendered_stays_until_they_are_back_or_a_person_lets_it_go() {
    let stage = with_a_claim("half-copy");
    let uid = claim(&stage);
    stage.rename("modules/020-victim/templates/claim.yaml", "claim.yaml");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let told = operator.wait_for(&["Upgrade is held", "victim", "warn"]);
    assert_says(
        &told,
        &[
            "PersistentVolumeClaim/data",
            "put them back",
            "module upgrade victim --confirm",
        ],
    );
    let events = operator.wait_for_event("UpgradeHeld");
    assert_says(&events, &["the upgrade of release", "PersistentVolumeClaim/data"]);
    operator.wait_for_answer("/readyz?verbose", 200, &["upgrade held: victim"]);
    operator.wait_for_answer(
        "/metrics",
        200,
        &["addon_operator_module_upgrade_held{module=\"victim\"} 1"],
    );
    assert_says(
        &operator.ask("module why victim"),
        &["UpgradeHeld", "PersistentVolumeClaim/data"],
    );
    assert_says(&operator.ask("module list -o wide"), &["UpgradeHeld"]);
    // The other modules go on.
    stage.configure(&json!({"good": "size: large"}));
    stage.wait_for_sizes("good:large victim:small");
    operator.stop();
    stage.assert_installed(&["good", "victim"]);

    stage.rename("claim.yaml", "modules/020-victim/templates/claim.yaml");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.wait_for_answer("/readyz", 200, &[]);
    assert_eq!(operator.records(&["Upgrade is held"]), [""; 0]);
    assert_eq!(
        stage.command("module upgrade victim"),
        "No upgrade of module 'victim' is held\n"
    );
    operator.stop();
    stage.assert_installed(&["good", "victim"]);
    assert_eq!(claim(&stage), uid);

    fs::remove_file(stage.path("modules/020-victim/templates/claim.yaml")).unwrap();
    let operator = stage.start();
    operator.wait_for(&["Upgrade is held", "victim"]);
    let shown = stage.command("module upgrade victim");
    assert_says(&shown, &["1 of 2 objects", "PersistentVolumeClaim/data", "--confirm"]);
    assert_eq!(claim(&stage), uid);
    assert_says(&stage.command("module upgrade victim --confirm"), &["It is confirmed"]);
    let look = || match claim(&stage) {
        gone if gone != uid => Ok(Some(())),
        there => Err(there),
    };
    wait_until(PATIENCE, "the claim to go", look).unwrap();
    operator.wait_for(&["Module is ready", "victim", "upgraded"]);
    operator.stop();
}

#[test]
fn what_people_take_away_by_its_section_goes_at_once() {
    let stage = Stage::build("half-asked");
    let wished = format!("{{{{ if .Values.victim.claim }}}}\n{CLAIM}{{{{ end }}}}\n");
    stage.write("modules/020-victim/templates/claim.yaml", &wished);
    stage.configure(&json!({"victim": "claim: true"}));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let uid = claim(&stage);
    assert_ne!(uid, "");
    stage.configure(&json!({"victim": "claim: false"}));
    let look = || match claim(&stage) {
        gone if gone != uid => Ok(Some(())),
        there => Err(there),
    };
    wait_until(PATIENCE, "the claim to go", look).unwrap();
    assert_eq!(operator.records(&["Upgrade is held"]), [""; 0]);
    operator.stop();
}
