//! Hooks that cause their own next runs.

use super::effect::Slowed;
use super::*;
use crate::digest::Digest;
use WatchEvent::{Added, Modified};

const LIMIT: usize = 6;

fn wrote(object: &str, version: u64) -> ObjectWritten {
    ObjectWritten {
        object: ObjectName {
            name: object.to_owned(),
            ..ObjectName::default()
        },
        version: Some(version),
        content: Digest::of_bytes(object.as_bytes()),
    }
}

impl World {
    /// Reports a change that made this version of an object.
    fn change_to(&mut self, monitor: &str, object: &str, version: u64) {
        let change = ObjectChange {
            version,
            ..self.change_unheard(monitor, Modified, object)
        };
        self.handle(Event::ObjectChanged(change));
    }

    /// The waits that were told of: the hook, the number of its deeds in a row, and the seconds.
    fn slowed(&mut self) -> Vec<(String, u32, u64)> {
        let notices = std::mem::take(&mut self.notices);
        let slowed = notices.into_iter().filter_map(|notice| match notice {
            Notice::Slowed(Slowed::Hook {
                hook, times, next_in, ..
            }) => Some((
                hook.name.to_string(),
                times,
                next_in.as_millis().div_ceil(1000).try_into().unwrap(),
            )),
            _ => None,
        });
        slowed.collect()
    }

    fn count(&mut self, words: &str) -> usize {
        self.take_log().iter().filter(|line| line.starts_with(words)).count()
    }
}

/// A hook that writes the object that it watches, and one that watches another kind.
fn writing() -> World {
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "a.sh", "kubernetes:\n- name: pods\n  kind: Pod")
        .hook("one", "b.sh", "kubernetes:\n- name: jobs\n  kind: Job")
        .start();
    world.take_log();
    world
}

/// Lets the hook answer each change of version N with a write of version N+1, until it waits. Returns the number of runs.
fn spin(world: &mut World, version: &mut u64) -> usize {
    let mut runs = 0;
    loop {
        world
            .wrote
            .insert("one/a.sh kubernetes".to_owned(), vec![wrote("p", *version + 1)]);
        world.change_to("one/a.sh pods", "p", *version);
        if world.count("one/a.sh") == 0 {
            return runs;
        }
        *version += 1;
        runs += 1;
        assert!(runs < 100, "the hook is not slowed down");
    }
}

#[test]
fn a_hook_that_writes_its_own_object_waits_longer_and_longer() {
    let mut world = writing();
    let mut version = 10;
    assert_eq!(spin(&mut world, &mut version), LIMIT);
    assert_eq!(world.slowed(), [("a.sh".to_owned(), 6, 5)]);
    let waits = world.waits_for("one");
    assert_eq!(
        waits,
        "the next run of hook 'a.sh', in 5s or at a change by others: it writes  p each time that it changes, 6 times in a row"
    );
    // Other hooks of the module run meanwhile.
    world.change("one/b.sh jobs", Added, "j");
    assert_eq!(world.count("one/b.sh"), 1);
    let mut seconds = Vec::new();
    for _ in 0..8 {
        let before = world.tick;
        world.sleep();
        assert_eq!(world.count("one/a.sh"), 1);
        seconds.push((world.tick - before + Duration::from_millis(500)).as_secs());
        version += 1;
        world
            .wrote
            .insert("one/a.sh kubernetes".to_owned(), vec![wrote("p", version + 1)]);
        world.change_to("one/a.sh pods", "p", version);
        assert_eq!(world.count("one/a.sh"), 0);
    }
    assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300]);
}

#[test]
fn a_change_by_others_ends_the_wait_and_all_changes_are_told_in_order() {
    let mut world = writing();
    let mut version = 10;
    spin(&mut world, &mut version);
    world.wrote.clear();
    world.change_to("one/a.sh pods", "q", 1000);
    assert_eq!(
        world.take_log(),
        ["one/a.sh kubernetes [pods Modified p] [pods Modified q]"]
    );
    // The hook begins anew: again it takes a few runs until it waits.
    version = 2000;
    world.tick = world.tick + Duration::from_secs(1);
    assert_eq!(spin(&mut world, &mut version), LIMIT);
}

