//! All cases. Each names the trouble of a module, and what has to be told about it.

use serde_json::{Value, json};

use super::Places;
use super::case::{Case, Cure, Sign, Step};
use super::storage::{self, DEAD};
use super::workload::{Pods, inside};

/// The description of a module that may be on its way for seconds only.
const SOON: &str = "health: {timeout: 15s}\n";

/// A container that goes on until it is ended.
const STAYS: &str = "exec sleep inf";

/// A container that goes on until its file is there.
const WAITS: &str = "until [ -e /tmp/go ]; do sleep 0.2; done";

pub(super) fn all(places: &Places<'_>, repository: &str) -> Vec<Case> {
    let image = format!("{repository}:1");
    let mut cases = images(&image, repository);
    cases.extend(crashes(&image));
    cases.extend(probes(&image));
    cases.extend(refusals(&image, places));
    cases.extend(supplies(&image));
    cases.extend(jobs(&image));
    cases.extend(sets(&image));
    cases.extend(others(&image, repository));
    cases
}

/// A case whose objects change with an edit.
fn edited(name: &'static str, sign: Sign, ill: Value, well: Value, words: &[&str]) -> Case {
    Case {
        name,
        description: "",
        kinds: Vec::new(),
        ill: vec![ill],
        well: vec![well],
        sign,
        steps: vec![step("", words)],
        cure: Cure::Edit,
    }
}

/// A case whose objects stay the same.
fn cured(name: &'static str, sign: Sign, object: Value, words: &[&str], cure: Cure) -> Case {
    Case {
        cure,
        ..edited(name, sign, object, json!({}), words)
    }
}

fn step(health: &'static str, words: &[&str]) -> Step {
    Step {
        health,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    }
}

/// The good objects of most cases.
fn good(name: &'static str, image: &str) -> Value {
    Pods::of(name, image, STAYS).deployment()
}

const PULLS: Sign = Sign::Waits(&["ErrImagePull", "ImagePullBackOff"]);

fn images(image: &str, repository: &str) -> Vec<Case> {
    let absent = format!("{repository}:typo");
    let nowhere = "127.0.0.1:9/app:1";
    let case = |name, image_of: &str, reason: &str| {
        let ill = Pods::of(name, image_of, STAYS);
        let told = format!(": image {image_of} cannot be pulled ({reason})");
        let begin = format!("Deployment {name}: ");
        let mut case = edited(name, PULLS, ill.deployment(), good(name, image), &[&begin, &told]);
        let late = "the rollout took longer than its deadline of 5 s; ";
        case.steps.push(step("Unhealthy", &[&begin, late, &told]));
        case.ill = vec![ill.hasty()];
        case
    };
    vec![
        case("typo", &absent, "not found"),
        case("nowhere", nowhere, "connection refused"),
    ]
}

fn crashes(image: &str) -> Vec<Case> {
    let crash = Pods::of("crash", image, "echo reads its settings; echo no settings >&2; exit 3");
    let memory = Pods::of("memory", image, "all=$(head -c 200M /dev/zero | tr '\\0' x)");
    let memory = memory.with(json!({ "resources": { "limits": { "memory": "24Mi" } } }));
    let words = [
        "Deployment crash: ",
        "; crash-",
        ": container main crashes (",
        "): exit code 3; its last line: no settings",
    ];
    let full = [
        "Deployment memory: ",
        "; memory-",
        ": container main crashes (",
        "): out of memory (limit 24Mi)",
    ];
    let flap = Pods::of("flap", image, "sleep 3; exit 1");
    let told = ["Deployment flap: ", "exit code 1"];
    let flap = Case {
        description: "health: {timeout: 5s}\n",
        ..edited("flap", Sign::Crash, flap.deployment(), good("flap", image), &told)
    };
    vec![
        edited("crash", Sign::Crash, crash.deployment(), good("crash", image), &words),
        edited("memory", Sign::Crash, memory.deployment(), good("memory", image), &full),
        flap,
    ]
}

