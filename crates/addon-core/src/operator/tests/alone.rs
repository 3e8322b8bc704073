//! Hooks without modules.

use super::*;
use WatchEvent::Added;

#[test]
fn main_holds_the_start_in_the_original_order() {
    let mut world = World::alone()
        .hook("", "b.sh", "onStartup: 1\nkubernetes:\n- name: pods\n  kind: Pod")
        .hook("", "a.sh", "onStartup: 2\nschedule:\n- crontab: '* * * * * *'\nkubernetes:\n- name: pods\n  kind: Pod\n  queue: side\n- name: jobs\n  kind: Job");
    world.open.insert("b.sh onStartup".to_owned());
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    assert_eq!(
        world.tasks("main"),
        [
            "HookRun::onStartup:b.sh",
            "HookRun::onStartup:a.sh",
            "EnableKubernetesBindings:::a.sh:EnableKubernetesBindings",
            "EnableScheduleBindings:::a.sh:EnableScheduleBindings",
            "EnableKubernetesBindings:::b.sh:EnableKubernetesBindings"
        ]
    );
    assert!(world.operator.poll_timeout().is_none(), "no schedule counts yet");
    world.open.insert("a.sh kubernetes".to_owned());
    world.close("b.sh onStartup");
    assert_eq!(
        world.tasks("main"),
        [
            "HookRun:main:kubernetes:a.sh:pods",
            "HookRun:main:kubernetes:a.sh:jobs",
            "EnableScheduleBindings:::a.sh:EnableScheduleBindings",
            "EnableKubernetesBindings:::b.sh:EnableKubernetesBindings"
        ]
    );
    world.open.clear();
    world.drain();
    assert_eq!(
        world.take_log(),
        [
            "b.sh onStartup",
            "a.sh onStartup",
            "a.sh watch",
            "a.sh kubernetes [pods all]",
            "a.sh kubernetes [jobs all]",
            "b.sh watch",
            "b.sh kubernetes [pods all]"
        ]
    );
    assert!(world.status().ready && world.status().waiting.is_empty());
    world.sleep();
    assert_eq!(world.take_log(), ["a.sh schedule"]);
    world.change("a.sh pods", Added, "x");
    assert_eq!(world.take_log(), ["a.sh kubernetes [pods Added x]"]);
}

#[test]
fn first_runs_of_a_group_are_told_at_once() {
    let hook = "kubernetes:\n- name: pods\n  kind: Pod\n  group: g\n- name: jobs\n  kind: Job\n  group: g\n- name: nodes\n  kind: Node";
    let mut world = World::alone().hook("", "a.sh", hook);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    assert_eq!(
        world.take_log(),
        ["a.sh watch", "a.sh kubernetes [jobs all of g] [nodes all]"]
    );
}

#[test]
fn a_failing_first_run_blocks_everything_behind_it() {
    let mut world = World::alone()
        .hook("", "a.sh", "kubernetes:\n- name: pods\n  kind: Pod")
        .hook("", "b.sh", "kubernetes:\n- name: pods\n  kind: Pod");
    world.failing.insert("a.sh kubernetes".to_owned(), 1);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    assert_eq!(world.take_log(), ["a.sh watch", "a.sh kubernetes fails"]);
    assert_eq!(
        world.tasks("main")[0],
        "HookRun:main:kubernetes:a.sh:pods:failures 1:a.sh FAILED: no"
    );
    world.sleep();
    assert_eq!(
        world.take_log(),
        ["a.sh kubernetes [pods all]", "b.sh watch", "b.sh kubernetes [pods all]"]
    );
}

#[test]
fn without_a_hooks_configuration_there_is_no_start() {
    let mut world = World::alone().hook("", "a.sh", "onStartup: 1");
    world.failing.insert("--config".to_owned(), 1);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    assert_eq!(world.take_log(), ["--config fails", "gives up: no"]);
    world.handle(Event::TimerFired);
    assert!(world.operator.poll_timeout().is_none() && world.pending.is_empty());
}

#[test]
fn no_hooks_are_fine() {
    let mut world = World::alone();
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    assert!(world.status().ready && world.pending.is_empty());
}

#[test]
fn hooks_alone_do_not_know_the_stages_of_modules() {
    for stage in ["beforeAll", "afterAll", "beforeHelm"] {
        let config = format!("configVersion: v1\nonStartup: 1\n{stage}: 1");
        let error = HookConfig::parse(&config, HookKind::Standalone)
            .unwrap_err()
            .to_string();
        assert!(error.contains("forbidden property"), "{error}");
    }
    let conversion = "configVersion: v1\nkubernetesCustomResourceConversion:\n- name: c\n  crdName: a.b.c\n  conversions:\n  - fromVersion: v1\n    toVersion: v2";
    assert_eq!(
        HookConfig::parse(conversion, HookKind::Standalone)
            .unwrap()
            .conversions
            .len(),
        1
    );
    assert!(HookConfig::parse(conversion, HookKind::Module).is_ok());
}