#[test]
fn a_hook_that_writes_other_objects_each_time_goes_on() {
    let mut world = writing();
    for version in 10..40 {
        let next = format!("p{}", version + 1);
        world
            .wrote
            .insert("one/a.sh kubernetes".to_owned(), vec![wrote(&next, version + 1)]);
        world.change_to("one/a.sh pods", &format!("p{version}"), version);
        assert_eq!(world.count("one/a.sh"), 1);
        world.tick = world.tick + Duration::from_millis(50);
    }
    assert_eq!(world.slowed(), []);
}

#[test]
fn a_write_that_changes_nothing_and_a_storm_of_changes_by_others_slow_no_hook() {
    let mut world = writing();
    for version in 10..60 {
        world
            .wrote
            .insert("one/a.sh kubernetes".to_owned(), vec![wrote("p", version)]);
        world.change_to("one/a.sh pods", "p", version);
        assert_eq!(world.count("one/a.sh"), 1);
        world.tick = world.tick + Duration::from_millis(50);
    }
    assert_eq!(world.slowed(), []);
}

#[test]
fn two_hooks_that_answer_each_other_wait() {
    let mut world = writing();
    let (mut version, mut runs) = (10, 0);
    world.change_to("one/a.sh pods", "p", version);
    loop {
        let (hook, monitor, object, next) = if version % 2 == 0 {
            ("one/a.sh", "one/a.sh pods", "p", "j")
        } else {
            ("one/b.sh", "one/b.sh jobs", "j", "p")
        };
        world
            .wrote
            .insert(format!("{hook} kubernetes"), vec![wrote(next, version + 1)]);
        world.change_to(monitor, object, version);
        if world.count(hook) == 0 {
            break;
        }
        version += 1;
        runs += 1;
        assert!(runs < 50, "the hooks are not slowed down");
    }
    assert!((LIMIT..=2 * LIMIT).contains(&runs), "{runs}");
}

#[test]
fn a_contest_with_another_writer_of_the_same_object_waits() {
    let mut world = writing();
    let mut runs = 0;
    for version in 5..50 {
        // Another program makes the even versions, and the hook the odd ones.
        world
            .wrote
            .insert("one/a.sh kubernetes".to_owned(), vec![wrote("p", 2 * version + 1)]);
        world.change_to("one/a.sh pods", "p", 2 * version);
        if world.count("one/a.sh") == 0 {
            break;
        }
        runs += 1;
        world.tick = world.tick + Duration::from_millis(500);
        world.wrote.clear();
        world.change_to("one/a.sh pods", "p", 2 * version + 1);
        world.take_log();
    }
    assert!((LIMIT..=2 * LIMIT).contains(&runs), "{runs}");
}

#[test]
fn a_module_whose_own_hook_changes_its_values_in_every_run_waits_and_is_ready() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook("one", "a.sh", "afterHelm: 1");
    world.counting.insert("one/a.sh afterHelm".to_owned(), "/one/x");
    let mut world = world.start();
    assert_eq!(world.count("one sync"), LIMIT);
    assert_eq!(world.slowed(), [("a.sh".to_owned(), 6, 5)]);
    assert_eq!(world.state("one"), "Ready");
    assert!(world.status().ready);
    let waits = world.waits_for("one");
    assert_eq!(
        waits,
        "the next run of hook 'a.sh', in 5s or at a change by others: it changes the value /one/x in each of its runs, 6 times in a row"
    );
    world.sleep();
    assert_eq!(world.count("one sync"), 1);
    assert_eq!(world.slowed(), [("a.sh".to_owned(), 7, 10)]);
    // An edit by a person counts at once.
    world.edit(&[("one", Some("size: 2"))]);
    assert_eq!(world.count("one sync"), LIMIT);
}

#[test]
fn global_values_that_change_in_each_converge_wait() {
    let mut world = World::new(vec![module(10, "one")]).hook("", "g.sh", "afterAll: 1");
    world.counting.insert("g.sh afterAll".to_owned(), "/global/x");
    let mut world = world.start();
    assert_eq!(world.count("g.sh afterAll"), LIMIT);
    world.sleep();
    assert_eq!(world.count("g.sh afterAll"), 1);
    world.edit(&[("global", Some("size: 2"))]);
    assert_eq!(world.count("g.sh afterAll"), LIMIT);
}

