//! Sections that are saved while the ConfigMap is read: which text is older, which is newer, and which is lost.

use super::*;

fn values(world: &World, module: &str) -> Value {
    let query = ValuesQuery {
        module: Some(name(module)),
        with_global: false,
        secrets: Secrets::Shown,
    };
    world.operator.answer(&query).unwrap()
}

fn wish(number: u32) -> Value {
    json!([{"op": "add", "path": "/one/wish", "value": number}])
}

/// A module whose hook before the release patches its config values. The save stays open.
fn saving() -> World {
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &json!([]), &wish(1));
    world.open.insert("save one".to_owned());
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one/h.sh beforeHelm"]);
    world
}

/// These modules, and a module with a release that no file switches on or off: a ConfigMap that does not name it removes it.
fn beside_silent(mut modules: Vec<Module>) -> World {
    let silent = Module {
        enabled: None,
        ..module(10, "silent")
    };
    modules.push(silent);
    let mut world = World::new(modules);
    world.releases.push(ReleaseSummary {
        name: "silent".to_owned(),
        ours: true,
        config: None,
    });
    world
}

/// A world as `saving` makes it, whose hook runs by a schedule, outside of the module's runs, and has `allowFailure`.
fn saving_aside() -> World {
    let config = "schedule:\n- crontab: '* * * * * *'\n  queue: side\n  allowFailure: true";
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", config)
        .patching("one/h.sh schedule", &json!([]), &wish(1))
        .start();
    world.open.insert("save one".to_owned());
    world.sleep();
    assert_eq!(world.take_log(), ["one sync", "one/h.sh schedule"]);
    world
}

#[test]
fn a_reading_from_before_our_write_takes_nothing_back_when_the_run_ends() {
    let mut world = saving();
    world.edit(&[("other", Some("a: 1"))]);
    world.close("save one");
    assert_eq!(world.take_log(), ["save one", "one sync"]);
    assert_eq!(values(&world, "one"), json!({"wish": 1}));
}

#[test]
fn a_reading_from_before_our_write_that_comes_after_it_takes_nothing_back() {
    let mut world = saving();
    let old = world.data.clone();
    world.version += 1;
    let version = world.version;
    world.close("save one");
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.handle(Event::ConfigChanged(ConfigRead::Present {
        version,
        data: old,
        provenance: Provenance::default(),
    }));
    assert_eq!(world.take_log(), ["save one", "one sync"]);
    assert_eq!(values(&world, "one"), json!({"wish": 1}));
}

#[test]
fn after_the_history_went_back_an_older_version_counts() {
    let mut world = World::new(vec![module(10, "one")]).start();
    world.edit(&[("one", Some("wish: 1"))]);
    let old = Event::ConfigChanged(ConfigRead::Present {
        version: world.version,
        data: world.data.clone(),
        provenance: Provenance::default(),
    });
    world.edit(&[("one", Some("wish: 2"))]);
    world.take_log();
    world.handle(old.clone());
    assert_eq!(values(&world, "one"), json!({"wish": 2}), "it comes late");
    world.handle(Event::HistoryWentBack);
    assert_eq!(values(&world, "one"), json!({"wish": 2}), "that alone changes nothing");
    world.handle(old);
    assert_eq!(values(&world, "one"), json!({"wish": 1}));
    assert_eq!(world.take_log(), ["one sync"]);
}

#[test]
fn an_edit_after_our_write_counts_although_it_is_read_before_the_save_ends() {
    let mut world = saving_aside();
    world.version += 1;
    let written = world.version;
    world.edit(&[("one", Some("wish: 2"))]);
    assert_eq!(world.take_log(), [""; 0]);
    let job = world.pending.remove(0);
    let written = Saved::Written {
        version: written,
        created: false,
    };
    world.handle(Event::JobFinished(saved(&job, written)));
    assert_eq!(world.take_log(), ["one sync"]);
    assert_eq!(values(&world, "one"), json!({"wish": 2}));
}

#[test]
fn a_write_that_is_read_and_then_said_to_have_failed_counts_all_the_same() {
    let mut world = saving_aside();
    world.failing.insert("save one".to_owned(), 1);
    world.edit(&[("one", Some("wish: 1"))]);
    assert_eq!(world.take_log(), [""; 0]);
    world.close("save one");
    assert_eq!(world.take_log(), ["save one fails", "one sync"]);
    assert_eq!(values(&world, "one"), json!({"wish": 1}));
}

