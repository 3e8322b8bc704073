//! Removals: unwanted modules are removed, and nothing of a removed module is left over.

use super::*;

#[test]
fn a_release_that_a_failed_helm_may_have_left_goes_although_something_else_came_before_it_meanwhile() {
    let converting = Module {
        has_conversions: true,
        ..module(10, "one")
    };
    let mut world = World::new(vec![converting]);
    world.open.insert("one sync".to_owned());
    world.failing.insert("one sync".to_owned(), 1);
    world
        .data
        .insert("oneMaintenance".to_owned(), "NoResourceReconciliation".to_owned());
    let mut world = world.start();
    // Maintenance ends and the module is switched off while helm works: another release would need its conversions first.
    world.edit(&[("oneMaintenance", None), ("oneEnabled", Some("false"))]);
    world.close("one sync");
    assert_eq!(world.take_log(), ["one sync fails", "one delete"]);
    let helm = |notice: &Notice| matches!(notice, Notice::ModuleFailed { helm: Some(_), .. });
    assert!(world.notices.iter().any(helm), "{:?}", world.notices);
}

#[test]
fn a_run_without_helm_is_told_without_a_time_of_helm() {
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", "beforeHelm: 1\nafterHelm: 1");
    world.failing.insert("one/h.sh afterHelm".to_owned(), 1);
    let world = world.start();
    let helm = |notice: &Notice| matches!(notice, Notice::ModuleFailed { helm: None, .. });
    assert!(world.notices.iter().any(helm), "{:?}", world.notices);
}

#[test]
fn a_new_life_after_half_a_removal_runs_nothing_that_the_old_one_had_to_do() {
    let hook = "afterDeleteHelm: 1\nkubernetes:\n- name: pods\n  kind: Pod\n  queue: side";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", hook).start();
    world.take_log();
    world.open.insert("one/h.sh kubernetes".to_owned());
    world.change("one/h.sh pods", WatchEvent::Added, "a");
    world.failing.insert("one/h.sh afterDeleteHelm".to_owned(), 1);
    world.failing.insert("one/h.sh kubernetes".to_owned(), 1);
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.take_log(), ["one delete", "one/h.sh afterDeleteHelm fails"]);
    world.edit(&[("oneEnabled", None)]);
    world.close("one/h.sh kubernetes");
    let log = world.take_log();
    let told = |line: &&String| line.contains("[pods Added a]");
    assert_eq!(log.iter().filter(told).count(), 0, "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("one sync"), "{log:?}");
}

#[test]
fn in_strict_order_a_removal_that_becomes_certain_does_not_wait_for_those_that_may_wait_for_it() {
    let mut old = module(10, "old");
    old.enabled = None;
    let hook = "schedule:\n- crontab: '* * * * * *'\n  queue: side";
    let mut world = World::new(vec![old, module(20, "new")]).hook("", "g.sh", hook);
    world.operator = Operator::new(
        1,
        Policy {
            strict_order: true,
            ..Policy::default()
        },
    );
    world.releases.push(ReleaseSummary {
        name: "old".to_owned(),
        ours: true,
        config: None,
    });
    // Both modules render the same object, so the new one fails until the old one is removed.
    world.failing.insert("new sync".to_owned(), 9);
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.edit(&[("oldEnabled", Some("true")), ("newEnabled", Some("false"))]);
    world.take_log();
    world.edit(&[("oldEnabled", None), ("newEnabled", None)]);
    assert_eq!(
        world.take_log(),
        ["new sync fails"],
        "a hook that has not run may still want the old one"
    );
    world.sleep();
    let log = world.take_log();
    assert!(log.contains(&"old delete".to_owned()), "{log:?}");
}

#[test]
fn a_first_run_that_is_under_way_when_its_monitors_begin_anew_is_not_tried_again() {
    let hook = "kubernetes:\n- name: pods\n  kind: Pod\n  queue: side";
    let mut world = World::new(vec![module(10, "one"), module(20, "two")])
        .hook("one", "a.sh", hook)
        .start();
    world.take_log();
    world
        .open
        .extend(["two delete", "one/a.sh kubernetes"].map(str::to_owned));
    world.failing.insert("one/a.sh kubernetes".to_owned(), 1);
    world.change("one/a.sh pods", WatchEvent::Added, "a");
    // The module is switched off and on again while the removal of another module is before its own.
    world.edit(&[("twoEnabled", Some("false")), ("oneEnabled", Some("false"))]);
    world.edit(&[("oneEnabled", None)]);
    world.close("two delete");
    world.close("one/a.sh kubernetes");
    assert_eq!(
        world.take_log(),
        [
            "two delete",
            "one/a.sh watch",
            "one/a.sh kubernetes fails",
            "one/a.sh kubernetes [pods all]",
            "one sync"
        ]
    );
}

