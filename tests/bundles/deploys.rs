//! The versions that a Bundle follows, and the settings of its deploys.

use serde_json::json;
use testbed::part::Part;
use testbed::process;
use testbed::shared;

use super::world::{Home, operator, push, ready_of, registry, untag};

#[test]
fn a_published_bundle_is_deployed_and_follows_its_tag() {
    let _turn = operator().share();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    let first = push(&repo, "latest", "one");
    // Only the required fields: the version is `latest`.
    home.apply(
        &json!({"apiVersion": "operator.werf.dev/v1", "kind": "Bundle", "metadata": {"name": "app"},
        "spec": {"registry": registry(), "repo": repo}}),
    );
    let bundle = home.wait_ready("app");
    home.wait_for_text("app", "one");
    let status = &bundle["status"];
    assert_eq!(status["ready"], 1);
    assert_eq!(status["deploy"], json!({"digest": first, "version": "latest"}));
    assert_eq!(status["target"], status["deploy"]);
    assert_eq!(bundle["spec"]["version"], "latest");
    let line = home.namespace.kubectl(["get", "bndl", "--no-headers"]).unwrap();
    let columns: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(columns, ["app", registry(), &repo, "latest", "latest", &first]);
    assert_eq!(home.wait_for_event("app", "Update"), "latest is being deployed");
    assert_eq!(home.wait_for_event("app", "Deployed"), "latest is deployed");
    // A moved tag is a new digest.
    let second = push(&repo, "latest", "two");
    home.wait_for_text("app", "two");
    home.wait_for("app", |bundle| bundle["status"]["deploy"]["digest"] == second.as_str());
}

#[test]
fn masks_ranges_and_pre_releases_are_followed_up_and_never_down() {
    let _turn = operator().share();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    for tag in ["1.2.9", "1.2.10", "1.3.0", "2.0.0-rc.1"] {
        push(&repo, tag, tag);
    }
    let versions = [
        ("mask", "1.2.*", "1.2.10"),
        ("any", "v1.*.*", "1.3.0"),
        ("range", ">=1.2 <1.3", "1.2.10"),
        ("asked", "2.*.*-rc.*", "2.0.0-rc.1"),
        ("tag", "1.2.9", "1.2.9"),
    ];
    for (name, version, _) in versions {
        home.bundle(name, &repo, version, &json!({}));
    }
    for (name, _, chosen) in versions {
        assert_eq!(home.wait_ready(name)["status"]["deploy"]["version"], chosen, "{name}");
        home.wait_for_text(name, chosen);
    }
    push(&repo, "1.3.1", "1.3.1");
    home.wait_for_text("any", "1.3.1");
    // The registry loses tags.
    untag(&repo, "1.3.1");
    untag(&repo, "1.3.0");
    let kept = home.wait_for_reason("any", "Kept");
    assert_eq!(kept["status"]["deploy"]["version"], "1.3.1");
    let message = ready_of(&kept)["message"].as_str().unwrap();
    assert!(
        message.contains("shows only 1.2.10 of 'v1.*.*' now, which is lower than 1.3.1"),
        "{message}"
    );
    assert!(home.wait_for_event("any", "Kept").starts_with("1.3.1 stays: "));
    home.wait_for_text("any", "1.3.1");
    // A repository of other tags in its place is no reason to go down, either.
    let less = format!("{}/less", home.name());
    push(&less, "1.2.0", "1.2.0");
    home.bundle("any", &less, "v1.*.*", &json!({}));
    home.wait_for("any", |bundle| {
        ready_of(bundle)["message"]
            .as_str()
            .is_some_and(|message| message.contains("shows only 1.2.0 of"))
    });
    home.wait_for_text("any", "1.3.1");
    // An edit of the version that leaves the running one out asks for less.
    home.bundle("any", &less, "1.2.*", &json!({}));
    home.wait_for_text("any", "1.2.0");
}

