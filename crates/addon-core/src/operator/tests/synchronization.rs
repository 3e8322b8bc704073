//! First runs: a hook runs for the existing objects before everything that depends on it.

use serde_json::json;

use super::*;
use WatchEvent::{Added, Modified};

const SIDE: &str = "kubernetes:\n- name: pods\n  kind: Pod\n  queue: side";

#[test]
fn a_module_runs_its_hooks_for_what_is_there_once_in_its_life_before_its_release() {
    let mut world = World::new(vec![module(10, "one")])
        .hook(
            "one",
            "b.sh",
            "kubernetes:\n- name: pods\n  kind: Pod\n- name: nodes\n  kind: Node",
        )
        .hook(
            "one",
            "a.sh",
            "onStartup: 1\nbeforeHelm: 1\nkubernetes:\n- name: jobs\n  kind: Job",
        )
        .start();
    assert_eq!(
        world.take_log(),
        [
            "one/a.sh onStartup",
            "one/a.sh watch",
            "one/b.sh watch",
            "one/a.sh kubernetes [jobs all]",
            "one/b.sh kubernetes [pods all] [nodes all]",
            "one/a.sh beforeHelm",
            "one sync"
        ]
    );
    world.edit(&[("one", Some("size: 1"))]);
    assert_eq!(world.take_log(), ["one/a.sh beforeHelm", "one sync"]);
}

#[test]
fn a_failing_first_run_is_tried_again_where_it_was_and_holds_back_only_its_module() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook(
        "one",
        "a.sh",
        "onStartup: 1\nkubernetes:\n- name: pods\n  kind: Pod",
    );
    world.failing.insert("one/a.sh kubernetes".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        [
            "one/a.sh onStartup",
            "one/a.sh watch",
            "one/a.sh kubernetes fails",
            "two sync"
        ]
    );
    world.sleep();
    assert_eq!(world.take_log(), ["one/a.sh kubernetes [pods all]", "one sync"]);
}

#[test]
fn monitors_that_cannot_be_started_are_tried_again_and_say_so() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook(
        "one",
        "a.sh",
        "kubernetes:\n- name: pods\n  kind: Pod",
    );
    world.failing.insert("one/a.sh watch".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one/a.sh watch fails", "two sync"]);
    let waits = world.waits_for("one");
    assert!(
        waits.contains("start the monitors of hook 'a.sh' of module 'one': no"),
        "{waits}"
    );
    let told = |notice: &Notice| matches!(notice, Notice::MonitorsFailed { attempts: 1, retry_in, .. } if *retry_in == Duration::from_secs(5));
    assert!(world.notices.iter().any(told), "{:?}", world.notices);
    world.sleep();
    assert_eq!(
        world.take_log(),
        ["one/a.sh watch", "one/a.sh kubernetes [pods all]", "one sync"]
    );
    let [(id, _)] = world.monitors.values().copied().collect::<Vec<_>>()[..] else {
        panic!()
    };
    assert_eq!(id, MonitorId(2), "names are not used again");
}

#[test]
fn a_first_run_in_another_queue_is_waited_for_by_name() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook("one", "a.sh", SIDE);
    world.open.insert("one/a.sh kubernetes".to_owned());
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one/a.sh watch"]);
    assert_eq!(world.state("one"), "Synchronizing");
    assert_eq!(
        world.waits_for("one"),
        "the first run of binding 'pods' of hook 'a.sh' of module 'one'"
    );
    world.close("one/a.sh kubernetes");
    assert_eq!(
        world.take_log(),
        ["one/a.sh kubernetes [pods all]", "one sync", "two sync"]
    );
}

#[test]
fn one_that_fails_in_another_queue_holds_back_its_module_and_nobody_else() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook("one", "a.sh", SIDE);
    world.failing.insert("one/a.sh kubernetes".to_owned(), 2);
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        ["one/a.sh watch", "one/a.sh kubernetes fails", "two sync"]
    );
    assert!(
        world.waits_for("one").contains("which failed 1 times"),
        "{}",
        world.waits_for("one")
    );
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["two sync"], "a converge does not wait for it");
    world.sleep();
    world.sleep();
    assert_eq!(
        world.take_log(),
        [
            "one/a.sh kubernetes fails",
            "one/a.sh kubernetes [pods all]",
            "one sync"
        ]
    );
}

