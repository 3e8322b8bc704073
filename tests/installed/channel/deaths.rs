//! Pods are killed in the middle of a trial.

use testbed::plane::ControlPlane;

use super::followed::{ALONE, Change, Followed};
use super::sight::Step;
use crate::installed::stage::Image;

/// An installation with one replica and the strategy `Recreate`. The replica is killed when the trial begins, and the
/// pod on trial once while it leads.
pub(super) fn one_replica_that_is_recreated(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, ALONE);
    let first = followed.first.clone();
    let revisions = followed.stage.revisions();
    let version = followed.push("0.2.0", &Change::default());
    let old = followed.leader().unwrap();
    followed.check();
    followed.wait_for_a_trial();
    assert!(followed.kill(&old), "{old} was to be killed");
    followed.wait_until_the_new_one_leads();
    assert!(followed.names(&first), "{}", followed.image());
    let trial = followed.trial_pod().unwrap();
    assert!(followed.kill(&trial), "{trial} was to be killed");
    followed.wait_until_at_rest_with(&version);
    followed.assert_untouched(&revisions);
}

/// All pods of the old version are evicted, as in a drain, and come back with the old version. Then the pod on trial is
/// evicted.
pub(super) fn the_old_pods_are_evicted_during_a_trial(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let first = followed.first.clone();
    let version = followed.push("0.2.0", &Change::default());
    followed.check();
    followed.wait_until_the_new_one_leads();
    let old = followed.other_pods();
    for pod in &old {
        followed.stage.kubectl(&format!("delete pod {pod} --wait=false"));
    }
    followed.wait_for("other pods of the old version", || {
        followed.other_pods().iter().filter(|pod| !old.contains(pod)).count() == 2
    });
    assert!(followed.names(&first), "{}", followed.image());
    if let Some(trial) = followed.trial_pod() {
        followed.stage.kubectl(&format!("delete pod {trial} --wait=false"));
    }
    followed.wait_until_at_rest_with(&version);
}

/// At each step of a trial all pods of the old version are killed.
pub(super) fn the_old_pods_are_killed_at_each_step(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let revisions = followed.stage.revisions();
    // The step before the first converge is left out, because it may be too short to be observed.
    kill_at(
        &followed,
        0,
        &[Step::Begun, Step::Ready, Step::Proves, Step::RollsOut],
        || {
            let pods = followed.other_pods();
            pods.iter().filter(|pod| followed.kill(pod)).count() > 0
        },
    );
    followed.assert_untouched(&revisions);
}

/// The pod on trial is killed at each step, once in each trial, because two restarts would be a failure. Each version
/// is adopted.
pub(super) fn the_pod_on_trial_is_killed_at_each_step(plane: &ControlPlane, image: &Image) {
    let followed = Followed::begin(plane, image, &[]);
    let revisions = followed.stage.revisions();
    // The pod of the first trial is killed twice. The second kill comes after the verdict, so it is no failure.
    let steps: [&[Step]; 3] = [&[Step::Begun, Step::RollsOut], &[Step::Ready], &[Step::Proves]];
    for (number, steps) in steps.into_iter().enumerate() {
        kill_at(&followed, number, steps, || {
            followed.trial_pod().is_some_and(|pod| followed.kill(&pod))
        });
    }
    followed.assert_untouched(&revisions);
}

/// How many trials may pass before each step was seen. On a busy machine a look may come too late for a step.
const TRIALS: usize = 4;

/// Pushes a version, kills at each of these steps of its trial, and waits until the version is adopted. If a step passed before it was
/// seen, another version gets the same.
fn kill_at(followed: &Followed<'_>, number: usize, steps: &[Step], kill: impl Fn() -> bool) {
    let mut missed = Vec::new();
    loop {
        let version = followed.push(&format!("0.{}.{}", number + 2, missed.len()), &Change::default());
        followed.check();
        let late = steps
            .iter()
            .find(|step| !is_killed_at(followed, &version, **step, &kill));
        followed.wait_until_at_rest_with(&version);
        let Some(late) = late else { return };
        missed.push(late);
        assert!(
            missed.len() < TRIALS,
            "trials passed these steps before they were seen: {missed:?}"
        );
    }
}

/// Kills when the trial is at this step; false if the trial passed it.
fn is_killed_at(followed: &Followed<'_>, version: &str, step: Step, kill: impl Fn() -> bool) -> bool {
    let mut is_killed = false;
    followed.wait_closely_for(&format!("a kill at {step:?}"), || {
        let now = followed.step(version);
        is_killed = now == Some(step) && kill();
        let is_over = now > Some(step) || now.is_none() && followed.names(version) && followed.is_at_rest();
        is_killed || is_over
    });
    is_killed
}