fn probes(image: &str) -> Vec<Case> {
    let probe = |script: &str| json!({ "exec": { "command": ["sh", "-c", script] }, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5 });
    let unready = Pods::of("unready", image, STAYS).with(json!({ "readinessProbe": probe("cat /tmp/go") }));
    let told = [
        "Deployment unready: 0 of 1 pods are available; unready-",
        ": the readiness probe of container main fails (cat: /tmp/go: No such file or directory)",
    ];
    let unready = Case {
        description: SOON,
        ..cured(
            "unready",
            Sign::Event("Unhealthy"),
            unready.deployment(),
            &told,
            Cure::File("unready-".to_owned(), "main"),
        )
    };
    let alive = Pods::of("unalive", image, STAYS).with(json!({ "livenessProbe": probe("cat /tmp/alive") }));
    let words = [
        "Deployment unalive: ",
        "; unalive-",
        ": container main is restarted because its liveness probe fails (cat: /tmp/alive: No such file or directory)",
    ];
    let waver = probe("[ $(($(date +%s) / 4 % 2)) = 0 ]");
    let waver = Pods::of("waver", image, STAYS).with(json!({ "readinessProbe": waver }));
    let told = ["Deployment waver: ", "the readiness probe of container main fails"];
    let waver = Case {
        description: "health: {timeout: 5s}\n",
        ..edited(
            "waver",
            Sign::Event("Unhealthy"),
            waver.deployment(),
            good("waver", image),
            &told,
        )
    };
    vec![
        unready,
        edited(
            "unalive",
            Sign::Crash,
            alive.deployment(),
            good("unalive", image),
            &words,
        ),
        waver,
    ]
}

fn refusals(image: &str, places: &Places<'_>) -> Vec<Case> {
    let huge = Pods::of("huge", image, STAYS).with(json!({ "resources": { "requests": { "cpu": "1000" } } }));
    let told = [
        "Deployment huge: 0 of 1 pods are available; huge-",
        ": the pod cannot be scheduled: 0/3 nodes are available: ",
        "2 Insufficient cpu",
    ];
    let placed = edited("huge", Sign::Unplaced, huge.deployment(), good("huge", image), &told);
    let obeys = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1001,
        "capabilities": { "drop": ["ALL"] }, "seccompProfile": { "type": "RuntimeDefault" },
    });
    let obeys = Pods::of("secure", image, STAYS).with(json!({ "securityContext": obeys }));
    let namespace = places.restricted.name();
    let begin = format!("Deployment {namespace}/secure: 0 of 1 pods are created; secure-");
    let told = [
        &*begin,
        ": pods cannot be created: PodSecurity restricted:latest forbids them (allowPrivilegeEscalation != false, \
         unrestricted capabilities, runAsNonRoot != true, seccompProfile)",
    ];
    let secure = edited(
        "secure",
        Sign::Event("FailedCreate"),
        inside(good("secure", image), namespace),
        inside(obeys.deployment(), namespace),
        &told,
    );
    let namespace = places.full.name();
    let begin = format!("Deployment {namespace}/quota: 0 of 1 pods are created; quota-");
    let told = [
        &*begin,
        ": pods cannot be created: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0",
    ];
    let remove = ["delete", "quota", "none", "--namespace", namespace].map(str::to_owned);
    let quota = Case {
        cure: Cure::Kubectl(remove.to_vec()),
        ..edited(
            "quota",
            Sign::Event("FailedCreate"),
            inside(good("quota", image), namespace),
            json!({}),
            &told,
        )
    };
    vec![placed, secure, quota]
}

