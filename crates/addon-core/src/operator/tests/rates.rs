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