#[test]
fn a_hook_that_changes_values_for_objects_of_its_own_release_waits() {
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "a.sh", "kubernetes:\n- name: pods\n  kind: Pod")
        .start();
    world.counting.insert("one/a.sh kubernetes".to_owned(), "/one/x");
    world.take_log();
    let mut runs = 0;
    for version in 10..60 {
        let change = ObjectChange {
            version,
            release: Some(name("one")),
            ..world.change_unheard("one/a.sh pods", Modified, "p")
        };
        world.handle(Event::ObjectChanged(change));
        if world.count("one sync") == 0 {
            break;
        }
        runs += 1;
    }
    assert!((LIMIT - 1..=LIMIT).contains(&runs), "{runs}");
}

#[test]
fn a_module_that_a_global_hook_switches_to_and_fro_keeps_its_state_for_a_while() {
    let flag = |on: bool| json!([{"op": "add", "path": "/oneEnabled", "value": on}]);
    let mut world = World::new(vec![module(10, "one"), module(20, "two")])
        .hook(
            "",
            "g.sh",
            "kubernetes:
- name: pods
  kind: Pod",
        )
        .start();
    world.take_log();
    let switch = |world: &mut World, on: bool| {
        let patch = (patch(&flag(on), PatchFile::Values), Patch::default());
        world.patches.insert("g.sh kubernetes".to_owned(), patch);
        world.tick = world.tick + Duration::from_secs(1);
        world.change("g.sh pods", Modified, "p");
        let log = world.take_log();
        log.iter().any(|line| line == "one sync" || line == "one delete")
    };
    assert_eq!(
        [false, true, false, true, true].map(|on| switch(&mut world, on)),
        [true, true, true, false, false]
    );
    let told: Vec<_> = std::mem::take(&mut world.notices)
        .into_iter()
        .filter_map(|notice| match notice {
            Notice::Slowed(Slowed::Switch {
                module,
                enabled,
                by,
                times,
                ..
            }) => Some(format!("{module} {enabled} {by} {times}")),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["one false a global hook 3"]);
    let report = world.operator.answer(&ModulesQuery).remove(0);
    assert_eq!(
        report.enabled_by,
        "a global hook, which has switched it 3 times within 10 minutes: it stays so for 58s, or until a person edits oneEnabled in the ConfigMap"
    );
    assert!(matches!(world.operator.poll_timeout(), Some((_, Waiting::Switch(_)))));
    world.sleep();
    assert!(world.take_log().contains(&"one sync".to_owned()));
    // The next hold is longer, and the ConfigMap counts at once.
    assert!(!switch(&mut world, false));
    world.edit(&[("oneEnabled", Some("false"))]);
    assert!(world.take_log().contains(&"one delete".to_owned()));
}

#[test]
fn a_hook_that_writes_its_own_object_by_kubectl_waits() {
    let mut world = writing();
    let change = |world: &mut World, version: u64, by_tool: bool| {
        let change = ObjectChange {
            version,
            by_tool,
            ..world.change_unheard("one/a.sh pods", Modified, "p")
        };
        world.handle(Event::ObjectChanged(change));
    };
    world.open.insert("one/a.sh kubernetes".to_owned());
    change(&mut world, 10, false);
    let mut runs = 0;
    for version in 11..60 {
        if world.pending.is_empty() {
            break;
        }
        runs += 1;
        change(&mut world, version, true);
        let job = world.pending.remove(0);
        let finished = world.carry_out(&job);
        world.tick = world.tick + Duration::from_millis(50);
        world.handle(Event::JobFinished(finished));
    }
    assert_eq!(runs, LIMIT);
    assert_eq!(world.slowed(), [("a.sh".to_owned(), 6, 5)]);
    // A person who uses kubectl meanwhile is heard at once.
    change(&mut world, 100, true);
    assert_eq!(world.pending.len(), 1);
}
