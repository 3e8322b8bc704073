//! The preparations of a standby, and their use when it leads.

use WatchEvent::{Added, Modified};

use super::*;

const PODS: &str = "kubernetes:\n- name: pods\n  kind: Pod";
const UNREAD: &str = "kubernetes:\n- name: pods\n  kind: Pod\n  executeHookOnSynchronization: false";
const CONVERTING: &str = "kubernetesCustomResourceConversion:\n- name: c\n  crdName: things.example.com\n  \
                          conversions:\n  - fromVersion: example.com/v1\n    toVersion: example.com/v2";

fn off(module: Module) -> Module {
    Module {
        enabled: Some(false),
        ..module
    }
}

/// A module without a chart.
fn plain(order: u32, text: &str) -> Module {
    Module {
        has_chart: false,
        ..module(order, text)
    }
}

fn elected(world: &mut World) -> Vec<String> {
    world.handle(Event::Elected);
    world.take_log()
}

fn says_no(world: &mut World, script: &str) {
    let asked = |job: &Job| words(job) == script;
    let job = world.pending.remove(world.pending.iter().position(asked).unwrap());
    let no = answered(&job, ScriptAnswer::default());
    world.handle(Event::JobFinished(no));
}

/// The leader has taken or dropped all preparations.
fn assert_kept_nothing(world: &World) {
    let (kept, nothing) = (&world.operator.warmth, Warmth::default());
    assert_eq!(format!("{kept:?}"), format!("{nothing:?}"));
}

#[test]
fn a_standby_watches_what_global_hooks_will_read_and_tells_nobody() {
    let mut world = World::new(Vec::new())
        .hook("", "all.sh", PODS)
        .hook("", "unread.sh", UNREAD)
        .standby(4);
    assert_eq!(world.take_log(), ["all.sh watch", "unread.sh watch"]);
    world.change("all.sh pods", Added, "x");
    world.change("unread.sh pods", Added, "x");
    assert!(world.take_log().is_empty());
    assert_eq!(elected(&mut world), ["all.sh kubernetes [pods all]"]);
    world.change("all.sh pods", Added, "y");
    world.change("unread.sh pods", Added, "y");
    let told = [
        "all.sh kubernetes [pods Added y]",
        "unread.sh kubernetes [pods Added y]",
    ];
    assert_eq!(world.take_log(), told);
}

/// A hook with a binding that has no first run, beside a hook whose first run takes long.
fn with_half_unread(open: &[&str]) -> World {
    let nodes = "- name: nodes\n  kind: Node\n  executeHookOnSynchronization: false";
    let mut world = World::new(Vec::new()).hook("", "g.sh", &format!("{PODS}\n{nodes}"));
    world.open.extend(open.iter().map(|words| (*words).to_owned()));
    world.standby(4)
}

#[test]
fn what_changes_once_a_watch_was_taken_is_told_though_nobody_read_it() {
    let run = "g.sh kubernetes";
    let mut taken = with_half_unread(&[run]);
    taken.change("g.sh nodes", Added, "early");
    elected(&mut taken);
    let mut awaited = with_half_unread(&[run, "g.sh watch"]);
    elected(&mut awaited);
    awaited.close("g.sh watch");
    for mut world in [taken, awaited] {
        world.take_log();
        world.change("g.sh nodes", Added, "x");
        world.close(run);
        let told = ["g.sh kubernetes [pods all]", "g.sh kubernetes [nodes Added x]"];
        assert_eq!(world.take_log(), told);
    }
}

#[test]
fn a_watch_that_is_about_to_begin_at_the_election_is_waited_for() {
    let mut world = World::new(Vec::new()).hook("", "g.sh", PODS);
    world.open.insert("g.sh watch".to_owned());
    let mut world = world.standby(4);
    assert!(elected(&mut world).is_empty() && !world.status().ready);
    world.close("g.sh watch");
    assert_eq!(world.take_log()[..2], ["g.sh watch", "g.sh kubernetes [pods all]"]);
    assert!(world.status().ready);
}

