//! Rate limits of hooks, and queues that grow long.

use super::*;
use WatchEvent::{Added, Modified};

#[test]
fn a_hook_that_has_run_too_often_waits_by_name_and_its_queue_with_it() {
    let settings = "settings:\n  executionMinInterval: 10s\n  executionBurst: 1\n";
    let mut world = World::new(vec![module(10, "one")])
        .hook(
            "one",
            "a.sh",
            &format!("{settings}onStartup: 1\nkubernetes:\n- name: pods\n  kind: Pod"),
        )
        .start();
    assert_eq!(world.take_log(), ["one/a.sh onStartup", "one/a.sh watch"]);
    assert_eq!(world.waits_for("one"), "the rate limit of hook 'a.sh' of module 'one'");
    let (at, waiting) = world.operator.poll_timeout().unwrap();
    assert!(matches!(waiting, Waiting::RateLimit { hook } if hook.name.as_str() == "a.sh"));
    assert!(at - world.tick <= Duration::from_secs(10));
    world.sleep();
    assert_eq!(world.take_log(), ["one/a.sh kubernetes [pods all]", "one sync"]);
    world.change("one/a.sh pods", Added, "a");
    world.change("one/a.sh pods", Added, "b");
    assert_eq!(world.take_log(), [""; 0]);
    world.sleep();
    assert_eq!(world.take_log(), ["one/a.sh kubernetes [pods Added a] [pods Added b]"]);
}

/// A world with one hook that watches pods in a queue of its own, and another hook in that queue.
fn watching(settings: &str) -> World {
    let pods = format!("{settings}kubernetes:\n- name: pods\n  kind: Pod\n  queue: side");
    let mut world = World::alone().hook("", "a.sh", &pods).hook(
        "",
        "b.sh",
        "kubernetes:\n- name: jobs\n  kind: Job\n  queue: side",
    );
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    world.take_log();
    world
}

/// Lets objects of `a.sh` change one after another, until a change brings no run at once. Returns the number of runs.
fn runs_at_once(world: &mut World) -> usize {
    let mut count = 0;
    loop {
        world.change("a.sh pods", Modified, "p");
        if world.take_log().is_empty() {
            return count;
        }
        count += 1;
        assert!(count < 100, "runs are not spread out");
    }
}

#[test]
fn runs_for_changes_that_go_on_are_spread_out_and_lose_nothing() {
    let mut world = watching("");
    // The first run for the pods that exist took a token, too.
    assert_eq!(runs_at_once(&mut world), 7);
    assert_eq!(world.tasks("side").len(), 1);
    let queues = world.operator.answer(&QueuesQuery);
    let side = queues.iter().find(|report| report.name == "side").unwrap();
    assert_eq!(side.status, "sleep for 1s: more changes for hook 'a.sh'");
    let (at, _) = world.operator.poll_timeout().unwrap();
    assert!(at - world.tick <= Duration::from_millis(40));
    world.change("a.sh pods", Modified, "q");
    assert_eq!(world.take_log(), [""; 0]);
    world.sleep();
    assert_eq!(
        world.take_log(),
        ["a.sh kubernetes [pods Modified p] [pods Modified q]"]
    );
    // After a rest, runs come at once again.
    world.tick = world.tick + Duration::from_secs(1);
    assert_eq!(runs_at_once(&mut world), 8);
}

#[test]
fn no_run_is_spread_out_while_another_waits_behind_it() {
    let mut world = watching("");
    runs_at_once(&mut world);
    world.sleep();
    world.take_log();
    // Runs of the two hooks alternate, so none can be combined: a pause before a run would only make the queue longer.
    world.open.insert("a.sh kubernetes".to_owned());
    world.tick = world.tick + Duration::from_secs(1);
    world.change("a.sh pods", Modified, "p");
    for _ in 0..20 {
        world.change("b.sh jobs", Modified, "j");
        world.change("a.sh pods", Modified, "p");
    }
    let begun = world.tick;
    world.close("a.sh kubernetes");
    while world.tasks("side").len() > 1 {
        assert_eq!(world.tick, begun, "waits: {:?}", world.tasks("side"));
        world.sleep();
    }
    // The runs that did not wait are not made up for.
    world.change("a.sh pods", Modified, "p");
    let (at, _) = world.operator.poll_timeout().unwrap();
    assert!(at - world.tick <= Duration::from_millis(40), "{:?}", at - world.tick);
}

#[test]
fn hooks_of_the_first_format_take_one_change_a_run_and_are_not_spread_out() {
    let old = "onKubernetesEvent:\n- name: pods\n  kind: Pod";
    let mut world = World::alone().old_hook("", "a.sh", old);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    world.take_log();
    for _ in 0..50 {
        world.change("a.sh pods", Added, "p");
        assert_eq!(world.take_log().len(), 1);
    }
}

#[test]
fn a_long_queue_is_made_short_and_loses_nothing_that_is_told_by_nobody_else() {
    let hook =
        "kubernetes:\n- name: pods\n  kind: Pod\n  queue: side\n- name: jobs\n  kind: Job\n  queue: side\n  group: g";
    let mut world =
        World::alone()
            .hook("", "a.sh", hook)
            .hook("", "b.sh", "kubernetes:\n- name: pods\n  kind: Pod\n  queue: side");
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    world.take_log();
    world.open.insert("b.sh kubernetes".to_owned());
    world.change("b.sh pods", Added, "x");
    for _ in 0..50 {
        world.change("a.sh jobs", Modified, "j");
        world.change("a.sh pods", Modified, "p");
    }
    let compacted: Vec<_> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::TasksCompacted { queue, hook, count } => Some((queue.as_str(), hook.name.as_str(), *count)),
            _ => None,
        })
        .collect();
    assert_eq!(compacted, [("side", "a.sh", 99)]);
    assert_eq!(world.tasks("side").len(), 2);
    world.close("b.sh kubernetes");
    let log = world.take_log();
    assert_eq!(log[0], "b.sh kubernetes [pods Added x]");
    assert_eq!(log[1].matches("[pods Modified p]").count(), 50);
    assert!(
        log[1].ends_with("[pods Modified p] [jobs Modified j of g]"),
        "{}",
        log[1]
    );
}

#[test]
fn a_converge_does_not_wait_for_the_rate_limit_of_a_run_from_before_it() {
    let settings = "settings:\n  executionMinInterval: 1h\n  executionBurst: 1\n";
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook(
        "one",
        "a.sh",
        &format!("{settings}onStartup: 1\nbeforeHelm: 1"),
    );
    world.open.insert("one/a.sh onStartup".to_owned());
    let mut world = world.start();
    world.edit(&[("oneEnabled", Some("false"))]);
    world.close("one/a.sh onStartup");
    assert_eq!(world.take_log(), ["one/a.sh onStartup", "two sync"]);
}
