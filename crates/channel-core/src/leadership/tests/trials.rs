//! A Deployment whose next versions are tried one after the other, under the same faults.

use proptest::prelude::*;

use super::world::{Skew, World};
use super::*;

/// The time for a read and a write, with a late report of a release included.
const SOON: Duration = Duration::from_secs(TIMING.retry.as_secs() + 2);

/// The replica with the fast clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fast {
    Old,
    New,
}

fn world(seed: u64, replicas: usize, skew: f64, fast: Fast) -> World {
    let mut skews = vec![Skew::NONE; replicas];
    let skew = Skew::faster_by(skew);
    match fast {
        Fast::Old => {
            skews[0] = skew;
            World::of_trials(seed, &skews, Skew::NONE)
        }
        Fast::New => World::of_trials(seed, &skews, skew),
    }
}

fn fast() -> impl Strategy<Value = Fast> {
    prop_oneof![Just(Fast::Old), Just(Fast::New)]
}

/// A world with trials under faults, and with other writers of entitlements. Then everything works, and the last trial ends.
fn settled(seed: u64) -> World {
    let mut world = world(seed, 2, 1.0, Fast::Old);
    world.in_pods();
    world.with_orders();
    world.run_for(Duration::from_mins(15));
    world.settled()
}

#[test]
fn trials_pass_and_fail_and_their_version_leads() {
    for with_faults in [true, false] {
        let mut world = world(11, 2, 1.0, Fast::Old);
        if !with_faults {
            world = world.faultless();
        }
        world.run_for(Duration::from_hours(1));
        let tally = world.tally();
        let is_tried = tally.begun > 5 && tally.passed > 1 && tally.failed > 1 && tally.led > 5;
        assert!(is_tried, "{tally:?}");
    }
}

proptest! {
    #[test]
    fn no_two_lead_at_once_while_versions_are_tried(
        seed: u64, replicas in 1_usize..4, skew in 1.0..1.166_f64, fast in fast(), is_in_pods: bool, is_meddled_with: bool,
    ) {
        let mut world = world(seed, replicas, skew, fast);
        if is_in_pods {
            world.in_pods();
        }
        if is_meddled_with {
            world.with_orders();
        }
        world.run_for(Duration::from_mins(30));
        prop_assert_eq!(world.overlap(), None);
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn no_two_lead_at_once_while_versions_are_tried_if_ends_are_seen(
        seed: u64, replicas in 1_usize..4, skew in 1.0..1.029_f64, fast in fast(), is_in_pods: bool,
    ) {
        let mut world = world(seed, replicas, skew, fast);
        if is_in_pods {
            world.in_pods();
        }
        world.ends_after(Duration::from_secs(4));
        world.with_deaths();
        world.run_for(Duration::from_mins(30));
        prop_assert_eq!(world.overlap(), None);
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn trials_end_with_one_leader_of_the_version_that_the_deployment_names(seed: u64) {
        let mut world = settled(seed);
        prop_assert!(world.is_without_trial(), "{:?}", world.trials());
        let leaders = world.leaders();
        prop_assert_eq!(leaders.len(), 1);
        prop_assert!(world.is_deployed(leaders[0]));
        for _ in 0..10 {
            world.run_for(Duration::from_secs(15));
            prop_assert_eq!(world.leaders(), leaders.clone());
        }
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn after_a_trial_any_version_takes_the_lease_as_soon_as_it_is_released(seed: u64) {
        let mut world = settled(seed).without_judges();
        let leader = world.leader().unwrap();
        let other = 1 - leader;
        world.replace(other, 97);
        world.run_for(TIMING.retry + SOON);
        prop_assert_eq!(world.leader(), Some(leader));
        world.retire_at_rest(leader);
        world.run_for(SOON);
        prop_assert_eq!(world.leaders(), vec![other]);
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn a_trial_that_nobody_goes_on_with_leaves_one_leader(seed: u64, minutes in 1_u64..15) {
        let mut world = world(seed, 2, 1.0, Fast::Old);
        world.run_for(Duration::from_mins(minutes));
        world = world.faultless().without_judges();
        world.run_for(Duration::from_mins(4));
        prop_assert_eq!(world.leaders().len(), 1);
        prop_assert_eq!(world.breach(), None);
    }
}
