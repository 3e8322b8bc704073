//! The node that all tests share, their image, and functions for pods in a test's namespace.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::plane::{ControlPlane, Options, Pods};
use testbed::report;
use testbed::wait::wait_until;

use super::{programs, push};

/// Far longer than any step takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// The control plane and the image that all tests share.
pub(crate) struct Stage {
    pub(crate) plane: ControlPlane,
    pub(crate) image: String,
}

#[expect(clippy::panic, reason = "without root there is no node, and the text says so")]
pub(crate) fn start() -> ControlPlane {
    let asked = Options {
        pods: Pods::Running,
        ..Options::default()
    };
    match ControlPlane::start(&asked) {
        Ok(plane) => plane,
        Err(error) => panic!("{}", report::chain(&error)),
    }
}

pub(crate) fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let plane = start();
        let (image, _) = push_image(&plane, "app", "1");
        Stage { plane, image }
    })
}

/// Pushes the image of the tests; returns its reference and its digest.
pub(crate) fn push_image(plane: &ControlPlane, name: &str, tag: &str) -> (String, String) {
    let programs = ["sh", "cat", "ls", "id", "sleep", "touch", "grep", "env", "curl"].map(Path::new);
    let inhabitant = Path::new(env!("CARGO_BIN_EXE_inhabitant"));
    let below = programs::layer(
        &[programs.as_slice(), &[inhabitant]].concat(),
        &[
            ("etc/passwd", "root:x:0:0::/:\napp:x:1001:1001::/:\n"),
            ("old", "from below"),
        ],
    );
    let above = programs::layer(&[], &[(".wh.old", ""), ("new", "from above")]);
    let registry = plane.registry().unwrap();
    let config = json!({
        "User": "1001", "Env": ["FROM_IMAGE=1"], "WorkingDir": "/tmp",
        "Entrypoint": ["sh", "-c"], "Cmd": ["sleep inf"],
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pushed = push::Repository::at(registry, name);
    let digest = runtime.block_on(pushed.push(tag, &config, &[below, above]));
    (format!("{registry}/{name}:{tag}"), digest)
}

/// Creates a pod with one container on the shared node. `more` is merged into the container, `pod` into the pod.
pub(crate) fn create(namespace: &Namespace<'_>, name: &str, script: &str, more: &Value, pod: &Value) {
    create_from(stage(), namespace, name, script, more, pod);
}

/// Like `create`, with the image of another stage.
pub(crate) fn create_from(
    stage: &Stage,
    namespace: &Namespace<'_>,
    name: &str,
    script: &str,
    more: &Value,
    pod: &Value,
) {
    let mut container = json!({ "name": "main", "image": stage.image, "args": [script] });
    let mut spec = json!({ "terminationGracePeriodSeconds": 2 });
    merge(&mut container, more);
    merge(&mut spec, pod);
    spec["containers"] = json!([container]);
    let object = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": name, "labels": { "app": name },
    }, "spec": spec });
    let admin = namespace.kubectl_as(testbed::plane::User::Admin);
    admin.feed(["create", "-f", "-"], &object.to_string()).unwrap();
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

/// Waits until the pod meets a condition, and returns it.
pub(crate) fn once(namespace: &Namespace<'_>, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    wait_until(PATIENCE, &format!("{name} {what}"), || {
        let text = namespace
            .kubectl(["get", "pod", name, "--output=json"])
            .map_err(|error| error.to_string())?;
        let pod: Value = serde_json::from_str(&text).unwrap();
        if is(&pod) {
            Ok(Some(pod))
        } else {
            Err(pod["status"].to_string())
        }
    })
    .unwrap()
}

pub(crate) fn phase(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or_default()
}

/// Runs a script in a pod to its end and returns its output.
pub(crate) fn said(namespace: &Namespace<'_>, name: &str, script: &str, more: &Value, pod: &Value) -> String {
    let mut pod = pod.clone();
    pod["restartPolicy"] = json!("Never");
    create(namespace, name, script, more, &pod);
    let ended = once(namespace, name, "to end", |pod| {
        matches!(phase(pod), "Succeeded" | "Failed")
    });
    let log = log(namespace, name);
    assert_eq!(phase(&ended), "Succeeded", "{log}\n{}", ended["status"]);
    log
}

/// The log of the last run of a pod's container.
pub(crate) fn log(namespace: &Namespace<'_>, name: &str) -> String {
    namespace.kubectl(["logs", name]).unwrap()
}
