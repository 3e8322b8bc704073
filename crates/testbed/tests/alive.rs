//! A control plane of the test's own on which pods become ready without running, and its end.

use std::time::Duration;

use testbed::plane::{ControlPlane, JoinError, Options, Pods};
use testbed::wait::wait_until;

#[test]
fn pods_become_ready_jobs_end_and_nothing_is_left() {
    let plane = ControlPlane::start(&Options {
        pods: Pods::Alive,
        ..Options::default()
    })
    .unwrap();
    let (folder, processes) = (plane.folder().to_owned(), plane.processes());
    let namespace = plane.namespace("alive").unwrap();
    namespace
        .kubectl(["create", "deployment", "web", "--image=web", "--replicas=2"])
        .unwrap();
    namespace
        .kubectl(["rollout", "status", "deployment/web", "--timeout=60s"])
        .unwrap();
    namespace.kubectl(["create", "job", "once", "--image=web"]).unwrap();
    namespace
        .kubectl(["wait", "job/once", "--for=condition=Complete", "--timeout=60s"])
        .unwrap();
    namespace
        .kubectl(["delete", "deployment", "web", "--cascade=foreground", "--timeout=60s"])
        .unwrap();
    let name = namespace.name().to_owned();
    drop(namespace);
    wait_until(Duration::from_mins(1), "the namespace to be gone", || {
        match plane.kubectl(["get", "namespace", &name, "--output=jsonpath={.status.phase}"]) {
            Ok(phase) => Err(phase),
            Err(error) if error.to_string().contains("NotFound") => Ok(Some(())),
            Err(error) => Err(error.to_string()),
        }
    })
    .unwrap();

    drop(plane);
    assert_eq!(processes.len(), 5);
    for process in processes {
        assert!(
            !std::path::Path::new(&format!("/proc/{process}")).exists(),
            "process {process} is still there"
        );
    }
    assert!(!folder.exists());
    assert!(matches!(ControlPlane::join(&folder), Err(JoinError::Gone(_))));
}
