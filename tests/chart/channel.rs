//! The image of a Deployment whose operator follows a channel. The values name one version, the channel has since moved
//! to another, and helm has to combine the two. The test sends the two patches that the channel would send.
#![expect(clippy::unwrap_used, reason = "a test may")]

use serde_json::{Value, json};
use testbed::part::Part;

use super::stage::Stage;
use super::tool::{HELMS, objects, rendered, root};

const DEPLOYMENT: &str = "ao-addon-operator";
const REPOSITORY: &str = "registry.example.com/addon-operator";
const MANAGER: &str = "addon-operator-channel";
const ON: &str = "--set=channel.enabled=true";

fn digest(letter: char) -> String {
    format!("sha256:{}", letter.to_string().repeat(64))
}

/// The image of the operator's container and the annotation with the chart's image, in the rendered manifests.
fn of_rendering(values: &[String]) -> (String, Option<String>) {
    let values: Vec<String> = values.iter().map(|value| format!("--set={value}")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let all = HELMS.map(|helm| objects(&rendered(helm, &values)));
    let [three, four] = all.map(|all| {
        let deployment = all.into_iter().find(|object| object["kind"] == "Deployment").unwrap();
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        let note = &deployment["metadata"]["annotations"]["addon-operator/chart-image"];
        (image.as_str().unwrap().to_owned(), note.as_str().map(str::to_owned))
    });
    assert_eq!(three, four);
    three
}

/// Rendered without a cluster to look into, as by Argo CD.
#[test]
fn an_image_is_called_by_all_that_the_values_say_of_it() {
    let (tag, digest) = ("image.tag=stable".to_owned(), format!("image.digest={}", digest('a')));
    let rows = [
        (vec![], format!(":{}", env!("CARGO_PKG_VERSION"))),
        (vec![tag.clone()], ":stable".to_owned()),
        (vec![digest.clone()], format!("@sha256:{}", "a".repeat(64))),
        (vec![tag, digest], format!(":stable@sha256:{}", "a".repeat(64))),
    ];
    for (said, end) in rows {
        let image = format!("{REPOSITORY}{end}");
        assert_eq!(of_rendering(&said), (image.clone(), None), "{said:?}");
        let on = [said, vec!["channel.enabled=true".to_owned()]].concat();
        assert_eq!(of_rendering(&on), (image.clone(), Some(image)), "{on:?}");
    }
}

fn deployment(stage: &Stage) -> Value {
    let found = stage.kubectl(&format!(
        "get deployment {DEPLOYMENT} --show-managed-fields --output=json"
    ));
    serde_json::from_str(&found).unwrap()
}

/// The index of the operator's container in the Deployment.
fn place(deployment: &Value) -> usize {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    containers
        .iter()
        .position(|one| one["name"] == "addon-operator")
        .unwrap()
}

fn image(stage: &Stage) -> String {
    let deployment = deployment(stage);
    let ours = &deployment["spec"]["template"]["spec"]["containers"][place(&deployment)];
    ours["image"].as_str().unwrap().to_owned()
}

fn annotation(stage: &Stage, name: &str) -> Option<String> {
    let found = &deployment(stage)["metadata"]["annotations"][name];
    found.as_str().map(str::to_owned)
}

fn patch(stage: &Stage, patch: &Value) {
    let (manager, patch) = (format!("--field-manager={MANAGER}"), format!("--patch={patch}"));
    let words = ["patch", "deployment", DEPLOYMENT, "--type=json", &manager, &patch];
    stage.namespace.kubectl(words).unwrap();
}

/// Sends the patches of a channel whose version has passed: the image, and the removal of the field's old manager.
fn reach(stage: &Stage, to: &str) {
    let now = deployment(stage);
    let path = format!("/spec/template/spec/containers/{}/image", place(&now));
    let from = image(stage);
    patch(
        stage,
        &json!([
            {"op": "test", "path": path, "value": from},
            {"op": "replace", "path": path, "value": to},
            {"op": "add", "path": "/metadata/annotations/addon-operator~1former-image", "value": from},
        ]),
    );
    let now = deployment(stage);
    let managers = now["metadata"]["managedFields"].as_array().unwrap();
    let at = managers.iter().position(|entry| entry["manager"] == MANAGER).unwrap();
    patch(
        stage,
        &json!([
            {"op": "test", "path": format!("/metadata/managedFields/{at}/manager"), "value": MANAGER},
            {"op": "remove", "path": format!("/metadata/managedFields/{at}")},
        ]),
    );
    assert_eq!(image(stage), to);
}

/// The values that name this version by tag and digest.
fn values(letter: char) -> String {
    format!("--set=image.tag=stable,image.digest={}", digest(letter))
}

fn named(letter: char) -> String {
    format!("{REPOSITORY}:stable@{}", digest(letter))
}

fn installed(prefix: &str, helm: Part) -> Stage {
    let stage = Stage::build(prefix, helm);
    stage.chart("install", &[&values('a'), ON]);
    assert_eq!(image(&stage), named('a'));
    stage
}

#[test]
fn an_upgrade_with_the_same_values_keeps_the_version_that_the_channel_has_reached() {
    for helm in HELMS {
        let stage = installed("reached", helm);
        reach(&stage, &named('b'));
        stage.chart("upgrade", &[&values('a'), ON, "--set=podLabels.team=blue"]);
        assert_eq!(image(&stage), named('b'), "{helm}: something else was changed");
        let labels = &deployment(&stage)["spec"]["template"]["metadata"]["labels"];
        assert_eq!(labels["team"], "blue");
        stage.chart("upgrade", &["--reset-then-reuse-values", "--set=replicas=1"]);
        assert_eq!(image(&stage), named('b'), "{helm}: the values of before");
        reach(&stage, &named('c'));
        stage.chart("upgrade", &["--reset-then-reuse-values"]);
        assert_eq!(image(&stage), named('c'), "{helm}: a second version");
        let note = annotation(&stage, "addon-operator/chart-image");
        assert_eq!(note, Some(named('a')), "{helm}: what the values say");
        let former = annotation(&stage, "addon-operator/former-image");
        assert_eq!(former, Some(named('b')), "{helm}: what the channel noted stays");
    }
}

#[test]
fn other_values_win_over_the_channel() {
    for helm in HELMS {
        let stage = installed("other", helm);
        reach(&stage, &named('b'));
        stage.chart("upgrade", &[&values('d'), ON]);
        assert_eq!(image(&stage), named('d'), "{helm}: another digest");
        assert_eq!(annotation(&stage, "addon-operator/chart-image"), Some(named('d')));
        reach(&stage, &named('e'));
        stage.chart("upgrade", &[&values('d')]);
        assert_eq!(image(&stage), named('d'), "{helm}: the channel is off");
        assert_eq!(annotation(&stage, "addon-operator/chart-image"), None);
        stage.chart("upgrade", &[&values('d'), ON]);
        assert_eq!(image(&stage), named('d'), "{helm}: it is on again");
    }
}

/// Other programs add containers beside the operator's. A Deployment of an older chart has no annotation.
#[test]
fn our_container_is_found_by_its_name_and_without_a_note_the_values_count() {
    for helm in HELMS {
        let stage = installed("beside", helm);
        let first = json!({"name": "aside", "image": "registry.example.com/aside:1"});
        patch(
            &stage,
            &json!([{"op": "add", "path": "/spec/template/spec/containers/0", "value": first}]),
        );
        reach(&stage, &named('b'));
        assert_eq!(place(&deployment(&stage)), 1);
        stage.chart("upgrade", &[&values('a'), ON, "--set=replicas=1"]);
        assert_eq!(image(&stage), named('b'), "{helm}: not that of the other one");
        stage.kubectl(&format!("annotate deployment {DEPLOYMENT} addon-operator/chart-image-"));
        stage.chart("upgrade", &[&values('a'), ON]);
        assert_eq!(image(&stage), named('a'), "{helm}: nothing is noted");
        stage.kubectl(&format!("delete deployment {DEPLOYMENT}"));
        stage.chart("upgrade", &[&values('a'), ON]);
        assert_eq!(image(&stage), named('a'), "{helm}: there is no Deployment");
    }
}

/// Modules from registries need them, too.
#[test]
fn keys_and_ways_to_registries_are_given_while_the_channel_is_off() {
    let most = format!("--values={}", root().join("tests/chart/values/most.yaml").display());
    for helm in HELMS {
        let all = objects(&rendered(helm, &[&most, "--set=channel.enabled=false"]));
        assert!(all.iter().any(|object| {
            object["kind"] == "ConfigMap" && object["metadata"]["name"] == "keeper-verification-keys"
        }));
        let deployment = all.into_iter().find(|object| object["kind"] == "Deployment").unwrap();
        let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
        let names = env
            .as_array()
            .unwrap()
            .iter()
            .map(|variable| variable["name"].as_str().unwrap());
        let prefixes = [
            "ADDON_OPERATOR_CHANNEL",
            "ADDON_OPERATOR_VERIFICATION",
            "ADDON_OPERATOR_NOTIFY",
        ];
        let names: Vec<&str> = names
            .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
            .collect();
        let expected = ["", "_MIRRORS", "_PLAIN_HTTP", "_CA"].map(|end| format!("ADDON_OPERATOR_CHANNEL{end}"));
        assert_eq!(names[..4], expected);
        assert_eq!(names[4..], ["ADDON_OPERATOR_VERIFICATION_KEYS"]);
    }
}
