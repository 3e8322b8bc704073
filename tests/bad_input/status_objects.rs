//! Status objects that cannot be written: it is said once, and all else goes on.

use super::api_server::behind_liar;
use super::stage::{CONVERGED, Stage};

#[test]
fn a_cluster_without_the_kinds_of_status_objects_is_told_once() {
    let stage = Stage::build("kindless");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let said = operator.wait_for(&["Status objects are not written"]);
    assert!(said.contains("apply the CRDs of the chart"), "{said}");
    stage.assert_installed(&["good", "victim"]);
    operator.stop();
}

fn forbids_status_objects(request: &str) -> Option<&'static str> {
    request
        .contains(" /apis/addon-operator.io/")
        .then_some(super::api_server::FORBIDDEN)
}

#[test]
fn an_account_without_the_right_to_status_objects_is_told_once_and_a_flag_ends_all_requests() {
    let (mut stage, proxy, _server) = behind_liar("rightless");
    proxy.lie(Some(forbids_status_objects));
    let operator = stage.start();
    let said = operator.wait_for(&["Status objects are not written"]);
    assert!(said.contains("grant the rights"), "{said}");
    operator.wait_for(&[CONVERGED]);
    assert_eq!(operator.records(&["Status objects"]).len(), 1);
    operator.stop();

    stage.set("ADDON_OPERATOR_STATUS_OBJECTS", "false");
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    // The first change that an object would tell.
    stage.configure(&serde_json::json!({"good": "size: large"}));
    stage.wait_for_sizes("good:large victim:small");
    assert_eq!(operator.records(&["Status objects"]), [""; 0]);
    operator.stop();
}
