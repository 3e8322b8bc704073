//! Troubles of one pod that only a real kubelet makes or answers. Each ends with another leader and no change for any
//! module.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use fs_err as fs;
use serde_json::Value;
use testbed::part::Part;
use testbed::plane::ControlPlane;
use testbed::process;
use testbed::reader::Only;
use testbed::wait::wait_until;

use super::stage::{Image, PATIENCE, Stage, play, start};

#[test]
fn a_pod_in_trouble_is_replaced_and_no_module_notices() {
    if testbed::shared::has_no_node() {
        return;
    }
    let plane = start();
    let image = Image::push(&plane, "versions");
    play(
        &plane,
        &image,
        &[
            ("a leader that hangs", hangs_and_is_started_again),
            (
                "a leader that gets no time to end",
                is_killed_at_the_end_of_its_grace_period,
            ),
            ("a leader without memory", is_killed_for_memory),
            ("a leader with a full volume", fills_its_volume_and_is_evicted),
        ],
    );
}

/// An installation with a leader, and the state that must not change.
pub(super) struct Installed<'a> {
    pub(super) stage: Stage<'a>,
    pub(super) leader: String,
    revisions: String,
}

impl<'a> Installed<'a> {
    pub(super) fn begin(plane: &'a ControlPlane, image: &Image, values: &[&str]) -> Self {
        let stage = Stage::build(plane, image.clone());
        stage.install(Part::Helm3, values);
        Self::of(stage)
    }

    /// Waits until the modules are ready.
    pub(super) fn of(stage: Stage<'a>) -> Self {
        stage.wait_until_it_says("module list -o wide", &["greeter", "side", "Ready"]);
        Self {
            leader: stage.leader(),
            revisions: stage.revisions(),
            stage,
        }
    }

    pub(super) fn pod(&self, name: &str) -> Option<Value> {
        self.stage.namespace.object("pod", name).unwrap()
    }

    /// The process of the operator in the leading pod.
    fn process(&self) -> u32 {
        let pod = self.pod(&self.leader).unwrap();
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap();
        self.stage.namespace.plane().process_of(id).unwrap()
    }

    /// Waits until the leading pod is in a state, and returns it.
    fn once(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let look = || match self.pod(&self.leader) {
            Some(pod) if is(&pod) => Ok(Some(pod)),
            Some(pod) => Err(pod["status"].to_string()),
            None => Err("the pod is gone".to_owned()),
        };
        wait_until(PATIENCE, what, look).unwrap()
    }

    fn wait_for_another_leader(&self) {
        let look = || {
            let now = self.stage.leader();
            if now == self.leader { Err(now) } else { Ok(Some(())) }
        };
        wait_until(PATIENCE, "another leader", look).unwrap();
    }

    /// The operator works again with all its pods, and no release was touched.
    pub(super) fn assert_whole(&self) {
        self.stage.roll_out();
        self.stage.leader();
        self.stage
            .wait_until_it_says("module list -o wide", &["greeter", "side", "Ready"]);
        assert_eq!(
            self.stage.revisions(),
            self.revisions,
            "something has changed for a module"
        );
    }
}

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

/// The readiness probe takes a stuck leader out of its Services, and the liveness probe has it started again.
fn hangs_and_is_started_again(plane: &ControlPlane, image: &Image) {
    let installed = Installed::begin(plane, image, &["terminationGracePeriodSeconds=35"]);
    process::signal(installed.process(), libc::SIGSTOP);
    installed.once("not to be ready", |pod| container(pod)["ready"] == false);
    installed.wait_for_another_leader();
    let pod = installed.once("to be started again", |pod| {
        container(pod)["restartCount"] == 1 && container(pod)["ready"] == true
    });
    let last = &container(&pod)["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 137, "it did not end when it was asked to: {last}");
    installed.assert_whole();
}

/// A leader that does not answer to SIGTERM is killed when its time is over, and the next one waits for its lease.
fn is_killed_at_the_end_of_its_grace_period(plane: &ControlPlane, image: &Image) {
    let installed = Installed::begin(plane, image, &[]);
    let process = installed.process();
    process::signal(process, libc::SIGSTOP);
    installed.stage.kubectl(&format!(
        "delete pod {} --grace-period=3 --wait=false",
        installed.leader
    ));
    let look = || {
        let is_there = fs::metadata(format!("/proc/{process}")).is_ok();
        if is_there { Err("it is there") } else { Ok(Some(())) }
    };
    wait_until(PATIENCE, "the end of the process", look).unwrap();
    installed.wait_for_another_leader();
    installed.assert_whole();
}

/// The kernel ends the operator at the memory limit of its container, and the kubelet starts it again.
fn is_killed_for_memory(plane: &ControlPlane, image: &Image) {
    let limit = ["resources.limits.memory=128Mi", "resources.requests.memory=64Mi"];
    let installed = Installed::begin(plane, image, &limit);
    // The kernel would take the greedy program, which is the larger one, if the operator were not worse by its score.
    let greedy = "echo 1000 >/proc/1/oom_score_adj; echo 0 >/proc/self/oom_score_adj; \
                  all=$(head -c 400M /dev/zero | tr '\\0' x)";
    let words = ["exec", &installed.leader, "--", "bash", "-c", greedy];
    // The command ends with its container.
    let _ = installed.stage.namespace.kubectl(words);
    let pod = installed.once("to be started again", |pod| {
        container(pod)["restartCount"].as_u64() >= Some(1) && container(pod)["ready"] == true
    });
    assert_eq!(container(&pod)["lastState"]["terminated"]["reason"], "OOMKilled");
    installed.assert_whole();
}

/// A pod whose volume for temporary files is too full is evicted, and another one takes its place.
fn fills_its_volume_and_is_evicted(plane: &ControlPlane, image: &Image) {
    let installed = Installed::begin(plane, image, &["tmpSizeLimit=16Mi"]);
    installed
        .stage
        .ask("dd if=/dev/zero of=/tmp/full bs=1M count=32 status=none");
    // Its phase depends on the moment at which the kubelet looks: it has failed, or it has ended well when it was asked.
    installed.once("to have ended", |pod| {
        matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"))
    });
    let evicted = "get events --field-selector=reason=Evicted --output=jsonpath={.items[*].message}";
    let message = installed.stage.kubectl(evicted);
    assert!(message.contains("\"tmp\"") && message.contains("16Mi"), "{message}");
    installed.wait_for_another_leader();
    let look = || {
        let pods = installed.stage.namespace.objects("pods", Only::Labels(POD)).unwrap();
        let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
        if running == 2 {
            Ok(Some(()))
        } else {
            Err(format!("{running} run"))
        }
    };
    wait_until(PATIENCE, "two pods", look).unwrap();
    installed.assert_whole();
}

const POD: &str = "app.kubernetes.io/name=addon-operator";