#[test]
fn values_environment_and_namespace_of_the_release_are_those_of_the_spec() {
    let _turn = operator().share();
    let (home, project) = (Home::new(), Home::without_account());
    project.admit(home.name(), "werf");
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    let values = |more: &str| {
        home.apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values"},
            "data": {"a.yaml": "more: a", "b.yaml": format!("more: {more}")}}),
        );
    };
    values("-b");
    let spec = json!({"values": "values", "project_namespace": project.name()});
    home.bundle("app", &repo, "latest", &spec);
    project.wait_for_text("app", "one-b");
    let ready = home.wait_ready("app");
    let records = project
        .namespace
        .kubectl(["get", "secrets", "--selector=owner=helm,name=app", "--no-headers"])
        .unwrap();
    assert_eq!(records.lines().count(), 1, "{records}");
    // Other data of the ConfigMap ask for one deploy.
    values("-c");
    project.wait_for_text("app", "one-c");
    home.wait_for("app", |bundle| {
        bundle["status"]["forceUpdate"] == 0 && bundle["status"]["rollout"]["count"] == 2
    });
    assert_eq!(home.wait_ready("app")["status"]["deploy"], ready["status"]["deploy"]);
    // An edit of the environment is a new deploy.
    let spec = json!({"values": "values", "project_namespace": project.name(), "env": {"WERF_SET_MORE": "more=-d"}});
    home.bundle("app", &repo, "latest", &spec);
    project.wait_for_text("app", "one-d");
    home.wait_ready("app");
}

#[test]
fn force_update_asks_for_one_deploy_and_an_annotation_pauses() {
    let _turn = operator().share();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push(&repo, "latest", "one");
    home.bundle("app", &repo, "latest", &json!({}));
    home.wait_ready("app");
    home.namespace.kubectl(["delete", "configmap", "app"]).unwrap();
    let patch = [
        "patch",
        "bndl",
        "app",
        "--type=merge",
        "--patch",
        r#"{"status": {"forceUpdate": 1}}"#,
    ];
    home.namespace.kubectl(patch).unwrap();
    home.wait_for_text("app", "one");
    home.wait_for("app", |bundle| {
        bundle["status"]["forceUpdate"] == 0 && bundle["status"]["rollout"]["count"] == 2
    });
    home.wait_ready("app");
    let annotate = |annotation: &str| {
        home.namespace.kubectl(["annotate", "bndl", "app", annotation]).unwrap();
    };
    annotate("operator.werf.dev/disable-autoupdate=");
    home.wait_for_reason("app", "Paused");
    push(&repo, "latest", "two");
    // A second Bundle, which is asked about later, is deployed before the first one is let go on.
    home.bundle("other", &repo, "latest", &json!({}));
    home.wait_for_text("other", "two");
    home.wait_ready("other");
    home.wait_for_text("app", "one");
    annotate("operator.werf.dev/disable-autoupdate-");
    home.wait_for_text("app", "two");
}

#[test]
fn a_chart_that_helm_pushes_is_a_bundle() {
    let _turn = operator().share();
    let home = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let helm = |arguments: &[&str]| {
        let mut command = process::command(shared::program(Part::Helm3));
        command
            .args(arguments)
            .env("HOME", folder.path())
            .current_dir(folder.path());
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    helm(&["create", "plain"]);
    helm(&["package", "plain"]);
    helm(&[
        "push",
        "plain-0.1.0.tgz",
        &format!("oci://{}/{}", registry(), home.name()),
        "--plain-http",
    ]);
    home.bundle("web", &format!("{}/plain", home.name()), "0.1.*", &json!({}));
    // No pod starts here.
    home.wait_for_reason("web", "RollingOut");
    assert!(home.namespace.object("deployment", "web-plain").unwrap().is_some());
}

#[test]
fn the_api_server_refuses_a_spec_that_is_none() {
    let _turn = operator().share();
    let home = Home::new();
    let refused = |spec: &serde_json::Value| {
        let bundle =
            json!({"apiVersion": "operator.werf.dev/v1", "kind": "Bundle", "metadata": {"name": "app"}, "spec": spec});
        home.try_apply(&bundle).unwrap_err().to_string()
    };
    for (spec, why) in [
        (json!({"repo": "a"}), "spec.registry: Required value"),
        (json!({"registry": "a"}), "spec.repo: Required value"),
        (json!({"registry": "a", "repo": "b", "auth": "--as=admin"}), "spec.auth"),
        (
            json!({"registry": "a", "repo": "b", "runner": "shell"}),
            "spec.runner: Unsupported value",
        ),
    ] {
        let error = refused(&spec);
        assert!(error.contains(why), "{spec}: {error}");
    }
    // A repository that cannot be one, and a version that is none, are told in the condition.
    home.bundle("odd", "Shop/App", "latest", &json!({}));
    let odd = home.wait_for_reason("odd", "CheckFailed");
    assert!(
        ready_of(&odd)["message"]
            .as_str()
            .unwrap()
            .contains("should be the path of a repository"),
        "{odd}"
    );
    home.bundle("odd", "shop/app", ">=1.4<2", &json!({}));
    home.wait_for("odd", |bundle| {
        ready_of(bundle)["message"]
            .as_str()
            .is_some_and(|text| text.contains("is neither a tag nor"))
    });
}
