//! The health of deployed releases: whether their objects do their work. Pods stay pending here, so a Deployment works only if it wants
//! none.

use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::shared;

use super::world::{Home, operator, push_template, ready_of};

/// A chart of a Deployment with this number of pods.
fn deployment(replicas: u8, more: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n  {more}\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
         spec: {{containers: [{{name: a, image: 'registry.test/none:1'}}]}}\n"
    )
}

fn message(bundle: &Value) -> &str {
    ready_of(bundle)["message"].as_str().unwrap_or_default()
}

/// A home with the Bundle `app`, whose Deployment wants no pods, once it is ready.
fn ready() -> (Home, Value) {
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push_template(&repo, "latest", &deployment(0, ""));
    home.bundle("app", &repo, "latest", &json!({}));
    let bundle = home.wait_ready("app");
    (home, bundle)
}

impl Home {
    fn scale(&self, replicas: u8) {
        let flag = format!("--replicas={replicas}");
        self.namespace.kubectl(["scale", "deployment", "web", &flag]).unwrap();
    }
}

#[test]
fn a_bundle_is_ready_once_its_objects_work() {
    let _turn = operator().share();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push_template(&repo, "1.0.0", &deployment(1, ""));
    home.bundle("app", &repo, "1.*.*", &json!({}));
    let deployed = home.wait_for("app", |bundle| !bundle["status"]["deploy"]["digest"].is_null());
    assert_ne!(ready_of(&deployed)["status"], "True", "{deployed}");
    let rolling = home.wait_for("app", |bundle| message(bundle).contains("of 1 pods"));
    assert_eq!(ready_of(&rolling)["status"], "Unknown", "{rolling}");
    assert_eq!(ready_of(&rolling)["reason"], "RollingOut");
    let told = "1.0.0 is deployed, and on its way: Deployment web: ";
    assert!(message(&rolling).starts_with(told), "{rolling}");
    // The cause is a pod.
    home.wait_for("app", |bundle| message(bundle).contains("; web-"));
    push_template(&repo, "1.1.0", &deployment(1, "progressDeadlineSeconds: 2"));
    let failed = home.wait_for_reason("app", "NotHealthy");
    assert_eq!(ready_of(&failed)["status"], "False");
    let told =
        "1.1.0 is deployed, but not healthy: Deployment web: the rollout took longer than its deadline of 2 s; web-";
    assert!(message(&failed).starts_with(told), "{failed}");
    assert!(home.wait_for_event("app", "NotHealthy").starts_with(told));
    // The deploy itself did not fail.
    assert_eq!(failed["status"]["rollout"]["state"], "done");
    push_template(&repo, "1.2.0", &deployment(0, ""));
    let cured = home.wait_ready("app");
    assert_eq!(ready_of(&cured)["reason"], "Deployed");
    assert_eq!(message(&cured), "1.2.0 is deployed");
    // Nothing is deployed again for the sake of health.
    assert_eq!(cured["status"]["rollout"]["count"], 3);
}

#[test]
fn a_bundle_whose_objects_cease_to_work_is_not_ready() {
    let _turn = operator().alone();
    let (home, _) = ready();
    home.scale(1);
    home.wait_for_reason("app", "RollingOut");
    // The Deployment itself never gives up, because it was complete once.
    operator().configure(&json!({"timeout": 10}));
    let failed = home.wait_for_reason("app", "NotHealthy");
    assert!(
        message(&failed).contains("Deployment web: 0 of 1 pods are available; web-"),
        "{failed}"
    );
    operator().configure(&json!({}));
    home.scale(0);
    home.wait_ready("app");
    assert_eq!(home.wait_for_event("app", "Healthy"), "latest is healthy again");
    home.namespace.kubectl(["delete", "deployment", "web"]).unwrap();
    let gone = home.wait_for_reason("app", "RollingOut");
    assert!(message(&gone).ends_with("Deployment web: it is absent"), "{gone}");
}

/// All states of the condition Ready of the Bundle `app` from a moment on.
struct Seen {
    file: tempfile::NamedTempFile,
    _watch: Bound,
}

impl Seen {
    /// Begins after this state of the Bundle.
    fn begin(home: &Home, bundle: &Value) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = format!(
            "/apis/operator.werf.dev/v1/namespaces/{}/bundles?watch=true&resourceVersion={}&fieldSelector=metadata.name%3Dapp",
            home.name(),
            bundle["metadata"]["resourceVersion"].as_str().unwrap()
        );
        let mut watch = process::command(shared::program(Part::Kubectl));
        watch
            .args(["get", "--raw", &path])
            .env("KUBECONFIG", home.namespace.kubeconfig(User::Admin))
            .stdout(file.reopen().unwrap());
        Self {
            file,
            _watch: Bound::start(watch, Bond::Group).unwrap(),
        }
    }

    fn states(&self) -> Vec<String> {
        let text = fs_err::read_to_string(self.file.path()).unwrap();
        let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let states = whole.map(|event| {
            ready_of(&event["object"])["status"]
                .as_str()
                .unwrap_or("none")
                .to_owned()
        });
        states.collect()
    }
}

#[test]
fn a_look_that_is_forbidden_changes_no_readiness() {
    let _turn = operator().share();
    let (home, bundle) = ready();
    let seen = Seen::begin(&home, &bundle);
    let binding = format!("{}-werf", home.name());
    home.namespace.kubectl(["delete", "rolebinding", &binding]).unwrap();
    let blind = home.wait_for("app", |bundle| message(bundle).contains("could not be seen"));
    assert!(
        message(&blind).starts_with("latest is deployed; its health could not be seen: "),
        "{blind}"
    );
    assert!(message(&blind).contains("forbidden"), "{blind}");
    // The time alone would not do: a hook that has not seen its last write yet repeats it with its own time.
    let states = seen.states();
    assert!(
        !states.is_empty() && states.iter().all(|state| state == "True"),
        "{states:?}"
    );
    home.admit(home.name(), "werf");
    home.wait_for("app", |bundle| message(bundle) == "latest is deployed");
}

#[test]
fn objects_that_a_job_has_deployed_are_looked_at() {
    let _turn = operator().share();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push_template(&repo, "1.0.0", &deployment(1, ""));
    home.bundle("app", &repo, "1.*.*", &json!({"runner": "job"}));
    let job = super::jobs::next_job(&home, &[]);
    // As werf does in the pod of the Job.
    let chart = tempfile::tempdir().unwrap();
    fs_err::create_dir(chart.path().join("templates")).unwrap();
    fs_err::write(
        chart.path().join("Chart.yaml"),
        "apiVersion: v2\nname: app\nversion: 1.0.0\n",
    )
    .unwrap();
    fs_err::write(
        chart.path().join("templates/all.yaml"),
        deployment(1, "progressDeadlineSeconds: 2"),
    )
    .unwrap();
    let mut helm = process::command(shared::program(Part::Helm3));
    let user = User::Admin;
    helm.args(["install", "app", "--namespace", home.name()])
        .arg(chart.path())
        .env("HOME", chart.path())
        .env("KUBECONFIG", home.namespace.kubeconfig(user));
    let output = process::run(helm, None).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    super::jobs::end(&home, &job, "Complete");
    let failed = home.wait_for_reason("app", "NotHealthy");
    assert!(
        message(&failed).starts_with("1.0.0 is deployed, but not healthy: Deployment web: "),
        "{failed}"
    );
    home.scale(0);
    home.wait_ready("app");
}