#[test]
fn a_watch_that_a_standby_cannot_have_is_tried_again_and_is_the_leaders_in_the_end() {
    let mut world = World::new(Vec::new()).hook("", "g.sh", PODS);
    world.failing.insert("g.sh watch".to_owned(), 2);
    let mut world = world.standby(4);
    let waits = |world: &World| world.operator.poll_timeout().unwrap().0 - world.tick;
    assert_eq!(world.take_log(), ["g.sh watch fails"]);
    assert!(waits(&world) < Duration::from_secs(5));
    world.sleep();
    assert_eq!(world.take_log(), ["g.sh watch fails"]);
    assert!(waits(&world) > Duration::from_secs(5));
    assert_eq!(elected(&mut world)[..2], ["g.sh watch", "g.sh kubernetes [pods all]"]);
    let failed = |notice: &Notice| matches!(notice, Notice::MonitorsFailed { .. });
    assert!(!world.notices.iter().any(failed), "who leads did not fail");
}

#[test]
fn a_standby_knows_what_hooks_want_whose_modules_would_run() {
    let acting = Module {
        has_account: true,
        ..plain(40, "four")
    };
    let broken = Module {
        broken: Some(Failure::new(Class::Invalid, "no")),
        ..plain(50, "five")
    };
    let modules = vec![
        plain(20, "one"),
        plain(10, "two"),
        off(plain(30, "three")),
        acting,
        broken,
    ];
    let mut world = World::new(modules);
    for owner in ["one", "two", "three", "four", "five"] {
        world = world.hook(owner, "a.sh", PODS);
    }
    let mut world = world.standby(4);
    assert_eq!(world.asked, ["two --config", "one --config"]);
    assert_eq!(world.take_log(), ["one/a.sh watch", "two/a.sh watch"]);
    assert!(
        world.operator.poll_timeout().is_none(),
        "it waits for nothing but its turn"
    );
    world.change("one/a.sh pods", Added, "x");
    assert!(world.take_log().is_empty());

    let configured = |notice: &Notice| matches!(notice, Notice::HooksConfigured { .. });
    assert!(!world.notices.iter().any(configured), "that counts for nothing yet");
    let expected = [
        "two/a.sh kubernetes [pods all]",
        "one/a.sh kubernetes [pods all]",
        "four/a.sh watch",
        "four/a.sh kubernetes [pods all]",
    ];
    assert_eq!(elected(&mut world), expected);
    assert_eq!(world.asked, ["two --config", "one --config", "four --config"]);
    world.change("one/a.sh pods", Modified, "x");
    assert_eq!(world.take_log(), ["one/a.sh kubernetes [pods Modified x]"]);
    assert!(world.stopped.is_empty(), "{:?}", world.stopped);
    assert_kept_nothing(&world);
}

#[test]
fn the_config_map_says_which_modules_and_what_it_takes_back_is_dropped() {
    let modules = vec![plain(10, "one"), off(plain(20, "two"))];
    let mut world = World::new(modules)
        .hook("one", "a.sh", PODS)
        .hook("two", "a.sh", PODS)
        .standby(4);
    assert_eq!(world.take_log(), ["one/a.sh watch"]);
    world.edit(&[("twoEnabled", Some("true"))]);
    assert_eq!(world.take_log(), ["two/a.sh watch"]);
    // A broken flag or a missing ConfigMap changes nothing, as for a leader.
    world.edit(&[("oneEnabled", Some("perhaps")), ("twoEnabled", Some("nobody knows"))]);
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert!(world.stopped.is_empty());
    world.edit(&[("oneEnabled", Some("false")), ("twoEnabled", Some("true"))]);
    assert_eq!(world.stopped, ["one/a.sh pods"]);
    assert_eq!(elected(&mut world), ["two/a.sh kubernetes [pods all]"]);
    assert_eq!(world.asked, ["one --config", "two --config"]);
    world.edit(&[("oneEnabled", Some("true"))]);
    let anew = ["one/a.sh watch", "one/a.sh kubernetes [pods all]"];
    assert!(world.take_log().starts_with(&anew.map(str::to_owned)));
    assert_eq!(world.asked.len(), 3, "what was dropped is asked for again");
}

#[test]
fn whom_a_script_forbids_to_run_is_dropped_when_that_is_known() {
    let scripted = Module {
        has_enabled_script: true,
        ..plain(10, "one")
    };
    let mut world = World::new(vec![scripted]).hook("one", "a.sh", PODS);
    world.open.insert("one enabled?".to_owned());
    let mut world = world.standby(4);
    assert_eq!(world.take_log(), ["one/a.sh watch"]);
    assert!(elected(&mut world).is_empty() && world.stopped.is_empty());
    says_no(&mut world, "one enabled?");
    assert_eq!(world.stopped, ["one/a.sh pods"]);
    assert_eq!(world.asked, ["one --config"]);
    assert!(world.status().ready);
}

