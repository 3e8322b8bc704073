//! The way of changes of objects to hooks.

use serde_json::json;

use super::*;
use WatchEvent::{Added, Deleted, Modified};

const PODS: &str = "kubernetes:\n- name: pods\n  kind: Pod";

#[test]
fn a_change_runs_the_hook_and_its_change_of_values_the_module() {
    let patch = json!([{"op": "add", "path": "/one/pods", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", PODS)
        .patching("one/h.sh kubernetes", &patch, &json!([]))
        .start();
    assert_eq!(
        world.take_log(),
        ["one/h.sh watch", "one/h.sh kubernetes [pods all]", "one sync"]
    );
    let other = json!([{"op": "add", "path": "/one/pods", "value": 2}]);
    let mut world = world.patching("one/h.sh kubernetes", &other, &json!([]));
    world.change("one/h.sh pods", Added, "a");
    assert_eq!(world.take_log(), ["one/h.sh kubernetes [pods Added a]", "one sync"]);
    world.change("one/h.sh pods", Modified, "a");
    assert_eq!(world.take_log(), ["one/h.sh kubernetes [pods Modified a]"]);
}

#[test]
fn a_change_that_a_global_hook_makes_of_values_asks_for_a_converge() {
    let patch = json!([{"op": "add", "path": "/global/pods", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook(
            "",
            "g.sh",
            "kubernetes:\n- name: pods\n  kind: Pod\n  executeHookOnSynchronization: false",
        )
        .patching("g.sh kubernetes", &patch, &json!([]))
        .start();
    assert_eq!(world.take_log(), ["g.sh watch", "one sync"]);
    world.change("g.sh pods", Added, "a");
    assert_eq!(world.take_log(), ["g.sh kubernetes [pods Added a]", "one sync"]);
    let started = world.notices.iter().filter_map(|notice| match notice {
        Notice::ConvergeStarted { reason } => Some(reason.as_str()),
        _ => None,
    });
    assert_eq!(
        started.collect::<Vec<_>>(),
        ["Operator-Startup", "Kubernetes-Change-GlobalValues"]
    );
}

#[test]
fn only_the_events_that_a_binding_names_run_its_hook() {
    let hook = "kubernetes:\n- name: pods\n  kind: Pod\n  executeHookOnEvent: [Deleted]";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", hook).start();
    world.take_log();
    world.change("one/h.sh pods", Added, "a");
    world.change("one/h.sh pods", Modified, "a");
    assert_eq!(world.take_log(), [""; 0]);
    world.change("one/h.sh pods", Deleted, "a");
    assert_eq!(world.take_log(), ["one/h.sh kubernetes [pods Deleted a]"]);
}

#[test]
fn changes_that_wait_for_one_hook_are_told_at_once_and_those_of_a_group_by_the_last() {
    let hook = "kubernetes:\n- name: pods\n  kind: Pod\n- name: nodes\n  kind: Node\n  group: g\n- name: jobs\n  kind: Job\n  group: g";
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", hook)
        .hook("one", "slow.sh", "kubernetes:\n- name: pods\n  kind: Pod")
        .start();
    world.take_log();
    world.open.insert("one/slow.sh kubernetes".to_owned());
    world.change("one/slow.sh pods", Added, "x");
    for (monitor, object) in [("pods", "a"), ("nodes", "n"), ("jobs", "j"), ("pods", "b")] {
        world.change(&format!("one/h.sh {monitor}"), Added, object);
    }
    assert_eq!(
        world.tasks("main")[1..3],
        [
            "ModuleHookRun:main:kubernetes:h.sh:pods:Kubernetes",
            "ModuleHookRun:main:kubernetes:h.sh:nodes:Kubernetes"
        ]
    );
    world.take_log();
    world.close("one/slow.sh kubernetes");
    assert_eq!(
        world.take_log(),
        [
            "one/slow.sh kubernetes [pods Added x]",
            "one/h.sh kubernetes [pods Added a] [jobs Added j of g] [pods Added b]"
        ]
    );
}

#[test]
fn a_hook_of_the_old_form_is_told_one_thing_at_a_time_and_never_of_what_is_there() {
    let mut world = World::new(vec![module(10, "one")])
        .old_hook("one", "h.sh", "onKubernetesEvent:\n- name: pods\n  kind: Pod")
        .hook("one", "slow.sh", PODS)
        .start();
    assert_eq!(
        world.take_log(),
        [
            "one/h.sh watch",
            "one/slow.sh watch",
            "one/slow.sh kubernetes [pods all]",
            "one sync"
        ]
    );
    world.open.insert("one/slow.sh kubernetes".to_owned());
    world.change("one/slow.sh pods", Added, "x");
    world.change("one/h.sh pods", Added, "a");
    world.change("one/h.sh pods", Deleted, "a");
    world.close("one/slow.sh kubernetes");
    assert_eq!(
        world.take_log()[1..],
        [
            "one/h.sh kubernetes [pods Added a]",
            "one/h.sh kubernetes [pods Deleted a]"
        ]
    );
}

#[test]
fn a_failing_head_holds_back_its_own_queue_and_no_other() {
    let hook = "kubernetes:\n- name: pods\n  kind: Pod\n  queue: side\n- name: nodes\n  kind: Node";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", hook).start();
    world.take_log();
    world.failing.insert("one/h.sh kubernetes".to_owned(), 1);
    world.change("one/h.sh pods", Added, "a");
    world.change("one/h.sh pods", Added, "b");
    world.change("one/h.sh nodes", Added, "n");
    assert_eq!(
        world.take_log(),
        ["one/h.sh kubernetes fails", "one/h.sh kubernetes [nodes Added n]"]
    );
    world.sleep();
    assert_eq!(world.take_log(), ["one/h.sh kubernetes [pods Added a] [pods Added b]"]);
}

#[test]
fn a_failure_that_a_binding_allows_is_let_pass() {
    let hook = "kubernetes:\n- name: pods\n  kind: Pod\n  allowFailure: true";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", hook).start();
    world.take_log();
    world.failing.insert("one/h.sh kubernetes".to_owned(), 1);
    world.change("one/h.sh pods", Added, "a");
    world.change("one/h.sh pods", Added, "b");
    assert_eq!(
        world.take_log(),
        ["one/h.sh kubernetes fails", "one/h.sh kubernetes [pods Added b]"]
    );
}

#[test]
fn a_stage_and_a_schedule_get_the_snapshots_that_they_want() {
    let hook = "beforeHelm: 1\nkubernetes:\n- name: pods\n  kind: Pod\n- name: pods\n  kind: Node\n- name: jobs\n  kind: Job\n\
                schedule:\n- crontab: '* * * * * *'\n  includeSnapshotsFrom: [jobs]";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", hook);
    world.open.insert("one/h.sh beforeHelm".to_owned());
    let mut world = world.start();
    let wanted = |world: &World| {
        let Some(Job::RunHook(run, _)) = world.pending.first() else {
            panic!("{:?}", world.pending)
        };
        let wanted = run.snapshots.iter().map(|(name, id)| format!("{name} {}", id.0));
        wanted.collect::<Vec<_>>()
    };
    assert_eq!(wanted(&world), ["jobs 3", "pods 1"]);
    world.close("one/h.sh beforeHelm");
    world.open.insert("one/h.sh schedule".to_owned());
    world.sleep();
    assert_eq!(wanted(&world), ["jobs 3"]);
}

#[test]
fn the_end_of_a_module_is_the_end_of_its_monitors_after_its_last_hook() {
    let hook = format!("{PODS}\n  queue: side\nafterDeleteHelm: 1");
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", &hook).start();
    world.open.insert("one/h.sh kubernetes".to_owned());
    world.change("one/h.sh pods", Added, "a");
    world.change("one/h.sh pods", Added, "b");
    world.open.insert("one/h.sh afterDeleteHelm".to_owned());
    world.edit(&[("oneEnabled", Some("false"))]);
    let dropped = |notice: &Notice| matches!(notice, Notice::TasksDropped { count: 1, .. });
    assert!(world.notices.iter().any(dropped), "{:?}", world.notices);
    let Some(Job::RunHook(run, _)) = world.pending.last() else {
        panic!("{:?}", world.pending)
    };
    assert_eq!((run.labels.cause.key(), run.snapshots.len()), ("afterDeleteHelm", 1));
    world.change("one/h.sh pods", Added, "c");
    let late = world.change_unheard("one/h.sh pods", Added, "d");
    world.close("one/h.sh kubernetes");
    world.close("one/h.sh afterDeleteHelm");
    assert_eq!(world.stopped, ["one/h.sh pods"]);
    world.take_log();
    world.handle(Event::ObjectChanged(late));
    assert_eq!(world.take_log(), [""; 0]);
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(
        world.take_log(),
        ["one/h.sh watch", "one/h.sh kubernetes [pods all]", "one sync"]
    );
}

#[test]
fn monitors_are_named_for_who_wants_to_see_their_snapshots() {
    let world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", &format!("{PODS}\n- name: nodes\n  kind: Node"))
        .hook("one", "other.sh", "beforeHelm: 1")
        .start();
    let monitors = world
        .operator
        .answer(&MonitorsQuery(Owner::Module(name("one"))))
        .unwrap();
    let shown: Vec<_> = monitors
        .iter()
        .map(|(hook, monitors)| {
            let names: Vec<_> = monitors.iter().map(|(name, id)| format!("{name} {}", id.0)).collect();
            format!("{hook}: {}", names.join(", "))
        })
        .collect();
    assert_eq!(shown, ["h.sh: pods 1, nodes 2", "other.sh: "]);
}
