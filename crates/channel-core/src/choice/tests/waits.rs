//! Waits that time ends: a delay, a busy moment, the pause after a trial without a result.

use super::*;

/// A second less than the longest wait for a quiet moment.
const NEARLY: Duration = Duration::from_secs(599);

#[test]
fn a_busy_moment_is_waited_for_ten_minutes_and_no_longer() {
    let mut world = World::new();
    world.show("stable", "1.4.3");
    world.activity = Activity::Busy;
    world.policy("delay: 1h");
    assert_eq!(world.waits(), ["delay"]);
    world.pass(Duration::from_hours(1));
    let until = world.now.wall + PATIENCE;
    assert_eq!(world.reasons(), [Reason::Busy { until }]);
    world.pass(NEARLY);
    assert_eq!(world.reasons(), [Reason::Busy { until }]);
    assert_eq!(world.next(), Some(until));
    // The wait starts again for another version, and for one that another reason held meanwhile.
    let known = world.seen.clone();
    world.show("stable", "1.4.4");
    assert_eq!(world.waits(), ["delay"]);
    world.seen = known;
    world.settings.policy = Policy::default();
    assert_eq!(world.waits(), ["busy"]);
    world.pass(NEARLY);
    assert_eq!(world.waits(), ["busy"]);
    let mut quiet = world.clone();
    quiet.activity = Activity::Quiet;
    assert_eq!(quiet.begins().as_deref(), Some("1.4.3"));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
}

#[test]
fn a_clock_that_is_set_makes_no_busy_moment_longer() {
    let mut world = World::new();
    world.show("stable", "1.4.3");
    world.activity = Activity::Busy;
    assert_eq!(world.waits(), ["busy"]);
    world.now.wall = at("2020-01-01T00:00:00Z");
    world.now.tick = world.now.tick + PATIENCE;
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
}

#[test]
fn a_trial_without_a_result_is_repeated_when_it_is_time() {
    let mut world = World::new();
    world.show("stable", "1.4.3");
    let again = world.now.wall + Duration::from_mins(5);
    world.unclear = Some((digest("1.4.3"), again));
    world.approve("1.4.3");
    assert_eq!(world.reasons(), [Reason::Unclear { again }]);
    assert_eq!(world.next(), Some(again));
    world.pass(Duration::from_mins(5));
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
    world.unclear = Some((digest("1.4.4"), Timestamp::MAX));
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
}

#[test]
fn a_delay_is_counted_from_the_first_sight_of_each_version() {
    let mut world = World::new();
    world.policy("delay: 24h");
    world.show("stable", "1.4.3");
    let until = world.now.wall + Duration::from_hours(24);
    assert_eq!(world.reasons(), [Reason::Delay { until }]);
    world.pass(Duration::from_hours(20));
    world.memory = serde_json::from_str(&serde_json::to_string(&world.memory).unwrap()).unwrap();
    assert_eq!(world.reasons(), [Reason::Delay { until }]);
    assert_eq!(world.next(), Some(until));
    world.show("stable", "1.4.4");
    assert_eq!(world.next(), Some(world.now.wall + Duration::from_hours(24)));
    world.pass(Duration::from_hours(24));
    assert_eq!(world.begins().as_deref(), Some("1.4.4"));
}