fn supplies(image: &str) -> Vec<Case> {
    let settings = json!({ "envFrom": [{ "configMapRef": { "name": "settings" } }] });
    let settings = Pods::of("settings", image, STAYS).with(settings);
    let told = [
        "Deployment settings: 0 of 1 pods are available; settings-",
        ": ConfigMap settings does not exist",
    ];
    let create = ["create", "configmap", "settings"].map(str::to_owned);
    let settings = cured(
        "settings",
        Sign::Waits(&["CreateContainerConfigError"]),
        settings.deployment(),
        &told,
        Cure::Kubectl(create.to_vec()),
    );
    let mounts = json!({ "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }] });
    let claims = Pods::of("claim", image, STAYS).within(mounts).deployment();
    let words = [": claim data is not bound: storageclass.storage.k8s.io \"fast\" not found"];
    let volume = Cure::Object(storage::volume("health"));
    let mut claim = cured("claim", Sign::Unplaced, claims, &words, volume);
    claim.ill.push(storage::claim("data"));
    let init = json!({ "initContainers": [{ "name": "before", "image": image, "args": [WAITS] }] });
    let init = Pods::of("before", image, STAYS).within(init);
    let begin = "Deployment before: 0 of 1 pods are available; before-";
    let mut before = cured(
        "before",
        Sign::Init,
        init.deployment(),
        &[begin, ": init container before runs"],
        Cure::File("before-".to_owned(), "before"),
    );
    let hangs = ": init container before still runs, after 1 min";
    before.steps.push(step("RollingOut", &[begin, hangs]));
    vec![settings, claim, before]
}

fn jobs(image: &str) -> Vec<Case> {
    let fails = Pods::of("fails", image, "echo cannot move; exit 4");
    let works = Pods::of("fails", image, "exit 0");
    let told = [
        "Job fails: all tries are used up (BackoffLimitExceeded); fails-",
        ": exit code 4; its last line: cannot move",
    ];
    let mut fails = edited(
        "fails",
        Sign::Job("failed"),
        fails.job("fails", 0),
        works.job("fails-again", 0),
        &told,
    );
    fails.steps.push(step("Unhealthy", &told));
    let endless = Pods::of("endless", image, WAITS).job("endless", 0);
    let told = ["Job endless: it is not complete yet (1 pod runs)"];
    let file = Cure::File("endless-".to_owned(), "main");
    let mut endless = cured("endless", Sign::Job("startTime"), endless, &told, file);
    endless.description = SOON;
    endless.steps[0].health = "RollingOut";
    endless.steps.push(step("Unhealthy", &told));
    vec![fails, endless]
}

fn sets(image: &str) -> Vec<Case> {
    let everywhere = json!({ "tolerations": [{ "operator": "Exists" }] });
    let agent = Pods::of("agent", image, STAYS).within(everywhere).daemon_set();
    let told = [
        "DaemonSet agent: 2 of 3 pods are available; agent-",
        ": node dead has not taken up the pod",
    ];
    let remove = ["delete", "node", DEAD].map(str::to_owned);
    let agent = cured("agent", Sign::Placed, agent, &told, Cure::Kubectl(remove.to_vec()));
    let second = json!({
        "exec": { "command": ["sh", "-c", "[ $HOSTNAME != store-1 ] || cat /tmp/go"] }, "periodSeconds": 1,
    });
    let store = Pods::of("store", image, STAYS).with(json!({ "readinessProbe": second }));
    let told = [
        "StatefulSet store: 2 of 3 pods are created; store-1: the readiness probe of container main fails (cat: /tmp/go: \
         No such file or directory)",
    ];
    let store = cured(
        "store",
        Sign::Event("Unhealthy"),
        store.stateful_set(3),
        &told,
        Cure::File("store-1".to_owned(), "main"),
    );
    vec![agent, store]
}

fn others(image: &str, repository: &str) -> Vec<Case> {
    let mut widget = cured(
        "widget",
        Sign::Nothing,
        storage::widget("widget"),
        &["Widget widget: NoSuchPart: part 7 is unknown"],
        Cure::Kubectl(storage::report("widget", "True", "Complete", "")),
    );
    widget.kinds = vec![storage::widgets()];
    let absent = format!("{repository}:typo");
    let mut ignored = edited(
        "ignored",
        Sign::Nothing,
        Pods::of("ignored", &absent, STAYS).deployment(),
        good("ignored", image),
        &[],
    );
    ignored.description = "health: {ignore: [{kind: Deployment, name: ignored}]}\n";
    ignored.steps[0].health = "Healthy";
    let mut works = cured("works", Sign::Nothing, good("works", image), &[], Cure::None);
    works.steps[0].health = "Healthy";
    vec![widget, ignored, works]
}
