//! Bundles with `runner: job`, up to the Job and the state that follows from its end. The image of werf is not run.

use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::world::{Home, PATIENCE, operator, push, ready_of};

fn jobs(home: &Home) -> Vec<Value> {
    home.namespace
        .objects("job", testbed::reader::Only::Labels("operator.werf.dev/bundle"))
        .unwrap()
}

/// Waits for a Job that is none of these.
pub(super) fn next_job(home: &Home, known: &[String]) -> Value {
    let name = |job: &Value| job["metadata"]["name"].as_str().unwrap().to_owned();
    let look = || {
        let all = jobs(home);
        match all.iter().find(|job| !known.contains(&name(job))) {
            Some(job) => Ok(Some(job.clone())),
            None => Err(format!("{} Jobs", all.len())),
        }
    };
    wait_until(PATIENCE, "a Job", look).unwrap()
}

/// Ends a Job as its controller does, once the controller has begun it.
pub(super) fn end(home: &Home, job: &Value, kind: &str) {
    let name = job["metadata"]["name"].as_str().unwrap();
    let begun = || {
        let status = home.namespace.object("job", name).unwrap().unwrap()["status"].take();
        Ok::<_, String>(status["startTime"].as_str().map(str::to_owned))
    };
    let now = wait_until(PATIENCE, "the Job has begun", begun).unwrap();
    let (before, counted) = if kind == "Complete" {
        ("SuccessCriteriaMet", "succeeded")
    } else {
        ("FailureTarget", "failed")
    };
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now, "reason": "Test",
            "message": "as the test says"})
    };
    let mut status = json!({"conditions": [condition(before), condition(kind)], "active": 0, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {}});
    status[counted] = json!(1);
    if kind == "Complete" {
        status["completionTime"] = json!(now);
    }
    let patch = json!({"status": status}).to_string();
    let patch = [
        "patch",
        "job",
        name,
        "--subresource=status",
        "--type=merge",
        "--patch",
        &patch,
    ];
    home.namespace.kubectl(patch).unwrap();
}

#[test]
fn deploy_and_dismissal_are_jobs() {
    let _turn = operator().share();
    let home = Home::new();
    let repo = format!("{}/app", home.name());
    push(&repo, "1.0.0", "one");
    home.bundle(
        "app",
        &repo,
        "1.*.*",
        &json!({"runner": "job", "env": {"WERF_LOG_QUIET": "1"}}),
    );
    let first = next_job(&home, &[]);
    let container = &first["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["args"]),
        (
            &json!("registry.werf.io/werf/werf:latest"),
            &json!(["-ec", "werf bundle apply"])
        )
    );
    assert_eq!(first["spec"]["template"]["spec"]["serviceAccountName"], "werf");
    home.wait_for_event("app", "Update");
    let name = |job: &Value| job["metadata"]["name"].as_str().unwrap().to_owned();
    end(&home, &first, "Failed");
    let failed = home.wait_for_reason("app", "DeployFailed");
    assert!(failed["status"]["deploy"].is_null(), "{failed}");
    let second = next_job(&home, &[name(&first)]);
    end(&home, &second, "Complete");
    let bundle = home.wait_ready("app");
    assert_eq!(bundle["status"]["deploy"]["version"], "1.0.0");
    // There is no release that could be looked at.
    let unseen = home.wait_for("app", |bundle| {
        let message = ready_of(bundle)["message"].as_str();
        message.is_some_and(|text| text.contains("its health could not be seen: ") && text.contains("not found"))
    });
    assert_eq!(ready_of(&unseen)["status"], "True");
    // helm has done nothing.
    assert!(home.namespace.object("configmap", "app").unwrap().is_none());
    home.namespace
        .kubectl(["delete", "bndl", "app", "--wait=false"])
        .unwrap();
    let known = [name(&first), name(&second)];
    let dismissal = next_job(&home, &known);
    assert_eq!(
        dismissal["spec"]["template"]["spec"]["containers"][0]["args"],
        json!([
            "-ec",
            "werf helm uninstall \"$WERF_RELEASE\" --namespace \"$WERF_NAMESPACE\""
        ])
    );
    end(&home, &dismissal, "Complete");
    let gone = || Ok::<_, String>(home.seen("app").is_null().then_some(()));
    wait_until(PATIENCE, "the Bundle is gone", gone).unwrap();
}
