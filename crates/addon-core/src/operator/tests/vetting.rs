//! Checks against schemas that take long: what waits for them, what does not, and what happens if inputs change meanwhile.

use values_schema::schema::Files;

use super::*;

fn values(world: &World, module: &str) -> Value {
    let query = ValuesQuery {
        module: Some(name(module)),
        with_global: false,
        secrets: Secrets::Shown,
    };
    world.operator.answer(&query).unwrap()
}

/// A module whose size has a rule in the schema, and a module without a schema.
fn modules() -> Vec<Module> {
    let mut files = Files::default();
    files.insert(
        "c",
        "properties: {size: {type: integer}, wish: {type: integer}}\n\
         x-deckhouse-validations: [{expression: '!has(self.size) || self.size < 10', message: too big}]",
    );
    files.insert("v", "x-extend: {schema: c}\nproperties: {own: {type: integer}}");
    let ruled = Module {
        schemas: Schemas::load(&files, Some("c"), Some("v")).unwrap(),
        ..module(10, "one")
    };
    vec![ruled, module(20, "two")]
}

fn size(size: i64) -> String {
    format!("size: {size}")
}

/// Runs both modules. Checks of the values of module `one` stay open from then on.
fn open(world: World) -> World {
    let mut world = world.start();
    world.take_log();
    world.open.insert("vet one".to_owned());
    world
}

/// Ends the first open check. Later checks stay open.
fn end_check(world: &mut World) {
    let is_check = |job: &Job| matches!(job, Job::Vet(..));
    let at = world.pending.iter().position(is_check).expect("a check is under way");
    let job = world.pending.remove(at);
    let finished = world.carry_out(&job);
    world.handle(Event::JobFinished(finished));
}

fn rejected(world: &World) -> Vec<&str> {
    let messages = world.notices.iter().filter_map(|notice| match notice {
        Notice::ConfigRejected { message, .. } => message.lines().last(),
        _ => None,
    });
    messages.collect()
}

const SIDE: &str = "schedule:\n- crontab: '* * * * * *'\n  queue: side";

fn add(path: &str, number: i64) -> Value {
    json!([{"op": "add", "path": path, "value": number}])
}

#[test]
fn an_edit_counts_as_a_whole_once_its_sections_are_known_to_be_good() {
    let mut world = open(World::new(modules()));
    world.edit(&[("one", Some(&size(5))), ("two", Some("a: 1"))]);
    assert_eq!(world.take_log(), [""; 0]);
    assert_eq!(values(&world, "two"), json!({}), "nor does the rest of it");
    assert_eq!(
        world.status().waiting,
        ["hold 'one' of the ConfigMap against the schema"]
    );
    end_check(&mut world);
    assert_eq!(world.take_log(), ["vet one", "one sync", "two sync"]);
    assert_eq!(values(&world, "one"), json!({"size": 5}));
    assert_eq!(world.status().waiting, [""; 0]);
    world.edit(&[("two", Some("a: 2"))]);
    assert_eq!(world.take_log(), ["two sync"], "what was good is not asked again");
}

#[test]
fn a_section_that_breaks_a_rule_is_told_and_left_out() {
    let mut world = open(World::new(modules()));
    world.edit(&[("one", Some(&size(50))), ("two", Some("a: 1"))]);
    end_check(&mut world);
    assert_eq!(world.take_log(), ["vet one", "two sync"]);
    assert_eq!(rejected(&world), ["\t* too big"]);
    assert_eq!(values(&world, "one"), json!({}));
    world.edit(&[("two", Some("a: 2"))]);
    assert_eq!(world.take_log(), ["two sync"], "and holds up no other edit");
}

#[test]
fn a_later_edit_takes_the_place_of_one_that_waits() {
    let mut world = open(World::new(modules()));
    world.edit(&[("one", Some(&size(5)))]);
    world.edit(&[("one", Some(&size(6)))]);
    assert_eq!(world.pending.len(), 1, "one check at a time");
    end_check(&mut world);
    assert_eq!(world.take_log(), ["vet one"]);
    assert_eq!(
        values(&world, "one"),
        json!({}),
        "what was checked first is not wanted any more"
    );
    end_check(&mut world);
    assert_eq!(world.take_log(), ["vet one", "one sync"]);
    assert_eq!(values(&world, "one"), json!({"size": 6}));
}

#[test]
fn an_edit_that_takes_back_what_waits_counts_at_once() {
    let mut world = open(World::new(modules()));
    world.edit(&[("one", Some(&size(50)))]);
    world.edit(&[("one", None), ("two", Some("a: 1"))]);
    assert_eq!(world.take_log(), ["two sync"]);
    end_check(&mut world);
    assert_eq!(world.take_log(), ["vet one"], "and the answer is for nobody");
    assert_eq!(rejected(&world), [""; 0]);
    assert_eq!(values(&world, "one"), json!({}));
}

