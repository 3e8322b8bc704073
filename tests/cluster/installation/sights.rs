//! The observed state of an installation follows the cluster.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::time::Duration;

use addon_core::module::description::AccountName;
use channel::installation::Installation;
use channel::installation::trial_set;
use channel::installation::watching::{Asking, Observer, Seen};
use channel_core::trial::sight::{Known, PodState};
use kube_access::Cluster;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::stage::{Stage, deployment, digest, image, status};
use crate::cluster::world::PATIENCE;

/// A running observer; dropping the value stops it.
struct Watching {
    seen: watch::Receiver<Seen>,
    asking: Asking,
    _task: JoinSet<()>,
}

impl Watching {
    fn start(cluster: &Cluster, found: &Installation) -> Self {
        let observer = Observer::new(cluster, found);
        let (seen, asking) = (observer.sights(), observer.asking());
        let mut task = JoinSet::new();
        task.spawn(observer.run());
        Self {
            seen,
            asking,
            _task: task,
        }
    }

    async fn until(&mut self, what: &str, check: impl Fn(&Seen) -> bool) -> Seen {
        let seen = self.seen.clone();
        match timeout(PATIENCE, self.seen.wait_for(|seen| check(seen))).await {
            Ok(seen) => seen.unwrap().clone(),
            Err(_) => unreachable!("waited for {what}; last seen: {:#?}", *seen.borrow()),
        }
    }

    async fn pod(&mut self, what: &str, check: impl Fn(&PodState) -> bool) {
        let of_trial = |seen: &Seen| seen.trial.there()?.pod.clone();
        self.until(what, |seen| of_trial(seen).is_some_and(|pod| check(&pod.state)))
            .await;
    }
}