#[test]
fn a_module_can_be_switched_off_while_a_first_run_fails_in_another_queue() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook("one", "a.sh", SIDE);
    world.failing.insert("one/a.sh kubernetes".to_owned(), 9);
    let mut world = world.start();
    world.take_log();
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.state("one"), "Disabled");
    assert_eq!(world.stopped, ["one/a.sh pods"]);
    assert_eq!(world.tasks("side"), [""; 0]);
}

#[test]
fn one_that_nobody_waits_for_runs_beside_the_release_and_its_values_run_the_module() {
    let hook = format!("{SIDE}\n  waitForSynchronization: false");
    let patch = json!([{"op": "add", "path": "/one/pods", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")]).hook("one", "a.sh", &hook).patching(
        "one/a.sh kubernetes",
        &patch,
        &json!([]),
    );
    world.open.insert("one/a.sh kubernetes".to_owned());
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one/a.sh watch", "one sync"]);
    world.close("one/a.sh kubernetes");
    assert_eq!(world.take_log(), ["one/a.sh kubernetes [pods all]", "one sync"]);
}

#[test]
fn a_change_is_told_once_wherever_it_meets_the_first_run() {
    let mut world = World::new(vec![module(10, "one")]).hook("one", "a.sh", SIDE);
    world.open.insert("one/a.sh kubernetes".to_owned());
    let mut world = world.start();
    world.take_log();
    // The run has read this change. The change comes while the run is under way, and again after its end.
    world.change("one/a.sh pods", Added, "a");
    let late = world.change_unheard("one/a.sh pods", Added, "b");
    world.open.clear();
    let at = world.pending.iter().position(|job| words(job) == "one/a.sh kubernetes");
    let job = world.pending.remove(at.unwrap());
    let finished = world.carry_out(&job);
    // The run has not read this change.
    world.change("one/a.sh pods", Modified, "a");
    world.handle(Event::JobFinished(finished));
    world.handle(Event::ObjectChanged(late));
    world.change("one/a.sh pods", Modified, "b");
    assert_eq!(
        world.take_log(),
        [
            "one/a.sh kubernetes [pods all]",
            "one sync",
            "one/a.sh kubernetes [pods Modified a]",
            "one/a.sh kubernetes [pods Modified b]"
        ]
    );
}

#[test]
fn without_a_first_run_everything_since_the_list_is_told() {
    let hook =
        "kubernetes:\n- name: pods\n  kind: Pod\n  executeHookOnSynchronization: false\n- name: nodes\n  kind: Node";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "a.sh", hook);
    world.open.insert("one/a.sh kubernetes".to_owned());
    world.open.insert("one/a.sh watch".to_owned());
    let mut world = world.start();
    let Some(job) = world.pending.iter().find(|job| words(job) == "one/a.sh watch").cloned() else {
        panic!()
    };
    // The first change comes before the outcome of the monitors' start.
    let _ = world.carry_out(&job);
    world.change("one/a.sh pods", Added, "a");
    world.close("one/a.sh watch");
    world.change("one/a.sh pods", Added, "b");
    world.take_log();
    world.close("one/a.sh kubernetes");
    assert_eq!(
        world.take_log(),
        [
            "one/a.sh kubernetes [nodes all]",
            "one sync",
            "one/a.sh kubernetes [pods Added a] [pods Added b]"
        ]
    );
}

#[test]
fn a_first_run_whose_failure_is_let_pass_opens_the_way() {
    let hook = "kubernetes:\n- name: pods\n  kind: Pod\n  allowFailure: true";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "a.sh", hook);
    world.failing.insert("one/a.sh kubernetes".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        ["one/a.sh watch", "one/a.sh kubernetes fails", "one sync"]
    );
    world.change("one/a.sh pods", Added, "a");
    assert_eq!(world.take_log(), ["one/a.sh kubernetes [pods Added a]"]);
}