#[test]
fn an_older_reading_does_not_take_the_place_of_a_newer_one() {
    let mut world = open(World::new(modules()));
    let (version, data) = (world.version, world.data.clone());
    world.edit(&[("one", Some(&size(5)))]);
    world.handle(Event::ConfigChanged(ConfigRead::Present {
        version,
        data,
        provenance: Provenance::default(),
    }));
    end_check(&mut world);
    assert_eq!(values(&world, "one"), json!({"size": 5}));
}

#[test]
fn a_check_that_nobody_can_make_leaves_the_section_out() {
    let mut world = open(World::new(modules()));
    world.failing.insert("vet one".to_owned(), 1);
    world.edit(&[("one", Some(&size(5))), ("two", Some("a: 1"))]);
    end_check(&mut world);
    assert_eq!(world.take_log(), ["vet one fails", "two sync"]);
    assert_eq!(rejected(&world), ["\t* no"]);
    world.edit(&[("two", Some("a: 2"))]);
    end_check(&mut world);
    assert_eq!(world.take_log(), ["vet one", "one sync", "two sync"], "asked again");
}

#[test]
fn nothing_begins_before_what_was_good_in_an_earlier_life_is_known_to_be_so_in_this_one() {
    let mut world = World::new(modules());
    world
        .last_good
        .get_or_insert_default()
        .insert("one".to_owned(), size(7));
    world.data.insert("one".to_owned(), size(50));
    world.open.insert("vet one".to_owned());
    let mut world = world.start();
    assert_eq!(world.take_log(), [""; 0]);
    end_check(&mut world);
    assert_eq!(
        world.take_log(),
        ["vet one"],
        "what is kept of it has a check of its own"
    );
    end_check(&mut world);
    let log = world.take_log();
    assert_eq!(
        (log[0].as_str(), log.contains(&"one sync".to_owned())),
        ("vet one", true)
    );
    assert_eq!(values(&world, "one"), json!({"size": 7}));
    assert_eq!(rejected(&world), ["\t* too big"]);
}

#[test]
fn an_edit_while_the_start_waits_for_a_check_counts_after_it() {
    let mut world = World::new(modules());
    world.data.insert("one".to_owned(), size(5));
    world.open.insert("vet one".to_owned());
    let mut world = world.start();
    world.edit(&[("one", Some(&size(50)))]);
    end_check(&mut world);
    end_check(&mut world);
    assert_eq!(values(&world, "one"), json!({"size": 5}), "it was good for a moment");
    assert_eq!(world.state("one"), "Ready");
}

#[test]
fn a_hook_has_run_once_its_patch_is_known_to_be_good() {
    let world =
        World::new(modules())
            .hook("one", "h.sh", SIDE)
            .patching("one/h.sh schedule", &add("/one/size", 5), &json!([]));
    let mut world = open(world);
    world.sleep();
    assert_eq!(world.take_log(), ["one/h.sh schedule"]);
    assert_eq!(world.tasks("side").len(), 1, "it keeps its place");
    assert_eq!(values(&world, "one"), json!({}));
    end_check(&mut world);
    assert_eq!(world.take_log(), ["vet one", "one sync"]);
    assert_eq!(values(&world, "one"), json!({"size": 5}));
}

#[test]
fn a_patch_that_breaks_a_rule_fails_its_hook() {
    let mut world = World::new(modules()).hook("one", "h.sh", "beforeHelm: 1").patching(
        "one/h.sh beforeHelm",
        &add("/one/size", 50),
        &json!([]),
    );
    world.open.insert("vet one".to_owned());
    let mut world = world.start();
    let waits = world.waits_for("one");
    assert_eq!(waits, "patched values of module 'one' to be held against their schema");
    end_check(&mut world);
    assert_eq!(
        world.take_log(),
        ["one/h.sh beforeHelm", "vet one", "two sync"],
        "the others go on"
    );
    assert!(world.waits_for("one").contains("too big"), "{}", world.waits_for("one"));
}

#[test]
fn a_check_that_cannot_be_made_fails_the_hook() {
    let mut world = World::new(modules()).hook("one", "h.sh", "beforeHelm: 1").patching(
        "one/h.sh beforeHelm",
        &add("/one/size", 5),
        &json!([]),
    );
    world.failing.insert("vet one".to_owned(), 1);
    let mut world = world.start();
    assert!(
        world
            .waits_for("one")
            .contains("hold patched values against their schema: no"),
        "{}",
        world.waits_for("one")
    );
    world.sleep();
    assert_eq!(
        values(&world, "one"),
        json!({"size": 5}),
        "and the next try may succeed"
    );
}

#[test]
fn patches_of_one_owner_follow_each_other() {
    let world = World::new(modules())
        .hook("one", "a.sh", SIDE)
        .hook("one", "b.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: other")
        .patching("one/a.sh schedule", &add("/one/size", 5), &json!([]))
        .patching("one/b.sh schedule", &add("/one/own", 1), &json!([]));
    let mut world = open(world);
    world.sleep();
    assert_eq!(world.pending.len(), 1, "{:?}", world.pending);
    end_check(&mut world);
    assert_eq!(values(&world, "one"), json!({"size": 5}));
    end_check(&mut world);
    assert_eq!(values(&world, "one"), json!({"size": 5, "own": 1}));
}