fn all_known(seen: &Seen) -> bool {
    seen.deployment.there().is_some() && seen.replicas.is_some() && seen.trial == Known::Absent
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deployment_and_its_pods_are_followed() {
    let stage = Stage::new("follow", 2).await;
    let mut pods = stage.pods();
    let found = stage.installation(&pods[0]).await;
    let mut watching = Watching::start(stage.cluster(), &found);
    let seen = watching.until("all to be known", all_known).await;
    assert!(seen.heard.is_some());
    let sight = seen.deployment.there().unwrap();
    assert_eq!(sight.image, image(1));
    assert!(sight.is_rolled_out && sight.pulls_always);
    assert_eq!(sight.chart.as_ref().unwrap().to_string(), "0.3.0");
    let replicas = seen.replicas.unwrap();
    pods.sort();
    assert_eq!(
        replicas.iter().map(|replica| &replica.pod).collect::<Vec<_>>(),
        pods.iter().collect::<Vec<_>>()
    );
    assert!(
        replicas
            .iter()
            .all(|replica| replica.is_ready && replica.digests == [digest(1)].into())
    );
    let ours = replicas.iter().find(|replica| replica.pod == found.pod).unwrap();
    assert!(ours.platform.is_some(), "that of this program: the pod is on no node");

    stage.kubectl(&format!(
        "set image deployment/ao addon-operator={} --field-manager=somebody",
        image(2)
    ));
    let by = |seen: &Seen| Some(seen.deployment.there()?.manager.clone()?.0);
    let seen = watching
        .until("the other image", |seen| by(seen).as_deref() == Some("somebody"))
        .await;
    let sight = seen.deployment.there().unwrap();
    assert_eq!((sight.image.as_str(), sight.is_rolled_out), (image(2).as_str(), false));
    stage.roll_out(2, 2);
    let new = |seen: &Seen| {
        let replicas = seen.replicas.as_deref().unwrap_or_default();
        let all_new = replicas.iter().all(|replica| replica.digests == [digest(2)].into());
        replicas.len() == 2 && all_new && seen.deployment.there().is_some_and(|sight| sight.is_rolled_out)
    };
    watching.until("the rollout", new).await;
    stage.kubectl("delete deployment ao --wait=false");
    let gone = |seen: &Seen| seen.deployment == Known::Absent && seen.replicas == Some(Vec::new());
    watching.until("the Deployment to go", gone).await;
    stage.apply(&deployment(1));
    stage.roll_out(1, 1);
    let own = |seen: &Seen| seen.replicas.as_ref().is_some_and(|replicas| replicas.len() == 1);
    let seen = watching.until("a pod of the next one", own).await;
    assert_eq!(seen.deployment, Known::Absent, "another one of the same name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_is_followed_from_its_set_to_its_end() {
    let stage = Stage::new("trial", 1).await;
    let found = stage.installation(&stage.pods()[0]).await;
    let mut watching = Watching::start(stage.cluster(), &found);
    let seen = watching.until("all to be known", all_known).await;
    assert_eq!(seen.deployment.there().unwrap().template, stage.template());
    let record = stage.record(2).await;
    trial_set::make_trial_set(stage.cluster(), &found, &record, &image(2))
        .await
        .unwrap();
    watching.asking.look_again();
    watching
        .pod("a pod that begins", |state| *state == PodState::Starting)
        .await;
    let pod = stage.pod_of("addon-operator/trial=ao");

    let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not there"}});
    stage.tell(
        &pod,
        &json!({"phase": "Pending", "containerStatuses": [status(2, &waits, 0)]}),
    );
    let why = PodState::NotPulled("ImagePullBackOff: not there".to_owned());
    watching.pod("an image that is not there", |state| *state == why).await;
    stage.tell_running(&pod, 2);
    watching
        .pod("a pod that is ready", |state| *state == PodState::Ready)
        .await;
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    stage.tell(&pod, &json!({"containerStatuses": [status(2, &ended, 2)]}));
    watching
        .pod("a crash", |state| {
            *state == PodState::Crashed("Error, exit code 1".to_owned())
        })
        .await;
    let seen = watching.seen.borrow().clone();
    let trial = seen.trial.there().unwrap();
    assert_eq!((&trial.digest, trial.pod.as_ref().unwrap().restarts), (&digest(2), 2));
    assert_eq!(seen.replicas.unwrap().len(), 1, "the pod of a trial is none of them");

    let uid = trial.uid.clone();
    stage.kubectl(&format!("delete pod {pod} --wait=false"));
    let is_other = |seen: &Seen| {
        let now = seen.trial.there().and_then(|trial| trial.pod.as_ref());
        now.is_some_and(|now| now.name != pod && now.state == PodState::Starting)
    };
    watching.until("another pod", is_other).await;
    trial_set::drop_trial_set(stage.cluster(), &found, Some(&record), &uid)
        .await
        .unwrap();
    watching
        .until("the end of it", |seen| seen.trial == Known::Absent)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_seen_is_unknown_until_it_may() {
    let stage = Stage::new("unseen", 1).await;
    let found = stage.installation(&stage.pods()[0]).await;
    stage.kubectl("create serviceaccount small");
    let allow = |name: &str, verbs: &str, resource: &str| {
        let account = format!("--serviceaccount={}:small", stage.world.namespace.name());
        stage.kubectl(&format!("create role {name} --verb={verbs} --resource={resource}"));
        stage.kubectl(&format!("create rolebinding {name} --role={name} {account}"));
    };
    allow("sets", "get", "replicasets.apps --resource-name=ao-trial");
    // The right to list without the right to watch gives no lasting knowledge.
    allow("pods", "list", "pods");
    let account = AccountName::parse("small").unwrap();
    let small = stage
        .cluster()
        .acting_as(&account, Duration::from_mins(1))
        .await
        .unwrap();
    let mut watching = Watching::start(&small.cluster, &found);
    let seen = watching.until("the set", |seen| seen.trial == Known::Absent).await;
    assert_eq!(seen.deployment, Known::Unknown);
    watching
        .until("pods that are not watched", |seen| seen.replicas.is_none())
        .await;
    allow("rest", "list,watch", "deployments.apps --resource-name=ao");
    allow("watch", "watch", "pods");
    watching.until("all to be known", all_known).await;
}
