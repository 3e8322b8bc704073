//! Releases with kinds that Kubernetes or a CRD calls deprecated: people are told before the kinds are gone, and after.

use addon_core::release::kinds::KindName;
use releases::revisions::{self, unserved};
use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{CONVERGED, Stage, assert_says};
use super::world::{CHART, PATIENCE, World, with_each_helm};

/// A CRD of Widgets whose version v1beta1 is deprecated.
fn crd(group: &str, is_beta_served: bool) -> String {
    let version = |name: &str, served: bool| {
        json!({
            "name": name,
            "served": served,
            "deprecated": name == "v1beta1",
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [version("v1beta1", is_beta_served), version("v1", true)],
        },
    });
    crd.to_string()
}

/// A template with Endpoints, Endpoints of a helm hook, and a Widget.
fn template(group: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Endpoints\nmetadata: {{name: old}}\n---\n\
         apiVersion: v1\nkind: Endpoints\nmetadata: {{name: hooked, annotations: {{helm.sh/hook: post-install}}}}\n---\n\
         apiVersion: {group}/v1beta1\nkind: Widget\nmetadata: {{name: w}}\n"
    )
}

/// Applies the CRD, and waits until the API server serves a version of it, or does not.
fn serve(stage: &Stage, group: &str, is_beta_served: bool) {
    let admin = stage.namespace().kubectl_as(User::Admin);
    admin
        .feed(["apply", "--filename=-"], &crd(group, is_beta_served))
        .unwrap();
    for (version, is_served) in [("v1", true), ("v1beta1", is_beta_served)] {
        let path = format!("/apis/{group}/{version}");
        let look = || {
            let listed = stage.namespace().kubectl(["get", "--raw", &path]);
            let listed = listed.unwrap_or_else(|error| format!("{error:#}"));
            let is_there = listed.contains("\"Widget\"");
            if is_there == is_served {
                Ok(Some(()))
            } else {
                Err(listed)
            }
        };
        wait_until(PATIENCE, &format!("{path} is served: {is_served}"), look).unwrap();
    }
}

fn series(api_version: &str, kind: &str, state: &str) -> String {
    format!(
        "addon_operator_module_outdated_objects{{api_version=\"{api_version}\",kind=\"{kind}\",module=\"victim\",state=\"{state}\"}} 1\n"
    )
}

#[test]
fn kinds_are_told_before_they_are_gone_and_their_rewritten_record_after() {
    const TEMPLATE: &str = "modules/020-victim/templates/old.yaml";
    let stage = Stage::build("outdated");
    let group = format!("{}.example.com", stage.namespace().name());
    let beta = format!("{group}/v1beta1");
    serve(&stage, &group, true);
    stage.write(TEMPLATE, &template(&group));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let (endpoints, widget) = (
        series("v1", "Endpoints", "deprecated"),
        series(&beta, "Widget", "deprecated"),
    );
    operator.wait_for_answer("/metrics", 200, &[&endpoints, &widget]);

    let shown = operator.ask("module apis");
    let told = format!("use {group}/v1 Widget; the API server says: {beta} Widget is deprecated");
    assert_says(
        &shown,
        &[
            "victim.v1",
            "change the chart, which still renders it; use discovery.k8s.io/v1 EndpointSlice",
            &told,
            "2 outdated for Kubernetes 1.",
        ],
    );
    let report: Value = serde_json::from_str(&operator.ask("module apis -o json")).unwrap();
    let first = &report["outdated"][1];
    let facts = ["kind", "objects", "deprecated", "gone"].map(|key| first[key].clone());
    assert_eq!(
        facts,
        [json!("Endpoints"), json!(2), json!("1.33"), Value::Null],
        "{report}"
    );
    let fine = operator.ask("module apis --target 1.20");
    assert_says(
        &fine,
        &[
            "All fine for Kubernetes 1.20: looked at 3 kinds in 2 releases",
            "leave out --target",
        ],
    );
    let refused = operator.ask_in_vain("module apis --target latest");
    assert_says(&refused, &["'latest' is no version of Kubernetes"]);

    // The chart on disk is mended, and the release is not upgraded yet.
    let mended = format!("apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: w}}\n");
    stage.write(TEMPLATE, &mended);
    assert_says(
        &operator.ask("module apis"),
        &["none: the chart does not render it any more"],
    );

    serve(&stage, &group, false);
    let look = || {
        let shown = operator.try_ask("module apis");
        let is_told = shown.contains("gone ") && shown.contains("error: not all releases are fit for Kubernetes 1.");
        if is_told { Ok(Some(())) } else { Err(shown) }
    };
    wait_until(PATIENCE, "the Widget's version is gone", look).unwrap();
    // A change of any release is the occasion of a new judgement.
    stage.configure(&json!({"good": "size: large"}));
    operator.wait_for_answer("/metrics", 200, &[&series(&beta, "Widget", "gone"), &endpoints]);

    operator.ask("module reload victim");
    operator.wait_for_event("RecordAmended");
    let look = || {
        let why = operator.ask("module why victim");
        if why.contains("state: Ready") {
            Ok(Some(why))
        } else {
            Err(why)
        }
    };
    let why = wait_until(PATIENCE, "the module is ready", look).unwrap();
    let moved = format!("Widget/w of {beta} (now {group}/v1)");
    assert_says(
        &why,
        &[
            "record of revision 1 rewritten",
            &moved,
            "sh.helm.release.v1.victim.v1.before",
        ],
    );
    let status: Value = serde_json::from_str(&operator.ask("module why victim -o json")).unwrap();
    assert_eq!(status["amended"][0]["revision"], 1, "{status}");
    let look = || {
        let page = operator.get("/metrics").1;
        if page.contains("module_outdated_objects{") {
            Err(page)
        } else {
            Ok(Some(()))
        }
    };
    wait_until(PATIENCE, "no outdated kind is left", look).unwrap();
    operator.stop();
    stage.kubectl(&format!("delete crd widgets.{group}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_each_helm_tells_its_kinds_with_those_of_hooks() {
    with_each_helm(async |helm: Part| {
        let mut world = World::with("uses", helm).await;
        let template = template("x.example.com").rsplit_once("---\n").unwrap().0.to_owned();
        let files = [("Chart.yaml", CHART), ("templates/a.yaml", template.as_str())];
        world.module("one", &files).await;
        world.sync(json!({})).await.unwrap();
        let cluster = &world.tools.ground.cluster;
        let deployed = revisions::deployed_revisions(cluster).await.unwrap();
        let uses = unserved::uses(cluster, &deployed[0]).await.unwrap();
        let used: Vec<_> = uses.iter().map(|(kind, used)| (kind.clone(), used.objects)).collect();
        assert_eq!(used, [(KindName::new("v1", "Endpoints"), 2)]);
        world.delete().await.unwrap();
    })
    .await;
}