#[test]
fn an_answer_about_values_that_have_changed_is_asked_for_anew() {
    let world =
        World::new(modules())
            .hook("one", "h.sh", SIDE)
            .patching("one/h.sh schedule", &add("/one/own", 1), &json!([]));
    let mut world = open(world);
    world.sleep();
    world.take_log();
    // An empty section needs no check. It changes the base of the patch all the same.
    world.edit(&[("one", Some("{}"))]);
    world.edit(&[("one", Some(&size(5)))]);
    assert_eq!(world.pending.len(), 2, "the patch and the section");
    world.open.clear();
    world.drain();
    assert_eq!(values(&world, "one"), json!({"size": 5, "own": 1}));
}

#[test]
fn nothing_comes_of_a_patch_of_a_module_that_was_switched_off_while_it_was_checked() {
    let world =
        World::new(modules())
            .hook("one", "h.sh", SIDE)
            .patching("one/h.sh schedule", &add("/one/size", 5), &json!([]));
    let mut world = open(world);
    world.sleep();
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.state("one"), "Disabled");
    end_check(&mut world);
    assert_eq!(values(&world, "one"), json!({}));
    assert_eq!(world.tasks("side"), [""; 0]);
    world.edit(&[("oneEnabled", Some("true"))]);
    assert_eq!(values(&world, "one"), json!({}));
}

#[test]
fn a_section_is_saved_once_a_reading_that_came_before_it_counts() {
    let world =
        World::new(modules())
            .hook("one", "h.sh", SIDE)
            .patching("one/h.sh schedule", &json!([]), &add("/one/wish", 1));
    let mut world = open(world);
    world.edit(&[("one", Some(&size(5)))]);
    world.sleep();
    assert_eq!(world.take_log(), ["one/h.sh schedule"]);
    end_check(&mut world);
    assert_eq!(values(&world, "one"), json!({"size": 5}));
    end_check(&mut world);
    assert_eq!(world.data["one"].trim(), "size: 5\nwish: 1");
    assert_eq!(values(&world, "one"), json!({"size": 5, "wish": 1}));
    world.take_log();
    world.edit(&[]);
    assert_eq!(
        world.take_log(),
        [""; 0],
        "what we wrote ourselves is not checked again"
    );
}

#[test]
fn a_conflict_with_a_section_that_has_to_be_checked_first_is_no_failure() {
    let world =
        World::new(modules())
            .hook("one", "h.sh", SIDE)
            .patching("one/h.sh schedule", &json!([]), &add("/one/wish", 1));
    let mut world = open(world);
    world.open.insert("save one".to_owned());
    world.sleep();
    end_check(&mut world);
    let job = world.pending.remove(0);
    assert!(matches!(job, Job::SaveConfig { .. }), "{job:?}");
    world.data.insert("one".to_owned(), size(5));
    world.version += 1;
    let read = ConfigRead::Present {
        version: world.version,
        data: world.data.clone(),
        provenance: Provenance::default(),
    };
    world.handle(Event::JobFinished(saved(&job, Saved::Conflict(read))));
    world.open.clear();
    world.drain();
    let failed = |notice: &Notice| matches!(notice, Notice::HookFailed { .. });
    assert!(!world.notices.iter().any(failed), "{:?}", world.notices);
    assert_eq!(values(&world, "one"), json!({"size": 5, "wish": 1}));
}

#[test]
fn the_job_that_hands_values_to_helm_holds_them_against_the_schema() {
    let mut world = World::new(modules());
    world.inventory.modules[0].values = json!({"size": 50});
    let mut world = world.start();
    assert!(
        world.waits_for("one").contains("unfit for helm"),
        "{}",
        world.waits_for("one")
    );
    world.take_log();
    world.edit(&[("one", Some(&size(5)))]);
    assert_eq!(world.take_log(), ["vet one", "one sync"]);
    world.open.insert("one sync".to_owned());
    world.edit(&[("global", Some("a: 1"))]);
    let job = world.pending.last().unwrap();
    assert!(
        matches!(job, Job::SyncRelease { vetting: None, .. }),
        "the same values are not checked twice: {job:?}"
    );
}

#[test]
fn after_a_request_to_stop_no_check_starts() {
    let world =
        World::new(modules())
            .hook("one", "h.sh", SIDE)
            .patching("one/h.sh schedule", &add("/one/size", 5), &json!([]));
    let mut world = world.start();
    world.take_log();
    world.open.insert("one/h.sh schedule".to_owned());
    world.sleep();
    world.handle(Event::ShutdownRequested);
    world.edit(&[("one", Some(&size(5)))]);
    world.close("one/h.sh schedule");
    assert_eq!(world.take_log(), ["one/h.sh schedule", "exit"]);
}
