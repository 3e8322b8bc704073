//! Converges, edits, removals, and their obstacles.

use serde_json::json;

use super::*;

#[test]
fn a_first_converge_goes_through_everything_in_order() {
    let mut world = World::new(vec![module(20, "two"), module(10, "one")])
        .hook("", "g.sh", "onStartup: 1\nbeforeAll: 1\nafterAll: 1")
        .hook("one", "h.sh", "onStartup: 1\nbeforeHelm: 1\nafterHelm: 1")
        .start();
    assert_eq!(
        world.take_log(),
        [
            "g.sh onStartup",
            "g.sh beforeAll",
            "one/h.sh onStartup",
            "one/h.sh beforeHelm",
            "one sync",
            "one/h.sh afterHelm",
            "two sync",
            "g.sh afterAll"
        ]
    );
    assert_eq!(
        (world.state("one"), world.state("two")),
        ("Ready".to_owned(), "Ready".to_owned())
    );
    let status = world.operator.answer(&StatusQuery);
    assert!(status.ready && status.waiting.is_empty(), "{status:?}");
}

#[test]
fn an_edit_of_one_section_runs_that_module_and_one_of_the_global_section_runs_all() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")])
        .hook("", "g.sh", "beforeAll: 1")
        .start();
    world.take_log();
    world.edit(&[("one", Some("size: 1"))]);
    assert_eq!(world.take_log(), ["one sync"]);
    world.edit(&[("one", Some("# remark\nsize:   1"))]);
    assert_eq!(world.take_log(), [""; 0]);
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["g.sh beforeAll", "one sync", "two sync"]);
}

#[test]
fn a_flag_removes_a_module_with_its_hooks_and_brings_it_back() {
    let hooks = "onStartup: 1\nbeforeDeleteHelm: 1\nafterDeleteHelm: 1";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", hooks).start();
    world.take_log();
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(
        world.take_log(),
        ["one/h.sh beforeDeleteHelm", "one delete", "one/h.sh afterDeleteHelm"]
    );
    assert_eq!(world.state("one"), "Disabled");
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(world.take_log(), ["one/h.sh onStartup", "one sync"]);
}

#[test]
fn a_failing_module_holds_back_only_who_needs_it_and_its_recovery_runs_the_last_hooks_again() {
    let mut needy = module(20, "needy");
    needy.depends_on = vec![name("bad")];
    let mut world = World::new(vec![module(10, "bad"), module(20, "good"), needy]).hook("", "g.sh", "afterAll: 1");
    world.failing.insert("bad sync".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["bad sync fails", "good sync", "g.sh afterAll"]);
    world.sleep();
    assert_eq!(world.take_log(), ["bad sync", "needy sync", "g.sh afterAll"]);
}

#[test]
fn a_deleted_config_map_changes_nothing_and_an_empty_one_does() {
    let mut off = module(10, "one");
    off.enabled = None;
    let mut world = World::new(vec![off]).start();
    world.edit(&[("oneEnabled", Some("true")), ("one", Some("size: 1"))]);
    assert_eq!(world.take_log(), ["one sync"]);
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert_eq!(world.take_log(), [""; 0]);
    assert_eq!(world.state("one"), "Ready");
    world.edit(&[("oneEnabled", None), ("one", None)]);
    assert_eq!(world.take_log(), ["one delete"]);
}

#[test]
fn a_broken_section_leaves_its_module_on_the_last_good_one() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).start();
    world.edit(&[("one", Some("size: 1"))]);
    world.take_log();
    world.edit(&[("one", Some("size: [")), ("two", Some("size: 2"))]);
    assert_eq!(world.take_log(), ["two sync"]);
    let query = ValuesQuery {
        module: Some(name("one")),
        with_global: false,
        secrets: Secrets::Shown,
    };
    assert_eq!(world.operator.answer(&query), Ok(json!({"size": 1})));
    assert!(
        world
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::ConfigRejected { key, .. } if key == "one"))
    );
}