#[test]
fn an_edit_that_was_read_during_the_save_is_what_the_next_try_is_put_on() {
    let mut world = saving();
    world.edit(&[("one", Some("mine: 1"))]);
    let job = world.pending.remove(0);
    let read = ConfigRead::Present {
        version: world.version,
        data: world.data.clone(),
        provenance: Provenance::default(),
    };
    world.open.clear();
    world.handle(Event::JobFinished(saved(&job, Saved::Conflict(read))));
    let failed = |notice: &Notice| matches!(notice, Notice::HookFailed { .. });
    assert!(!world.notices.iter().any(failed), "{:?}", world.notices);
    assert_eq!(world.data["one"].trim(), "mine: 1\nwish: 1");
    assert_eq!(values(&world, "one"), json!({"mine": 1, "wish": 1}));
}

#[test]
fn an_absence_that_a_save_found_does_not_hide_what_was_read_meanwhile() {
    let mut world = saving_aside();
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.edit(&[("one", Some("mine: 1"))]);
    let job = world.pending.remove(0);
    world.open.clear();
    let none = saved(&job, Saved::Conflict(ConfigRead::Missing));
    world.handle(Event::JobFinished(none));
    assert_eq!(world.data["one"].trim(), "mine: 1\nwish: 1");
    // Without a reading meanwhile the save counts, and nothing is written into a new ConfigMap.
    world.open.insert("save one".to_owned());
    world.edit(&[("one", Some("mine: 2"))]);
    world.sleep();
    let job = world.pending.remove(0);
    world.open.clear();
    let none = saved(&job, Saved::Conflict(ConfigRead::Missing));
    world.handle(Event::JobFinished(none));
    assert_eq!(world.data["one"], "mine: 2");
    assert!(
        matches!(world.notices.last(), Some(Notice::HookFailed { .. })),
        "{:?}",
        world.notices.last()
    );
}

