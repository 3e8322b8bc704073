//! Troubles of nodes: tokens are replaced, a registry is down, a node is drained, and the power fails. They come one
//! after another to one installation on two nodes. No module notices any of them.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use serde_json::Value;
use testbed::part::Part;
use testbed::process;
use testbed::reader::Only;
use testbed::registry::guard::{Aim, Guard, Trouble};
use testbed::report::tell;
use testbed::wait::wait_until;

use super::pod::Installed;
use super::stage::{Image, PATIENCE, Stage, start};

const FIRST: &str = "testbed";
const SECOND: &str = "second";

#[test]
fn nodes_in_trouble_harm_no_module() {
    if testbed::shared::has_no_node() {
        return;
    }
    let plane = start();
    let image = Image::push(&plane, "versions");
    let guard = plane.guard_for_pods().unwrap();
    let stage = Stage::build(&plane, image.clone());
    let repository = format!("{}/addon-operator", guard.address());
    let named = [("repository", repository.as_str()), ("digest", &image.digest)];
    stage.install_image(Part::Helm3, &named, &[]);
    let installed = Installed::of(stage);
    tokens_are_replaced(&installed);
    tell("tokens are replaced: well");
    a_registry_is_down(&installed, &guard);
    tell("a registry is down: well");
    a_node_is_drained(&installed);
    tell("a node is drained: well");
    the_power_fails(&installed);
}

/// A kubelet that has just started asks for new tokens. The operator reads its new one from the file, and no request is
/// refused meanwhile.
fn tokens_are_replaced(installed: &Installed<'_>) {
    let stage = &installed.stage;
    let plane = stage.namespace.plane();
    let account = format!("system:serviceaccount:{}:ao-addon-operator", stage.namespace.name());
    let audit = plane.audit();
    let before = audit.since(audit.beginning()).unwrap();
    let before = before.that(|record| record.user == account);
    let known: Vec<String> = before.0.into_iter().map(|record| record.credential).collect();
    let mark = audit.mark().unwrap();
    let kubelet = plane.program_of_node("kubelet").unwrap();
    process::signal(kubelet, libc::SIGKILL);
    let look = || {
        let asked = audit.since(mark).map_err(|error| error.to_string())?;
        let mut asked = asked.that(|record| record.user == account);
        let refused = asked.0.iter().any(|record| record.code == 401);
        assert!(!refused, "{asked}");
        // Both pods, each with a token of its own.
        asked.0.retain(|record| !known.contains(&record.credential));
        let mut fresh: Vec<String> = asked.0.into_iter().map(|record| record.credential).collect();
        fresh.sort_unstable();
        fresh.dedup();
        if fresh.len() >= 2 {
            Ok(Some(()))
        } else {
            Err(format!("{fresh:?}"))
        }
    };
    wait_until(PATIENCE, "requests with other tokens", look).unwrap();
    installed.assert_whole();
}

/// While the registry is down, pods come back on a node that has the image, and cannot begin on a node that lacks it.
/// The leader goes on.
fn a_registry_is_down(installed: &Installed<'_>, guard: &Guard) {
    let stage = &installed.stage;
    guard.impose(vec![Aim::at("/", Trouble::Break)]);
    stage.kubectl("delete pods --all --wait=true");
    installed.assert_whole();

    stage.namespace.plane().add_real_node(SECOND).unwrap();
    stage.kubectl(&format!("cordon {FIRST}"));
    stage.kubectl("scale deployment ao-addon-operator --replicas=3");
    let look = || {
        let waiting = pods(stage, SECOND).into_iter().find_map(|pod| {
            let state = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
            state.as_str().map(str::to_owned)
        });
        match waiting.as_deref() {
            Some("ErrImagePull" | "ImagePullBackOff") => Ok(Some(())),
            other => Err(format!("{other:?}")),
        }
    };
    wait_until(PATIENCE, "a pod without an image", look).unwrap();
    stage.wait_until_it_says("module list -o wide", &["greeter", "side", "Ready"]);
    guard.impose(Vec::new());
    installed.assert_whole();
    stage.kubectl("scale deployment ao-addon-operator --replicas=2");
    stage.kubectl(&format!("uncordon {FIRST}"));
    installed.assert_whole();
}

/// All pods leave a node, the leader among them, as far as the budget for disruptions allows it at each time.
fn a_node_is_drained(installed: &Installed<'_>) {
    let stage = &installed.stage;
    let leader = stage.namespace.object("pod", &stage.leader()).unwrap().unwrap();
    let node = leader["spec"]["nodeName"].as_str().unwrap();
    stage.kubectl(&format!(
        "drain {node} --ignore-daemonsets --delete-emptydir-data --timeout={}s",
        PATIENCE.as_secs()
    ));
    assert_eq!(pods(stage, node).len(), 0, "{node} is empty");
    installed.assert_whole();
    stage.kubectl(&format!("uncordon {node}"));
}

/// All processes of the first node end at once, and start again. All pods are there, so that none can help out.
fn the_power_fails(installed: &Installed<'_>) {
    let stage = &installed.stage;
    stage.kubectl(&format!(
        "drain {SECOND} --ignore-daemonsets --delete-emptydir-data --timeout=120s"
    ));
    installed.assert_whole();
    let before: Vec<Value> = pods(stage, FIRST);
    assert_eq!(before.len(), 2);
    stage.namespace.plane().reboot().unwrap();
    let look = || {
        let now = pods(stage, FIRST);
        let restarted = now.iter().all(|pod| {
            let container = &pod["status"]["containerStatuses"][0];
            container["restartCount"].as_u64() >= Some(1) && container["ready"] == true
        });
        if now.len() == 2 && restarted {
            Ok(Some(()))
        } else {
            Err(now.iter().map(|pod| pod["status"].to_string()).collect::<String>())
        }
    };
    wait_until(PATIENCE, "pods that were started again", look).unwrap();
    installed.assert_whole();
}

/// The pods on a node that are not being deleted.
fn pods(stage: &Stage<'_>, node: &str) -> Vec<Value> {
    let mut pods = stage.namespace.objects("pods", Only::All).unwrap();
    pods.retain(|pod| pod["spec"]["nodeName"] == node && pod["metadata"]["deletionTimestamp"].is_null());
    pods
}