#[test]
fn whom_nobody_lets_run_for_long_keeps_no_watch() {
    let needy = Module {
        depends_on: vec![name("two")],
        ..plain(20, "one")
    };
    let mut world = World::new(vec![off(plain(10, "two")), needy])
        .hook("one", "a.sh", PODS)
        .hook("one", "b.sh", PODS);
    world.open.insert("one/a.sh watch".to_owned());
    let mut world = world.standby(4);
    assert_eq!(world.take_log(), ["one/b.sh watch"]);
    assert!(elected(&mut world).is_empty());
    assert_eq!(world.stopped, ["one/b.sh pods"]);
    assert!(
        world.waits_for("one").contains("which is disabled"),
        "{}",
        world.waits_for("one")
    );
    world.close("one/a.sh watch");
    assert_eq!(world.stopped, ["one/b.sh pods", "one/a.sh pods"]);
    assert_kept_nothing(&world);
}

#[test]
fn a_hook_that_cannot_say_what_it_wants_is_the_leaders() {
    let modules = vec![plain(10, "one"), plain(20, "two")];
    let mut world = World::new(modules).hook("one", "a.sh", PODS).hook("two", "a.sh", PODS);
    world.failing.insert("one --config".to_owned(), 2);
    let mut world = world.standby(4);
    assert_eq!(world.take_log(), ["one --config fails", "two/a.sh watch"]);
    assert!(world.operator.poll_timeout().is_none(), "it is not run again and again");
    assert_eq!(
        elected(&mut world),
        ["one --config fails", "two/a.sh kubernetes [pods all]"]
    );
    let told =
        |notice: &Notice| matches!(notice, Notice::ModuleFailed { module, attempts: 1, .. } if *module == name("one"));
    assert!(world.notices.iter().any(told), "{:?}", world.notices);
}

#[test]
fn a_hook_that_says_nothing_holds_up_its_own_module_only() {
    let modules = vec![plain(10, "one"), plain(10, "two")];
    let mut world = World::new(modules)
        .hook("", "g.sh", "onStartup: 1")
        .hook("one", "a.sh", PODS)
        .hook("two", "a.sh", PODS);
    world.open.insert("one --config".to_owned());
    let mut world = world.standby(1);
    assert_eq!(world.asked, ["--config"]);
    let log = elected(&mut world);
    let expected = ["g.sh onStartup", "two/a.sh watch", "two/a.sh kubernetes [pods all]"];
    assert_eq!(log, expected, "and its slot is free for others");
    assert_eq!(world.state("one"), "Configuring");
    world.close("one --config");
    assert_eq!(world.take_log(), ["one/a.sh watch", "one/a.sh kubernetes [pods all]"]);
    assert_eq!(world.asked, ["--config", "two --config", "one --config"]);
}

#[test]
fn a_module_that_is_wanted_again_takes_the_watch_that_was_under_way_all_the_time() {
    let hooked = World::new(vec![plain(10, "one")]);
    let mut world = hooked.hook("one", "a.sh", PODS).hook("one", "b.sh", PODS);
    world.open.insert("one/a.sh watch".to_owned());
    let mut world = world.standby(4);
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(
        (world.take_log(), &world.stopped),
        (vec!["one/b.sh watch".to_owned()], &vec!["one/b.sh pods".to_owned()])
    );
    world.edit(&[("oneEnabled", Some("true"))]);
    assert_eq!(world.take_log(), ["one/b.sh watch"], "what was dropped is begun again");
    world.edit(&[("oneEnabled", Some("false"))]);
    // A change of the other leader makes no difference either.
    assert!(elected(&mut world).is_empty() && world.status().ready);
    world.edit(&[("oneEnabled", Some("true"))]);
    assert!(world.take_log().is_empty());
    let begun = |job: &&Job| words(job) == "one/a.sh watch";
    assert_eq!(world.pending.iter().filter(begun).count(), 1);
    assert_eq!(world.state("one"), "Watching");
    world.close("one/a.sh watch");
    let expected = [
        "one/a.sh watch",
        "one/b.sh watch",
        "one/a.sh kubernetes [pods all]",
        "one/b.sh kubernetes [pods all]",
    ];
    assert_eq!(world.take_log(), expected);
    assert_eq!(world.asked, ["one --config"]);
    world.change("one/a.sh pods", Added, "x");
    assert_eq!(world.take_log(), ["one/a.sh kubernetes [pods Added x]"]);
    assert_kept_nothing(&world);
}