#[test]
fn what_is_older_than_the_config_map_that_we_made_says_nothing() {
    let mut world = beside_silent(vec![module(20, "one")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &json!([]), &wish(1));
    // A person created a ConfigMap and deleted it again before we created ours. The readings of these come late.
    world.version += 1;
    let gone = ConfigRead::Present {
        version: world.version,
        data: BTreeMap::from([("other".to_owned(), "a: 1".to_owned())]),
        provenance: Provenance::default(),
    };
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert!(world.take_log().contains(&"save one".to_owned()));
    world.handle(Event::ConfigChanged(gone));
    assert_eq!(world.take_log(), [""; 0]);
}

#[test]
fn an_empty_config_map_is_never_ours_although_we_have_written_into_it_since() {
    let mut world = beside_silent(vec![module(20, "one")])
        .hook("one", "h.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: side")
        .patching("one/h.sh schedule", &json!([]), &wish(1));
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.edit(&[("silentEnabled", Some("true"))]);
    world.take_log();
    // A person replaces it by an empty one. The reading of that comes later than our write into it.
    world.data.clear();
    let empty = ConfigRead::Present {
        version: world.version + 1,
        data: BTreeMap::new(),
        provenance: Provenance::default(),
    };
    world.version += 1;
    world.sleep();
    assert_eq!(world.take_log(), ["one/h.sh schedule", "save one", "one sync"]);
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.handle(Event::ConfigChanged(empty));
    assert!(world.take_log().contains(&"silent delete".to_owned()));
}

#[test]
fn what_is_saved_for_a_module_that_was_switched_off_is_only_saved() {
    let both = json!([{"op": "add", "path": "/one/seen", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: side")
        .patching("one/h.sh schedule", &both, &wish(1))
        .start();
    world.open.insert("save one".to_owned());
    world.sleep();
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.state("one"), "Disabled");
    world.close("save one");
    assert_eq!(values(&world, "one"), json!({"wish": 1}));
}

#[test]
fn a_late_absence_of_the_config_map_is_over_when_its_last_version_is_told_again() {
    let mut off = module(10, "one");
    off.enabled = None;
    let mut world = World::new(vec![off]).start();
    world.edit(&[("oneEnabled", Some("true"))]);
    world.take_log();
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.version -= 1;
    world.edit(&[]);
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(world.take_log(), ["one delete"]);
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.version -= 1;
    world.edit(&[]);
    assert!(!world.operator.config.is_missing());
}

#[test]
fn who_takes_a_section_out_of_a_config_map_that_we_made_has_spoken_in_it() {
    let other = json!([{"op": "add", "path": "/two/wish", "value": 1}]);
    let mut world = beside_silent(vec![module(20, "one"), module(30, "two")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &json!([]), &wish(1))
        .hook("two", "h.sh", "beforeHelm: 1")
        .patching("two/h.sh beforeHelm", &json!([]), &other);
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.edit(&[]);
    assert!(world.data.contains_key("one") && world.data.contains_key("two"));
    let deleted = |log: Vec<String>| log.contains(&"silent delete".to_owned());
    assert!(!deleted(world.take_log()), "what we left out says nothing");
    world.edit(&[("one", None)]);
    assert!(deleted(world.take_log()));
}

#[test]
fn what_we_wrote_says_nothing_more_when_it_is_told_again_after_an_absence() {
    let mut world = beside_silent(vec![module(20, "one")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &json!([]), &wish(1));
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert!(world.data.contains_key("one"));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.edit(&[]);
    assert!(!world.take_log().contains(&"silent delete".to_owned()));
}

#[test]
fn a_section_that_waits_for_a_removal_counts_once_a_hook_wants_the_module_after_all() {
    let switch = |on: bool| json!([{"op": "add", "path": "/oneEnabled", "value": on}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("", "g.sh", "beforeAll: 1")
        .patching("g.sh beforeAll", &switch(false), &json!([]));
    world.inventory.modules[0].has_enabled_script = true;
    world.data = [("one", "size: 1"), ("oneEnabled", "true")]
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .into();
    let mut world = world.start().patching("g.sh beforeAll", &switch(true), &json!([]));
    for open in ["g.sh beforeAll", "one enabled?"] {
        world.open.insert(open.to_owned());
    }
    world.edit(&[("one", None), ("oneEnabled", None)]);
    assert_eq!(values(&world, "one"), json!({"size": 1}));
    world.close("g.sh beforeAll");
    assert_eq!(values(&world, "one"), json!({}));
}

#[test]
fn a_config_map_that_we_made_is_no_word_of_people_either_when_nobody_heard_that_it_was_made() {
    let mut world = beside_silent(vec![module(20, "one")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &json!([]), &wish(1));
    world.open.insert("save one".to_owned());
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    let job = world.pending.remove(0);
    let Job::SaveConfig { text, .. } = &job else {
        panic!("{job:?}")
    };
    let lost = Failure::new(Class::Unavailable, "the connection was lost");
    world.handle(Event::JobFinished(job.failed(lost)));
    let made = BTreeMap::from([("one".to_owned(), text.clone())]);
    world.provenance.made_with = Some(digest(&made));
    world.edit(&[("one", Some(text))]);
    assert!(!world.take_log().contains(&"silent delete".to_owned()));
    world.edit(&[("two", Some("size: 1"))]);
    assert!(world.take_log().contains(&"silent delete".to_owned()));
}

#[test]
fn who_waits_for_a_section_goes_on_when_its_save_has_failed() {
    let config = |queue| format!("schedule:\n- crontab: '* * * * * *'\n  queue: {queue}\n  allowFailure: true");
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "a.sh", &config("left"))
        .hook("one", "b.sh", &config("right"))
        .patching("one/a.sh schedule", &json!([]), &wish(1))
        .patching("one/b.sh schedule", &json!([]), &wish(2))
        .start();
    world.open.insert("save one".to_owned());
    world.sleep();
    let saves = |world: &World| {
        world
            .pending
            .iter()
            .map(|job| (job.id(), words(job)))
            .collect::<Vec<_>>()
    };
    let [(first, _)] = saves(&world)[..] else {
        panic!("{:?}", world.pending)
    };
    let job = world.pending.remove(0);
    world.handle(Event::JobFinished(job.failed(Failure::new(Class::Unavailable, "no"))));
    let [(second, ref of)] = saves(&world)[..] else {
        panic!("{:?}", world.pending)
    };
    assert!(second != first && of == "save one");
}

#[test]
fn a_save_of_the_state_that_was_refused_is_given_up_when_there_is_nothing_to_save_any_more() {
    let mut world = World::new(vec![module(10, "one")]).start();
    world.failing.insert(String::new(), 1);
    world.edit(&[("one", Some("mine: 1"))]);
    let (_, waiting) = world.operator.poll_timeout().unwrap();
    assert!(
        matches!(&waiting, Waiting::Step(step) if step.contains("state Secret")),
        "{waiting:?}"
    );
    world.edit(&[("one", None)]);
    assert_eq!(world.operator.poll_timeout(), None);
}

#[test]
fn a_save_of_the_state_without_an_answer_is_made_again_although_nothing_is_to_be_saved_any_more() {
    let mut world = World::new(vec![module(10, "one")]).start();
    let is_save = |job: &Job| matches!(job, Job::SaveState { .. });
    world.open.insert(String::new());
    world.edit(&[("one", Some("mine: 1"))]);
    let save = world.pending.iter().position(is_save).unwrap();
    let job = world.pending.remove(save);
    world.handle(Event::JobFinished(
        job.failed(Failure::new(Class::TimedOut, "no answer")),
    ));
    world.open.clear();
    world.edit(&[("one", None)]);
    world.last_good = Some([("one".to_owned(), "mine: 1".to_owned())].into());
    world.sleep();
    assert_eq!(
        world.last_good,
        Some(BTreeMap::new()),
        "it was carried out, and is taken back"
    );
}