#[test]
fn first_runs_of_global_hooks_come_before_the_first_converge_and_hold_it_back_by_name() {
    let mut world = World::new(vec![module(10, "one")])
        .hook("", "g.sh", "onStartup: 1\nschedule:\n- crontab: '0 0 1 1 *'\nkubernetes:\n- name: pods\n  kind: Pod")
        .hook(
            "",
            "h.sh",
            "kubernetes:\n- name: jobs\n  kind: Job\n  queue: side\n- name: nodes\n  kind: Node\n  queue: late\n  waitForSynchronization: false",
        );
    world.open.insert("h.sh kubernetes".to_owned());
    world.open.insert("g.sh onStartup".to_owned());
    let mut world = world.start();
    assert_eq!(
        world.tasks("main"),
        [
            "GlobalHookRun:main:onStartup:g.sh:onStartup:Operator-Startup",
            "GlobalHookEnableScheduleBindings:main::g.sh:Operator-Startup",
            "GlobalHookEnableKubernetesBindings:main::g.sh:Operator-Startup",
            "GlobalHookEnableKubernetesBindings:main::h.sh:Operator-Startup",
            "GlobalHookWaitKubernetesSynchronization:main:::Operator-Startup",
            "ConvergeModules:main:::Operator-Startup"
        ]
    );
    world.close("g.sh onStartup");
    assert_eq!(
        world.take_log(),
        [
            "g.sh onStartup",
            "g.sh watch",
            "g.sh kubernetes [pods all]",
            "h.sh watch"
        ]
    );
    assert_eq!(
        world.status().waiting,
        ["the first run of binding 'jobs' of global hook 'h.sh'"]
    );
    assert_eq!(
        world.tasks("late"),
        ["GlobalHookRun:late:kubernetes:h.sh:nodes:Operator-Startup"]
    );
    world.open.clear();
    world.drain();
    let mut log = world.take_log();
    log.sort();
    assert_eq!(
        log,
        ["h.sh kubernetes [jobs all]", "h.sh kubernetes [nodes all]", "one sync"]
    );
}

#[test]
fn first_runs_that_differ_in_who_waits_are_not_told_at_once() {
    let hook = "kubernetes:\n- name: pods\n  kind: Pod\n  queue: side\n- name: jobs\n  kind: Job\n  queue: side\n\
                - name: nodes\n  kind: Node\n  queue: side\n  waitForSynchronization: false";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "a.sh", hook).start();
    let mut log = world.take_log();
    log.retain(|entry| entry.contains("all"));
    assert_eq!(
        log,
        [
            "one/a.sh kubernetes [pods all] [jobs all]",
            "one/a.sh kubernetes [nodes all]"
        ]
    );
}

#[test]
fn a_module_that_was_switched_off_and_not_removed_looks_anew_at_what_is_there() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")])
        .hook("one", "a.sh", "kubernetes:\n- name: pods\n  kind: Pod")
        .start();
    world.take_log();
    // The removal of the other module comes first, and another edit comes before this module's removal begins.
    world.open.insert("two delete".to_owned());
    world.edit(&[("twoEnabled", Some("false")), ("oneEnabled", Some("false"))]);
    world.change("one/a.sh pods", Added, "a");
    world.edit(&[("oneEnabled", None)]);
    world.close("two delete");
    assert_eq!(
        world.take_log(),
        [
            "two delete",
            "one/a.sh watch",
            "one/a.sh kubernetes [pods all]",
            "one sync"
        ]
    );
    assert_eq!(world.stopped, ["one/a.sh pods"]);
}

#[test]
fn what_holds_back_the_first_converge_is_named() {
    let mut world = World::new(vec![module(10, "one")]).hook("", "g.sh", "kubernetes:\n- name: pods\n  kind: Pod");
    world.failing.insert("g.sh watch".to_owned(), 1);
    world.failing.insert("g.sh kubernetes".to_owned(), 1);
    let mut world = world.start();
    let failed = "start the monitors of global hook 'g.sh': no";
    assert_eq!(
        world.status().waiting,
        [format!(
            "the monitors of global hook 'g.sh' to start, which failed 1 times: {failed}"
        )]
    );
    world.sleep();
    let failed = "global hook 'g.sh' failed: no";
    assert_eq!(
        world.status().waiting,
        [format!(
            "the first run of binding 'pods' of global hook 'g.sh', which failed 1 times: {failed}"
        )]
    );
    world.sleep();
    assert!(world.status().ready && world.status().waiting.is_empty());
}

#[test]
fn a_section_that_mends_a_first_run_in_another_queue_reaches_it() {
    let mut world = World::new(vec![module(10, "one")]).hook("one", "a.sh", SIDE);
    world.failing.insert("one/a.sh kubernetes".to_owned(), 2);
    let mut world = world.start();
    world.edit(&[("one", Some("size: 1"))]);
    world.sleep();
    world.open.insert("one/a.sh kubernetes".to_owned());
    world.sleep();
    let Some(Job::RunHook(run, _)) = world.pending.last() else {
        panic!("{:?}", world.pending)
    };
    assert_eq!(run.values.to_value()["one"], json!({"size": 1}));
}