#[test]
fn an_answer_without_watches_is_used_and_forgotten() {
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "a.sh", "beforeHelm: 1")
        .standby(4);
    assert_eq!(world.asked, ["one --config"]);
    assert_eq!(elected(&mut world)[..2], ["one/a.sh beforeHelm", "one sync"]);
    assert_eq!(world.asked.len(), 1);
    assert_kept_nothing(&world);
}

#[test]
fn what_is_wanted_again_in_the_same_converge_is_watched_anew() {
    let scripted = Module {
        has_enabled_script: true,
        ..plain(10, "one")
    };
    let mut world = World::new(vec![scripted, module(10, "two")]).hook("one", "a.sh", PODS);
    world.open.extend(["two sync", "one enabled?"].map(str::to_owned));
    let mut world = world.standby(4);
    assert_eq!(world.take_log(), ["one/a.sh watch"]);
    assert!(elected(&mut world).is_empty());
    says_no(&mut world, "one enabled?");
    assert_eq!(world.stopped, ["one/a.sh pods"]);
    world.open.remove("one enabled?");
    world.edit(&[("one", Some("x: 1"))]);
    world.take_log();
    world.close("two sync");
    let anew = ["one/a.sh watch", "one/a.sh kubernetes [pods all]"];
    let mut log = world.take_log();
    log.retain(|words| words.starts_with("one/"));
    assert_eq!(log, anew);
    world.change("one/a.sh pods", Added, "x");
    assert_eq!(world.take_log().last().unwrap(), "one/a.sh kubernetes [pods Added x]");
}

#[test]
fn an_answer_that_nobody_wants_any_more_is_dropped() {
    let mut world = World::new(vec![plain(10, "one")]).hook("one", "a.sh", PODS);
    world.open.insert("one --config".to_owned());
    let mut world = world.standby(4);
    world.edit(&[("oneEnabled", Some("false"))]);
    elected(&mut world);
    world.close("one --config");
    assert!(world.take_log().is_empty());
    assert_kept_nothing(&world);
}

#[test]
fn where_hooks_convert_objects_a_standby_lists_none() {
    let modules = vec![plain(10, "one"), plain(20, "two")];
    let mut world = World::new(modules)
        .hook("one", "a.sh", PODS)
        .hook("two", "a.sh", CONVERTING)
        .standby(1);
    assert_eq!(world.asked, ["one --config", "two --config"]);
    assert!(world.take_log().is_empty());
    assert!(elected(&mut world).contains(&"one/a.sh watch".to_owned()));
}

#[test]
fn who_is_about_to_lead_asks_a_module_in_its_turn() {
    let mut world = World::new(vec![plain(10, "one")])
        .hook("", "g.sh", "beforeAll: 1")
        .hook("one", "h.sh", PODS);
    world.operator = Operator::new(
        1,
        Policy {
            leadership: Leadership::Elected,
            ..Policy::default()
        },
    );
    let mut world = world.start();
    assert!(world.take_log().is_empty());
    assert_eq!(world.asked, ["--config"], "nobody else is known to lead");
    world.open.insert("g.sh beforeAll".to_owned());
    world.handle(Event::Elected);
    assert_eq!(world.asked, ["--config"]);
    world.close("g.sh beforeAll");
    assert_eq!(world.asked, ["--config", "one --config"]);
}

#[test]
fn a_standby_asks_no_module_before_the_global_hooks_have_answered() {
    let mut world = World::new(vec![plain(10, "one")])
        .hook("", "g.sh", "beforeAll: 1")
        .hook("one", "h.sh", PODS);
    world.failing.insert("--config".to_owned(), 1);
    world.open.insert("one --config".to_owned());
    let mut world = world.standby(1);
    assert!(world.pending.is_empty(), "it would have the place that they need");
    world.sleep();
    assert_eq!(world.pending.len(), 1);
}
