//! The operator follows its own image: versions are pushed to the registry of the cluster, tried beside the old one, and taken or
//! sent away.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::time::Duration;

use serde_json::{Value, json};
use testbed::part::Part;
use testbed::registry::push::Repository;
use testbed::wait::wait_until;
use tokio::runtime::Runtime;

use super::stage::{DEPLOYMENT, Image, LEASE, Stage, start};

/// A version leads for a minute before it is taken.
const TRIAL: Duration = Duration::from_mins(6);
const TAG: &str = "stable";

/// The versions that a test pushes, all of one image.
struct Versions {
    repository: Repository,
    runtime: Runtime,
    first: String,
}

impl Versions {
    fn of(image: &Image, registry: &str) -> Self {
        Self {
            repository: Repository::at(registry, "addon-operator"),
            runtime: Runtime::new().unwrap(),
            first: image.digest.clone(),
        }
    }

    /// Moves the tag to another version; its configuration is altered in that way.
    fn push(&self, version: &str, alter: impl FnOnce(&mut Value)) -> String {
        let change = |config: &mut Value, notes: &mut Value| {
            notes["org.opencontainers.image.version"] = json!(version);
            let variables = config["Env"].as_array_mut();
            variables.unwrap().push(json!(format!("OF_VERSION={version}")));
            alter(config);
        };
        self.runtime.block_on(self.repository.derive(&self.first, TAG, change))
    }
}

fn in_leader(stage: &Stage<'_>, command: &[&str]) -> Option<String> {
    let leader = stage.leader();
    let mut words = vec!["exec", &leader, "--", "addon-operator"];
    words.extend(command);
    stage.namespace.kubectl(words).ok()
}

/// Has the registry asked now: without that it would be a minute later.
fn check(stage: &Stage<'_>) {
    in_leader(stage, &["channel", "check"]);
}

fn status(stage: &Stage<'_>) -> Value {
    // A pod that is just being replaced says nothing.
    let said = in_leader(stage, &["channel", "status", "-o", "json"]);
    said.and_then(|said| serde_json::from_str(&said).ok())
        .unwrap_or_default()
}

/// The page of the pod that leads.
fn metrics(stage: &Stage<'_>) -> String {
    let pod = format!("/api/v1/namespaces/{}/pods/{}", stage.namespace.name(), stage.leader());
    let page = stage
        .namespace
        .kubectl(["get", "--raw", &format!("{pod}:9650/proxy/metrics")]);
    page.unwrap_or_default()
}

/// The image that the Deployment names.
fn image(stage: &Stage<'_>) -> String {
    let path = "{.spec.template.spec.containers[0].image}";
    stage.kubectl(&format!("get deployment {DEPLOYMENT} --output=jsonpath={path}"))
}

fn wait_for(stage: &Stage<'_>, what: &str, is_so: impl Fn() -> Result<bool, String>) {
    let look = || match is_so() {
        Ok(true) => Ok(Some(())),
        Ok(false) => Err(evidence(stage)),
        Err(why) => Err(why),
    };
    let waited = wait_until(TRIAL, what, look);
    assert!(waited.is_ok(), "{}\n{}", waited.unwrap_err(), stage.logs());
}

fn evidence(stage: &Stage<'_>) -> String {
    let said = stage
        .namespace
        .kubectl(["get", "pods,replicasets,deployments", "--output=wide"]);
    let lease = stage.namespace.kubectl(["get", "lease", LEASE, "--output=yaml"]);
    let shown =
        |said: Result<String, _>| said.unwrap_or_else(|error: testbed::kubectl::KubectlError| error.to_string());
    format!("{}\n{}\n{}", image(stage), shown(said), shown(lease))
}

/// Nothing of a trial is left, and a pod of the Deployment leads.
fn is_at_rest(stage: &Stage<'_>) -> bool {
    let sets = stage.kubectl("get replicasets --output=name");
    let lease = stage.json(&format!("get lease {LEASE}"));
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let is_free = lease["metadata"]["annotations"]["addon-operator/entitled"].is_null();
    !sets.contains("-trial") && is_free && !holder.is_empty() && !holder.contains("-trial-")
}

#[test]
fn a_channel_is_followed_and_left_as_it_was_when_a_version_is_bad() {
    let plane = start();
    let image_of_test = Image::push(&plane);
    let versions = Versions::of(&image_of_test, plane.registry().unwrap());
    let first = versions.push("0.1.0", |_| {});
    let registry = plane.registry_of_pods().unwrap();
    let stage = Stage::build(&plane, image_of_test);
    stage.make_account("guest");
    let repository = format!("{registry}/addon-operator");
    let plain = format!("channel.plainHttp={{{registry}}}");
    let values = ["channel.enabled=true", &plain];
    stage.install_image(Part::Helm3, &[("repository", &repository), ("tag", TAG)], &values);
    stage.wait_until_it_says("module list -o wide", &["greeter", "reviews", "Ready"]);

    // The digest of the running version is named before anything else: a pod that starts anew would pull the untried.
    let of = |digest: &str| format!("{repository}:{TAG}@{digest}");
    wait_for(&stage, "the image to be pinned", || Ok(image(&stage) == of(&first)));
    wait_for(&stage, "an end of the rollout", || {
        Ok(status(&stage)["state"] == "up-to-date")
    });
    stage.roll_out();

    let info = r#"addon_operator_channel_info{available="",running="0.1.0",state="up-to-date"} 1"#;
    wait_for(&stage, "the metric that says so", || Ok(metrics(&stage).contains(info)));

    let revisions = stage.revisions();
    let good = versions.push("0.2.0", |_| {});
    check(&stage);
    wait_for(&stage, "a trial", || {
        Ok(stage.kubectl("get replicasets --output=name").contains("-trial"))
    });
    assert_eq!(
        image(&stage),
        of(&first),
        "the Deployment names no version that has not passed"
    );
    wait_for(&stage, "the good version in the Deployment", || {
        Ok(image(&stage) == of(&good))
    });
    wait_for(&stage, "the end of the trial", || Ok(is_at_rest(&stage)));
    stage.roll_out();
    assert_eq!(stage.revisions(), revisions, "nothing has changed for any module");
    wait_for(&stage, "peace", || Ok(status(&stage)["state"] == "up-to-date"));

    let bad = versions.push("0.3.0", |config| config["Entrypoint"] = json!(["/bin/false"]));
    check(&stage);
    wait_for(&stage, "a verdict on a version that crashes", || {
        Ok(!status(&stage)["failed"][&bad].is_null())
    });
    wait_for(&stage, "the end of the trial", || Ok(is_at_rest(&stage)));
    assert_eq!(image(&stage), of(&good));
    assert_eq!(stage.revisions(), revisions, "nothing has changed for any module");
    wait_for(&stage, "the bad version to be named as one that waits", || {
        Ok(status(&stage)["state"] == "waits")
    });
}
