//! Global hooks that fail before all modules: the values of their last good runs serve for them.

use super::effect::StandIn;
use super::query::ValuesQuery;
use super::*;

const MINUTE: Duration = Duration::from_mins(1);
const HOOK: &str = "g.sh";

/// A world in its second life: in the first one the hook has set a value, and has switched module `two` on.
fn second_life(config: &str, words: &str) -> World {
    let mut two = module(20, "two");
    two.enabled = None;
    let values = json!([{"op": "add", "path": "/global/zone", "value": "west"},
        {"op": "add", "path": "/twoEnabled", "value": true}]);
    let mut world = World::new(vec![module(10, "one"), two])
        .hook("", HOOK, config)
        .patching(words, &values, &json!([]))
        .start();
    assert!(world.status().ready);
    assert!(
        world.given.contains_key(&HookName::parse(HOOK).unwrap()),
        "{:?}",
        world.given
    );
    world.take_log();
    world.notices.clear();
    world.releases = ["one", "two"].map(summary).into();
    world.operator = Operator::new(2, Policy::default());
    world.failing.insert(words.to_owned(), 100);
    world
}

fn summary(name: &str) -> ReleaseSummary {
    ReleaseSummary {
        name: name.to_owned(),
        ours: true,
        config: None,
    }
}

fn sleep_for(world: &mut World, time: Duration) {
    let until = world.tick + time;
    while world.operator.poll_timeout().is_some_and(|(at, _)| at <= until) {
        world.sleep();
    }
    world.tick = until;
}

/// The jobs that ended well.
fn done(world: &mut World) -> Vec<String> {
    let log = world.take_log().into_iter();
    log.filter(|line| !line.ends_with(" fails") && !line.ends_with(" watch"))
        .collect()
}

fn zone(world: &World) -> Value {
    let query = ValuesQuery {
        module: None,
        with_global: false,
        secrets: Secrets::Shown,
    };
    let values = world.operator.answer(&query).unwrap();
    values["zone"].clone()
}

fn served(world: &World) -> usize {
    let serves = |notice: &&Notice| matches!(notice, Notice::StandIn(StandIn::Serves { .. }));
    world.notices.iter().filter(serves).count()
}

#[test]
fn modules_run_with_the_values_of_the_last_good_run_after_the_patience() {
    for (config, words) in [
        ("onStartup: 1", "g.sh onStartup"),
        ("beforeAll: 1", "g.sh beforeAll"),
        ("kubernetes:\n- name: pods\n  kind: Pod", "g.sh kubernetes"),
        (
            "kubernetes:\n- name: pods\n  kind: Pod\n  queue: other",
            "g.sh kubernetes",
        ),
    ] {
        let mut world = second_life(config, words).start();
        sleep_for(&mut world, Duration::from_secs(59));
        assert_eq!(done(&mut world), [""; 0], "{config}");
        assert_eq!(served(&world), 0);
        sleep_for(&mut world, Duration::from_secs(1));
        assert_eq!(done(&mut world), ["one sync", "two sync"], "{config}");
        assert!(world.status().ready, "{config}: {:?}", world.status());
        assert_eq!((zone(&world), served(&world)), (json!("west"), 1), "{config}");
    }
}

