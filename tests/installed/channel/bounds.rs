//! Situations in which no version is tried: outside of the maintenance windows, without a needed right, and without a
//! Deployment.
#![expect(clippy::unwrap_used, reason = "a test may")]

use jiff::civil::Weekday;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};
use testbed::plane::ControlPlane;

use super::followed::{ALONE, Change, Followed};
use crate::installed::stage::{DEPLOYMENT, Image};

/// The name of a pod that has the Deployment's template and no owner.
const ORPHAN: &str = "orphan";

/// Maintenance windows that cover these days of the week completely.
fn windows(days: &[Weekday]) -> String {
    let names = days.iter().map(|day| match day {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    });
    let names = names.collect::<Vec<_>>().join(", ");
    format!("windows: [{{days: [{names}], from: \"00:00\", to: \"24:00\"}}]\n")
}

/// A version waits for a maintenance window, even if it is approved, and is adopted when one opens.
pub(super) fn a_version_waits_for_its_window(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let first = followed.first.clone();
    let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let day = |later: i64| (today + later.days()).weekday();
    // Days that do not begin during this test.
    followed.edit("releasePolicy", &windows(&[day(3), day(4)]));
    let version = followed.push("0.2.0", &Change::default());
    followed.check();
    followed.wait_for("a version that waits", || followed.waits() == ["window"]);
    let opens = (today + 3.days()).to_string();
    let status = followed.status();
    assert!(status.to_string().contains(&opens), "{opens}: {status:#}");

    followed.edit("releaseApproved", &version);
    followed.wait_for("the approval", || followed.status()["approved"] == json!([version]));
    for _ in 0..3 {
        followed.check();
    }
    assert_eq!(followed.waits(), ["window"]);
    assert!(followed.trial_pod().is_none() && followed.names(&first));

    followed.edit("releasePolicy", &windows(&[day(0), day(1)]));
    followed.wait_until_at_rest_with(&version);
}

/// Without a Deployment or without a right, the status names the lack and nothing is tried. With both, the version is
/// adopted.
pub(super) fn nothing_is_tried_without_a_deployment_or_a_right(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, ALONE);
    let (stage, first) = (&followed.stage, followed.first.clone());
    let version = {
        let deployment = stage.json(&format!("get deployment {DEPLOYMENT}"));
        stage.kubectl(&format!("scale deployment {DEPLOYMENT} --replicas=0"));
        followed.wait_for("an end of all pods", || stage.pods().is_empty());
        stage.apply(&orphan(&deployment).to_string());
        followed.wait_for("the pod to lead", || followed.leader().as_deref() == Some(ORPHAN));
        followed.wait_for("a channel that is off", || followed.state() == "off");
        let why = followed.status()["why"].to_string();
        assert!(
            why.contains("our pod belongs to nothing, and so to no Deployment"),
            "{why}"
        );
        let version = followed.push("0.2.0", &Change::default());
        followed.check();
        assert!(followed.trial_pod().is_none() && followed.names(&first));
        version
    };
    let rules = stage.json(&format!("get role {DEPLOYMENT}"))["rules"].clone();
    let of_pods = |rule: &&Value| rule["resources"] != json!(["pods"]);
    let fewer: Vec<_> = rules.as_array().unwrap().iter().filter(of_pods).collect();
    grant(&followed, &json!(fewer));
    stage.kubectl(&format!("delete pod {ORPHAN}"));
    stage.kubectl(&format!("scale deployment {DEPLOYMENT} --replicas=1"));
    let right = "allow the verb 'get' on 'pods'";
    followed.wait_for("a status that names the right", || {
        let status = followed.status();
        status["state"] == "off" && status["why"].to_string().contains(right)
    });
    followed.check();
    assert!(followed.trial_pod().is_none() && followed.names(&first));
    grant(&followed, &rules);
    followed.wait_until_at_rest_with(&version);
}

/// A pod as the Deployment would make it, but without an owner.
fn orphan(deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
        "metadata": {
            "name": ORPHAN, "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
        },
    })
}

/// Gives the operator's account these rights in its namespace.
fn grant(followed: &Followed<'_>, rules: &Value) {
    let patch = format!("--patch={}", json!({ "rules": rules }));
    let words = ["patch", "role", DEPLOYMENT, "--type=merge", &patch];
    followed.stage.namespace.kubectl(words).unwrap();
}
