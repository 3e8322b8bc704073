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
    let version = followed.push("0.2.0", &Change::default());
    followed.check();
    // The step before the first converge is left out, because it may be too short to be observed.
    for step in [Step::Begun, Step::Ready, Step::Proves, Step::RollsOut] {
        followed.wait_for(&format!("{step:?}"), || followed.step(&version) >= Some(step));
        let killed = followed.other_pods().iter().filter(|pod| followed.kill(pod)).count();
        assert_ne!(killed, 0, "{step:?}");
    }
    followed.wait_until_at_rest_with(&version);
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
        let version = followed.push(&format!("0.{}.0", number + 2), &Change::default());
        followed.check();
        for step in steps {
            followed.wait_for(&format!("a kill at {step:?}"), || {
                let is_there = followed.step(&version) == Some(*step);
                is_there && followed.trial_pod().is_some_and(|pod| followed.kill(&pod))
            });
        }
        followed.wait_until_at_rest_with(&version);
    }
    followed.assert_untouched(&revisions);
}
