//! A control plane whose parts are killed comes back with its state, or with an earlier one.

use std::time::Duration;

use testbed::part::Part;
use testbed::plane::{ControlPlane, Options};
use testbed::wait::wait_until;

#[test]
fn parts_come_back_and_an_older_backup_takes_back_what_was_written_since() {
    let plane = ControlPlane::start(&Options::default()).unwrap();
    let make = |name: &str| {
        plane
            .kubectl(["create", "configmap", name, "--namespace=default"])
            .unwrap()
    };
    let names = || {
        plane
            .kubectl(["get", "configmaps", "--namespace=default", "--output=name"])
            .unwrap()
    };
    make("before");
    let version = || plane.text("/version").map(Some);
    let read = || {
        wait_until(Duration::from_secs(30), "a version", version)
            .unwrap()
            .unwrap()
    };
    let told = read();
    let backup = plane.backup().unwrap();
    make("since");
    let before = plane.processes();
    for part in [Part::KubeApiserver, Part::Etcd] {
        plane.restart(part).unwrap();
        assert!(names().contains("/before") && names().contains("/since"), "{}", names());
        assert_eq!(read(), told, "also over a connection from before");
    }
    let changed = before
        .iter()
        .zip(plane.processes())
        .filter(|(one, other)| *one != other);
    assert_eq!(changed.count(), 2, "only they were killed");
    plane.restore(&backup).unwrap();
    assert!(
        names().contains("/before") && !names().contains("/since"),
        "{}",
        names()
    );
    make("since");
    assert!(plane.restart(Part::Kwok).is_err(), "it does not run here");
}
