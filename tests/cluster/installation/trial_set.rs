//! The `ReplicaSet` of a trial together with the real controllers of Deployments, `ReplicaSets`, disruption budgets and
//! the garbage collector.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use channel::installation::Installation;
use channel::installation::patching::{self, Outcome};
use channel::installation::trial_set;
use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::stage::{Stage, digest, image, loose_set};
use crate::cluster::world::PATIENCE;

const ON_TRIAL: &str = "addon-operator/trial=ao";

async fn make(stage: &Stage, found: &Installation, version: u8) -> Outcome {
    let trial = stage.record(version).await;
    let made = trial_set::make_trial_set(stage.cluster(), found, &trial, &image(version)).await;
    made.unwrap()
}

fn set(stage: &Stage) -> Option<Value> {
    let text = stage.kubectl("get replicaset ao-trial --ignore-not-found --output=json");
    serde_json::from_str(&text).ok()
}

/// Checks that the trial's set is unchanged: same UID, one pod, one owner.
#[track_caller]
fn stands(stage: &Stage, uid: &Value) {
    let set = set(stage).unwrap();
    assert_eq!((&set["metadata"]["uid"], &set["spec"]["replicas"]), (uid, &json!(1)));
    let owners = set["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1, "{set}");
    assert_ne!(owners[0]["controller"], json!(true), "{set}");
    stage.pod_of(ON_TRIAL);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_neither_adopted_nor_scaled_and_goes_with_its_deployment() {
    let stage = Stage::new("adopted", 2).await;
    let found = stage.installation(&stage.pods()[0]).await;
    assert_eq!(make(&stage, &found, 2).await, Outcome::Done);
    let pod = stage.pod_of(ON_TRIAL);
    stage.tell_running(&pod, 2);
    let uid = set(&stage).unwrap()["metadata"]["uid"].clone();
    let on_trial = stage.installation(&pod).await;
    assert!(on_trial.is_on_trial);
    assert_eq!(
        (&on_trial.deployment, on_trial.digests),
        (&found.deployment, [digest(2)].into())
    );

    stage.kubectl("scale deployment ao --replicas=3");
    stage.roll_out(3, 1);
    stands(&stage, &uid);
    let patched = patching::patch_image(stage.cluster(), &found, &image(1), &image(2))
        .await
        .unwrap();
    assert_eq!(patched, Outcome::Done);
    stage.roll_out(3, 2);
    stands(&stage, &uid);
    stage.kubectl("rollout undo deployment ao");
    stage.roll_out(3, 1);
    stands(&stage, &uid);

    stage.kubectl("delete deployment ao --wait=false");
    let gone = || Ok::<_, String>(set(&stage).is_none().then_some(()));
    wait_until(PATIENCE, "the set to go with its Deployment", gone).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_made_once_and_only_of_the_template_that_was_seen() {
    let stage = Stage::new("once", 1).await;
    let found = stage.installation(&stage.pods()[0]).await;
    let cluster = stage.cluster();
    let trial = stage.record(2).await;
    stage.kubectl("set env deployment/ao A=b");
    let now = stage.template();
    let changed = trial_set::make_trial_set(cluster, &found, &trial, &image(2))
        .await
        .unwrap();
    assert_eq!(changed, Outcome::Changed { now });
    assert_eq!(set(&stage), None);

    let trial = stage.record(2).await;
    for _ in 0..2 {
        // The second call is a repetition after a lost answer.
        let made = trial_set::make_trial_set(cluster, &found, &trial, &image(2))
            .await
            .unwrap();
        assert_eq!(made, Outcome::Done);
    }
    let next = stage.record(3).await;
    let late = trial_set::make_trial_set(cluster, &found, &trial, &image(2))
        .await
        .unwrap();
    let now = "another record of a trial, or none".to_owned();
    assert_eq!(late, Outcome::Changed { now });
    let refused = trial_set::make_trial_set(cluster, &found, &next, &image(3))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("runs another version, sha256:0"),
        "{refused}"
    );

    let other = trial_set::drop_trial_set(cluster, &found, Some(&next), "another")
        .await
        .unwrap();
    let now = "another ReplicaSet 'ao-trial'".to_owned();
    assert_eq!(other, Outcome::Changed { now }, "a late word about another trial");
    let uid = set(&stage).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    for over in [Some(&trial), None] {
        // A request of a replica that does not know yet that another trial has begun.
        let late = trial_set::drop_trial_set(cluster, &found, over, &uid).await.unwrap();
        let now = "another record of a trial, or none".to_owned();
        assert_eq!(late, Outcome::Changed { now }, "{over:?}");
    }
    assert_eq!(set(&stage).unwrap()["metadata"]["deletionTimestamp"], Value::Null);
    let dropped = trial_set::drop_trial_set(cluster, &found, Some(&next), &uid)
        .await
        .unwrap();
    assert_eq!(dropped, Outcome::Done);
    let gone = || Ok::<_, String>((set(&stage).is_none()).then_some(()));
    wait_until(PATIENCE, "the set to go", gone).unwrap();
    assert_eq!(
        stage.kubectl(&format!("get pods --selector={ON_TRIAL} --output=name")),
        "",
        "its pod has ended"
    );
    let dropped = trial_set::drop_trial_set(cluster, &found, Some(&next), &uid)
        .await
        .unwrap();
    assert_eq!(dropped, Outcome::Done, "it is gone already");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_of_others_is_left_alone() {
    let stage = Stage::new("others", 1).await;
    let found = stage.installation(&stage.pods()[0]).await;
    stage.apply(&loose_set("ao-trial"));
    let cluster = stage.cluster();
    let trial = stage.record(2).await;
    let made = trial_set::make_trial_set(cluster, &found, &trial, &image(2))
        .await
        .unwrap_err();
    let uid = set(&stage).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let dropped = trial_set::drop_trial_set(cluster, &found, Some(&trial), &uid)
        .await
        .unwrap_err();
    for refused in [made, dropped] {
        assert!(refused.to_string().contains("not made by us"), "{refused}");
    }
    assert!(set(&stage).is_some());
}

/// The numbers of a disruption budget: expected pods, healthy pods, allowed disruptions.
fn budget(stage: &Stage) -> Value {
    let status = &stage.json("get poddisruptionbudget ao")["status"];
    json!([
        status["expectedPods"],
        status["currentHealthy"],
        status["disruptionsAllowed"]
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_counts_the_pod_of_a_trial_as_one_more() {
    let stage = Stage::new("budget", 2).await;
    stage.apply(&json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "ao"},
        "spec": {
            "maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {"app": "ao"}},
        },
    }));
    let wait = |wanted: Value| {
        let look = || {
            let seen = budget(&stage);
            if seen == wanted {
                Ok(Some(()))
            } else {
                Err(seen.to_string())
            }
        };
        wait_until(PATIENCE, &format!("a budget of {wanted}"), look).unwrap();
    };
    wait(json!([2, 2, 1]));
    let found = stage.installation(&stage.pods()[0]).await;
    assert_eq!(make(&stage, &found, 2).await, Outcome::Done);
    let pod = stage.pod_of(ON_TRIAL);
    let unready = json!([{"type": "Ready", "status": "False"}]);
    stage.tell(&pod, &json!({"phase": "Running", "conditions": unready}));
    wait(json!([3, 2, 0]));
    let refused = evict(&stage, &stage.pods()[0]).unwrap_err();
    assert!(refused.contains("disruption budget"), "{refused}");
    evict(&stage, &pod).unwrap();
    let next = || {
        let other = Some(stage.pod_of(ON_TRIAL)).filter(|name| *name != pod);
        Ok::<_, String>(other)
    };
    let next = wait_until(PATIENCE, "another pod of the trial", next).unwrap();
    stage.tell_running(&next, 2);
    wait(json!([3, 3, 1]));
    evict(&stage, &stage.pods()[0]).unwrap();
}

/// Evicts a pod, as a drain does.
fn evict(stage: &Stage, pod: &str) -> Result<String, String> {
    let namespace = &stage.world.namespace;
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", namespace.name());
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
    let kubectl = namespace.kubectl_as(testbed::plane::User::Admin);
    let answer = kubectl.feed(["create", "--raw", &path, "--filename=-"], &eviction.to_string());
    answer.map_err(|error| error.to_string())
}
