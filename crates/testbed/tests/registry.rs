//! The registry of a control plane: started on request, real, and ended with its owner.

use serde_json::json;
use testbed::plane::{ControlPlane, Options, User};
use testbed::registry::push;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_pushed_is_there_until_the_owner_ends() {
    let asked = Options {
        registry: true,
        ..Options::default()
    };
    let plane = ControlPlane::start(&asked).unwrap();
    let address = plane.registry().unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    assert_eq!(plane.environment(User::Admin)["TESTBED_REGISTRY"], *address);
    assert_eq!(ControlPlane::join(plane.folder()).unwrap().registry(), Some(&*address));

    let repository = push::Repository::at(&address, "team/app");
    assert_eq!(repository.resolve("1").await, None);
    let digest = repository.push("1", &json!({}), &[b"no real layer".to_vec()]).await;
    assert_eq!(repository.resolve("1").await, Some(digest));

    let processes = plane.processes();
    drop(plane);
    assert_eq!(processes.len(), 4, "etcd, API server, controllers and registry");
    for process in processes {
        assert!(
            !std::path::Path::new(&format!("/proc/{process}")).exists(),
            "process {process} is still there"
        );
    }
}

#[test]
fn there_is_none_that_nobody_asked_for() {
    let plane = testbed::shared::plane();
    assert_eq!(
        plane.registry().is_some(),
        plane.environment(User::Admin).contains_key("TESTBED_REGISTRY")
    );
}