#[test]
fn a_hook_that_does_not_end_is_passed_after_five_times_the_patience_and_its_run_counts() {
    let east = json!([{"op": "add", "path": "/global/zone", "value": "east"}]);
    for (config, words) in [
        ("onStartup: 1", "g.sh onStartup"),
        ("beforeAll: 1", "g.sh beforeAll"),
        ("kubernetes:\n- name: pods\n  kind: Pod", "g.sh kubernetes"),
        (
            "kubernetes:\n- name: pods\n  kind: Pod\n  queue: other",
            "g.sh kubernetes",
        ),
    ] {
        let mut world = second_life(config, words).patching(words, &east, &json!([]));
        world.failing.clear();
        world.open.insert(words.to_owned());
        let mut world = world.start();
        sleep_for(&mut world, Duration::from_secs(299));
        assert_eq!(done(&mut world), [""; 0], "{config}");
        sleep_for(&mut world, Duration::from_secs(1));
        assert_eq!(done(&mut world), ["one sync", "two sync"], "{config}");
        assert_eq!((zone(&world), served(&world)), (json!("west"), 1), "{config}");
        assert!(world.status().ready, "{config}: {:?}", world.status());
        let told = world.status().old_values.join(" ");
        assert!(
            told.starts_with("global hook 'g.sh' does not end, so"),
            "{config}: {told}"
        );
        world.close(words);
        sleep_for(&mut world, MINUTE);
        assert_eq!(zone(&world), json!("east"), "{config}");
        let done = done(&mut world);
        assert!(done[0].starts_with(words), "{config}: {done:?}");
        assert!(
            done.ends_with(&["one sync".to_owned(), "two sync".to_owned()]),
            "{config}: {done:?}"
        );
        assert_eq!(world.status().old_values, [""; 0], "{config}");
    }
}

#[test]
fn a_hook_that_does_not_end_before_its_deadline_is_tried_again_aside() {
    let mut world = second_life("beforeAll: 1", "g.sh beforeAll");
    world.failing.clear();
    world.open.insert("g.sh beforeAll".to_owned());
    let mut world = world.start();
    sleep_for(&mut world, 6 * MINUTE);
    let at = world
        .pending
        .iter()
        .position(|job| words(job) == "g.sh beforeAll")
        .unwrap();
    let job = world.pending.remove(at);
    let failure = Failure::new(Class::TimedOut, "it did not end");
    world.handle(Event::JobFinished(job.failed(failure)));
    assert!(world.status().ready, "{:?}", world.status());
    let told = world.status().old_values.join(" ");
    assert!(told.starts_with("global hook 'g.sh' fails, so"), "{told}");
    done(&mut world);
    world.close("g.sh beforeAll");
    sleep_for(&mut world, 10 * MINUTE);
    assert_eq!(world.status().old_values, [""; 0]);
}

#[test]
fn values_of_before_serve_also_for_a_hook_that_fails_at_its_second_binding() {
    let values = json!([{"op": "add", "path": "/global/color", "value": "red"}, {"op": "add", "path": "/twoEnabled", "value": false}]);
    let config = "onStartup: 1\nbeforeAll: 1";
    let mut world = second_life(config, "g.sh beforeAll")
        .patching("g.sh onStartup", &values, &json!([]))
        .start();
    sleep_for(&mut world, 2 * MINUTE);
    assert_eq!(done(&mut world), ["g.sh onStartup", "one sync"]);
    assert_eq!((zone(&world), served(&world)), (json!("west"), 1));
}

#[test]
fn a_hook_whose_objects_cannot_be_watched_is_passed_and_watched_later() {
    let mut world = second_life("kubernetes:\n- name: pods\n  kind: Pod", "g.sh kubernetes");
    world.failing = [("g.sh watch".to_owned(), 100)].into();
    let mut world = world.start();
    sleep_for(&mut world, 2 * MINUTE);
    assert_eq!(done(&mut world), ["one sync", "two sync"]);
    assert_eq!((zone(&world), served(&world)), (json!("west"), 1));
    world.failing.clear();
    sleep_for(&mut world, MINUTE);
    assert_eq!(done(&mut world), ["g.sh kubernetes [pods all]"]);
    assert_eq!(served(&world), 1);
}

#[test]
fn a_hook_that_never_succeeded_is_waited_for_by_name() {
    let mut world = second_life("beforeAll: 1", "g.sh beforeAll");
    world.given.clear();
    let mut world = world.start();
    sleep_for(&mut world, 10 * MINUTE);
    assert_eq!(done(&mut world), [""; 0]);
    assert!(world.waits_for("one").contains("g.sh"), "{}", world.waits_for("one"));
}

