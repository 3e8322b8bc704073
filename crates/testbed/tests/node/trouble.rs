//! The ways in which a test can trouble a node: a killed container, a killed kubelet, a power cut; and a second node.

use serde_json::{Value, json};
use testbed::process;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Stage, create, create_from, once, push_image, stage, start};

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn id(pod: &Value) -> &str {
    container(pod)["containerID"].as_str().unwrap()
}

#[test]
fn root_without_the_right_to_namespaces_is_told_so() {
    if testbed::shared::has_no_node() {
        return;
    }
    let mut command = process::command("setpriv");
    command.args(["--bounding-set=-sys_admin", env!("CARGO_BIN_EXE_testbed"), "needs"]);
    let output = process::run(command, None).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("is left out: root may not make namespaces here"),
        "{said}"
    );
}

#[test]
fn a_container_that_is_killed_from_outside_is_started_again() {
    if testbed::shared::has_no_node() {
        return;
    }
    let namespace = stage().plane.namespace("killed").unwrap();
    create(&namespace, "seen", "sleep inf", &json!({}), &json!({}));
    let pod = once(&namespace, "seen", "to be ready", |pod| container(pod)["ready"] == true);
    let first = stage().plane.process_of(id(&pod)).unwrap();
    process::signal(first, libc::SIGKILL);
    let pod = once(&namespace, "seen", "to be ready again", |pod| {
        container(pod)["ready"] == true && container(pod)["restartCount"] == 1
    });
    assert_eq!(container(&pod)["lastState"]["terminated"]["exitCode"], 137);
    assert_ne!(stage().plane.process_of(id(&pod)).unwrap(), first);
}

#[test]
fn a_killed_kubelet_is_started_again_and_finds_its_pods() {
    if testbed::shared::has_no_node() {
        return;
    }
    let namespace = stage().plane.namespace("kubelet").unwrap();
    create(&namespace, "seen", "sleep inf", &json!({}), &json!({}));
    let pod = once(&namespace, "seen", "to be ready", |pod| container(pod)["ready"] == true);
    let first = stage().plane.program_of_node("kubelet").unwrap();
    process::signal(first, libc::SIGKILL);
    wait_until(PATIENCE, "another kubelet", || {
        let now = stage().plane.program_of_node("kubelet");
        Ok::<_, String>(now.filter(|now| *now != first))
    })
    .unwrap();
    let again = once(&namespace, "seen", "to be as before", |pod| {
        container(pod)["ready"] == true
    });
    assert_eq!(id(&again), id(&pod), "its container has not noticed");
}

#[test]
fn after_a_power_cut_pods_run_again() {
    if testbed::shared::has_no_node() {
        return;
    }
    let plane = start();
    let (image, _) = push_image(&plane, "app", "1");
    let stage = Stage { plane, image };
    let namespace = stage.plane.namespace("reboot").unwrap();
    create_from(&stage, &namespace, "seen", "sleep inf", &json!({}), &json!({}));
    let pod = once(&namespace, "seen", "to be ready", |pod| container(pod)["ready"] == true);
    let process = stage.plane.process_of(id(&pod)).unwrap();
    stage.plane.reboot().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
    let again = once(&namespace, "seen", "to be ready again", |now| {
        container(now)["ready"] == true && container(now)["restartCount"] == 1
    });
    assert_ne!(id(&again), id(&pod));
}