#[test]
fn a_config_patch_is_saved_first_and_sets_off_nothing() {
    let patch = json!([{"op": "add", "path": "/one/wish", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &json!([]), &patch)
        .start();
    assert_eq!(world.take_log(), ["one/h.sh beforeHelm", "save one", "one sync"]);
    world.edit(&[]);
    assert_eq!(world.take_log(), [""; 0]);
    assert_eq!(world.data["one"].trim(), "wish: 1");
}

#[test]
fn values_changed_after_the_release_run_the_module_once_more() {
    let patch = json!([{"op": "add", "path": "/one/seen", "value": true}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "afterHelm: 1")
        .patching("one/h.sh afterHelm", &patch, &json!([]))
        .start();
    assert_eq!(
        world.take_log(),
        ["one sync", "one/h.sh afterHelm", "one sync", "one/h.sh afterHelm"]
    );
}

#[test]
fn a_restart_of_a_converge_waits_for_the_run_under_way() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook("", "g.sh", "beforeAll: 1");
    world.open.insert("one sync".to_owned());
    let mut world = world.start();
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["g.sh beforeAll"]);
    world.close("one sync");
    assert_eq!(world.take_log(), ["one sync", "g.sh beforeAll", "one sync", "two sync"]);
}

/// A hook of `needy` asks for a run while the hooks before all modules of a converge run. That converge will find that
/// the module which `needy` depends on is switched off.
fn asked_for_beside() -> World {
    let mut needy = module(20, "needy");
    needy.depends_on = vec![name("need")];
    let mut world = World::new(vec![module(10, "need"), needy])
        .hook("", "g.sh", "beforeAll: 1")
        .hook("needy", "h.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: side")
        .patching(
            "needy/h.sh schedule",
            &json!([{"op": "add", "path": "/needy/tick", "value": 1}]),
            &json!([]),
        )
        .start();
    world.take_log();
    world.open.insert("g.sh beforeAll".to_owned());
    world
}

#[test]
fn a_run_that_is_asked_for_beside_the_hooks_before_all_modules_waits_for_what_the_converge_decides() {
    let mut world = asked_for_beside();
    world.edit(&[("needEnabled", Some("false"))]);
    world.sleep();
    assert_eq!(world.take_log(), ["needy/h.sh schedule"]);
    assert_eq!(
        world.waits_for("needy"),
        "the converge under way: the hooks before all modules: 'g.sh'"
    );
    world.close("g.sh beforeAll");
    assert_eq!(world.take_log(), ["g.sh beforeAll", "need delete"]);
    assert!(world.waits_for("needy").contains("'need', which is disabled"));
    world.edit(&[("needEnabled", None)]);
    assert_eq!(world.take_log(), ["g.sh beforeAll", "need sync", "needy sync"]);
}

#[test]
fn such_a_run_is_the_one_that_the_converge_wants() {
    let mut world = asked_for_beside();
    world.edit(&[("global", Some("color: red"))]);
    world.sleep();
    world.close("g.sh beforeAll");
    assert_eq!(
        world.take_log(),
        ["needy/h.sh schedule", "g.sh beforeAll", "need sync", "needy sync"]
    );
}

#[test]
fn foreign_releases_stay_and_those_without_a_module_are_purged_after_the_first_converge() {
    let mut world = World::new(vec![module(10, "one")]);
    let release = |name: &str, ours| ReleaseSummary {
        name: name.to_owned(),
        ours,
        config: None,
    };
    world.releases = vec![release("gone", true), release("theirs", false), release("one", true)];
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one sync", "gone delete"]);
}

#[test]
fn a_schedule_fires_after_the_first_converge_and_its_change_of_values_runs_the_module() {
    let patch = json!([{"op": "add", "path": "/one/tick", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: side")
        .patching("one/h.sh schedule", &patch, &json!([]))
        .start();
    world.take_log();
    world.sleep();
    assert_eq!(world.take_log(), ["one/h.sh schedule", "one sync"]);
    world.sleep();
    assert_eq!(world.take_log(), ["one/h.sh schedule"]);
}

#[test]
fn what_a_hook_asks_for_after_its_module_was_switched_off_is_not_found_by_the_next_life() {
    let patch = json!([{"op": "add", "path": "/one/tick", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: side")
        .patching("one/h.sh schedule", &patch, &json!([]))
        .start();
    world.open.insert("one/h.sh schedule".to_owned());
    world.sleep();
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.state("one"), "Disabled");
    world.close("one/h.sh schedule");
    world.edit(&[("oneEnabled", None)]);
    let query = ValuesQuery {
        module: Some(name("one")),
        with_global: false,
        secrets: Secrets::Shown,
    };
    assert_eq!(world.operator.answer(&query), Ok(json!({})));
}

#[test]
fn nothing_starts_after_a_shutdown_was_asked_for() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]);
    world.open.insert("one sync".to_owned());
    let mut world = world.start();
    world.handle(Event::ShutdownRequested);
    world.close("one sync");
    assert_eq!(world.take_log(), ["one sync", "exit"]);
}

#[test]
fn a_failing_script_decides_nothing_and_is_asked_again() {
    let mut scripted = module(10, "one");
    scripted.has_enabled_script = true;
    let mut world = World::new(vec![scripted, module(20, "two")]);
    world.failing.insert("one enabled?".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one enabled? fails", "two sync"]);
    world.sleep();
    assert_eq!(world.take_log(), ["one enabled?", "one sync", "two sync"]);
}

#[test]
fn a_step_that_fails_again_for_the_same_reason_is_told_as_such() {
    let mut world = World::new(vec![module(10, "one")]);
    // Both steps of the start are jobs without a text.
    world.failing.insert(String::new(), 4);
    let mut world = world.start();
    world.sleep();
    let again: Vec<bool> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::StepFailed { again, .. } => Some(*again),
            _ => None,
        })
        .collect();
    assert_eq!(again, [false, false, true, true]);
}

#[test]
fn the_first_reading_of_the_config_map_ends_the_waits_for_the_api_server() {
    let mut world = World::new(vec![module(10, "one")]);
    world.failing.insert(String::new(), 2);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    assert_eq!(world.take_log(), [" fails", " fails"]);
    world.edit(&[]);
    assert_eq!(world.take_log(), ["one sync"], "no time has passed");
}

#[test]
fn a_module_that_recovers_beside_the_hooks_after_all_modules_lets_them_run_again() {
    let mut world = World::new(vec![module(10, "one")]).hook("", "g.sh", "afterAll: 1");
    world.failing.insert("one sync".to_owned(), 1);
    world.open.insert("g.sh afterAll".to_owned());
    let mut world = world.start();
    world.sleep();
    assert_eq!(world.take_log(), ["one sync fails", "one sync"]);
    world.close("g.sh afterAll");
    assert_eq!(world.take_log(), ["g.sh afterAll", "g.sh afterAll"]);
}