#[test]
fn what_a_hook_of_an_old_life_asks_for_does_not_come_into_the_next_one() {
    let tick = json!([{"op": "add", "path": "/one/tick", "value": 1}]);
    let hook = "schedule:\n- crontab: '* * * * * *'\n  queue: side";
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", hook)
        .patching("one/h.sh schedule", &tick, &json!([]))
        .start();
    world.open.insert("one/h.sh schedule".to_owned());
    world.sleep();
    world.edit(&[("oneEnabled", Some("false"))]);
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(world.state("one"), "Ready");
    world.take_log();
    world.close("one/h.sh schedule");
    assert_eq!(
        world.take_log(),
        ["one/h.sh schedule"],
        "a change of values would run the module"
    );
}

#[test]
fn nor_does_it_when_the_removal_between_them_did_not_come_to_its_end() {
    let tick = json!([{"op": "add", "path": "/one/tick", "value": 1}]);
    let hook = "afterDeleteHelm: 1\nschedule:\n- crontab: '* * * * * *'\n  queue: side";
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", hook)
        .patching("one/h.sh schedule", &tick, &json!([]))
        .start();
    world.open.insert("one/h.sh schedule".to_owned());
    world.sleep();
    world.take_log();
    world.failing.insert("one/h.sh afterDeleteHelm".to_owned(), 1);
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.take_log(), ["one delete", "one/h.sh afterDeleteHelm fails"]);
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(world.take_log(), ["one sync"]);
    world.close("one/h.sh schedule");
    assert_eq!(world.take_log(), ["one/h.sh schedule"]);
}

#[test]
fn a_removal_that_fails_for_its_section_is_tried_again_with_the_mended_one() {
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "afterDeleteHelm: 1")
        .start();
    world.failing.insert("one/h.sh afterDeleteHelm".to_owned(), 1);
    world.edit(&[("one", Some("size: 1")), ("oneEnabled", Some("false"))]);
    world.edit(&[("one", Some("size: 2"))]);
    world.open.insert("one/h.sh afterDeleteHelm".to_owned());
    world.sleep();
    assert_eq!(given(&world, "one"), json!({"size": 2}));
}

#[test]
fn a_module_for_which_nothing_speaks_any_more_is_removed_with_the_section_that_it_ran_with() {
    let mut one = module(10, "one");
    one.enabled = None;
    let mut world = World::new(vec![one]).hook("one", "h.sh", "beforeHelm: 1\nafterDeleteHelm: 1");
    world.data = [
        ("one", "size: 1"),
        ("oneEnabled", "true"),
        ("oneMaintenance", "NoResourceReconciliation"),
    ]
    .map(|(key, text)| (key.to_owned(), text.to_owned()))
    .into();
    world.failing.insert("one/h.sh beforeHelm".to_owned(), 1);
    world.open.insert("one/h.sh beforeHelm".to_owned());
    let mut world = world.start();
    world.edit(&[("one", None), ("oneEnabled", None)]);
    world.open.insert("one/h.sh afterDeleteHelm".to_owned());
    world.close("one/h.sh beforeHelm");
    assert_eq!(given(&world, "one"), json!({"size": 1}));
    // A later reading does not change the section either, while the removal runs.
    world.failing.insert("one/h.sh afterDeleteHelm".to_owned(), 1);
    world.close("one/h.sh afterDeleteHelm");
    world.edit(&[("another", Some("size: 3"))]);
    world.open.insert("one/h.sh afterDeleteHelm".to_owned());
    world.sleep();
    assert_eq!(given(&world, "one"), json!({"size": 1}));
}

/// The module's values that the running hook was given.
fn given(world: &World, module: &str) -> Value {
    let values = world.pending.iter().find_map(|job| match job {
        Job::RunHook(run, _) => Some(run.values.to_value()),
        _ => None,
    });
    values.expect("a hook is under way")[module].clone()
}