#[test]
fn in_strict_order_and_on_trial_modules_wait() {
    let strict = Policy {
        strict_order: true,
        ..Policy::default()
    };
    let on_trial = Policy {
        on_trial: policy::OnTrial::Yes,
        ..Policy::default()
    };
    for policy in [strict, on_trial] {
        let mut world = second_life("beforeAll: 1", "g.sh beforeAll");
        world.operator = Operator::new(1, policy);
        let mut world = world.start();
        sleep_for(&mut world, 10 * MINUTE);
        assert_eq!(done(&mut world), [""; 0]);
    }
}

#[test]
fn a_success_ends_the_stand_in_and_modules_run_with_the_new_values() {
    for (config, words) in [
        ("onStartup: 1", "g.sh onStartup"),
        ("beforeAll: 1", "g.sh beforeAll"),
        ("kubernetes:\n- name: pods\n  kind: Pod", "g.sh kubernetes"),
    ] {
        let values = json!([{"op": "add", "path": "/global/zone", "value": "east"}]);
        let mut world = second_life(config, words).patching(words, &values, &json!([])).start();
        sleep_for(&mut world, 2 * MINUTE);
        assert_eq!(done(&mut world), ["one sync", "two sync"], "{config}");
        world.failing.clear();
        sleep_for(&mut world, MINUTE);
        assert_eq!(zone(&world), json!("east"), "{config}");
        let done = done(&mut world);
        assert!(done[0].starts_with(words), "{config}: {done:?}");
        assert!(
            done.ends_with(&["one sync".to_owned(), "two sync".to_owned()]),
            "{config}: {done:?}"
        );
        let ends = |notice: &&Notice| matches!(notice, Notice::StandIn(StandIn::Ends { .. }));
        assert_eq!(world.notices.iter().filter(ends).count(), 1, "{config}");
    }
}

#[test]
fn an_edit_is_carried_out_while_a_hook_fails_that_has_succeeded_before() {
    let mut world = World::new(vec![module(10, "one")])
        .hook("", HOOK, "beforeAll: 1")
        .start();
    world.take_log();
    world.failing.insert("g.sh beforeAll".to_owned(), 100);
    world.edit(&[("global", Some("color: red"))]);
    sleep_for(&mut world, MINUTE);
    assert_eq!(done(&mut world), ["one sync"]);
    // The hook fails still, so that it delays no other edit.
    world.edit(&[("global", Some("color: blue"))]);
    assert_eq!(done(&mut world), ["one sync"]);
}

#[test]
fn nothing_is_removed_by_old_values_except_by_the_config_map() {
    let mut world = second_life("beforeAll: 1", "g.sh beforeAll");
    let name = HookName::parse(HOOK).unwrap();
    let off = json!([{"op": "add", "path": "/twoEnabled", "value": false}]);
    let off = patch(&off, PatchFile::Values).accept(&Owner::Global).unwrap();
    world
        .given
        .get_mut(&name)
        .unwrap()
        .add(off, jiff::Timestamp::UNIX_EPOCH);
    let mut world = world.start();
    sleep_for(&mut world, 5 * MINUTE);
    assert_eq!(done(&mut world), ["one sync"]);
    assert!(world.waits_for("two").contains("g.sh"), "{}", world.waits_for("two"));
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(done(&mut world), ["one delete"]);
    world.failing.clear();
    world.patches.clear();
    world = world.patching(
        "g.sh beforeAll",
        &json!([{"op": "add", "path": "/twoEnabled", "value": false}]),
        &json!([]),
    );
    sleep_for(&mut world, MINUTE);
    let done = done(&mut world);
    assert!(done.contains(&"two delete".to_owned()), "{done:?}");
}

#[test]
fn the_same_values_are_not_saved_again() {
    let world = second_life("beforeAll: 1", "g.sh beforeAll");
    let before = world.given.clone();
    let mut world = world;
    world.failing.clear();
    let world = world.start();
    assert!(world.status().ready);
    assert_eq!(world.given, before);
}
