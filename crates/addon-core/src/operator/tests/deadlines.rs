//! The deadline of a hook's run: that of its binding, else that of its hook, else the policy's.

use super::*;

const GLOBAL: u64 = 30 * 60;

/// The deadlines of the running hooks, in seconds.
fn given(world: &World) -> Vec<(String, u64)> {
    let runs = world.pending.iter().filter_map(|job| match job {
        Job::RunHook(run, _) => Some((words(job), run.deadline.as_secs())),
        _ => None,
    });
    runs.collect()
}

fn open(world: &mut World, words: &str) {
    world.open.insert(words.to_owned());
}

/// Ends the job that was started first, and lets the operator go on.
fn end_first(world: &mut World) {
    let job = world.pending.remove(0);
    let finished = world.carry_out(&job);
    world.handle(Event::JobFinished(finished));
}

/// A world with a hook whose kubernetes bindings have had their first runs.
fn watching(config: &str) -> World {
    let mut world = World::alone().hook("", "a.sh", config);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    open(&mut world, "a.sh kubernetes");
    world.take_log();
    world
}

#[test]
fn the_binding_wins_over_the_hook_and_the_hook_over_the_policy() {
    let kubernetes = "kubernetes:\n- name: pods\n  kind: Pod";
    let rows = [
        (format!("onStartup: 1\n{kubernetes}"), GLOBAL, GLOBAL),
        (
            format!("onStartup: 1\nsettings: {{timeout: 5m}}\n{kubernetes}"),
            300,
            300,
        ),
        (
            format!("onStartup: 1\nsettings: {{timeout: 5m}}\n{kubernetes}\n  timeout: 1h"),
            300,
            3600,
        ),
        (format!("onStartup: 1\n{kubernetes}\n  timeout: 5s"), GLOBAL, 5),
    ];
    for (config, at_start, at_event) in rows {
        let mut world = World::alone().hook("", "a.sh", &config);
        open(&mut world, "a.sh onStartup");
        let inventory = world.inventory.clone();
        world.handle(Event::InventoryChanged(inventory));
        assert_eq!(given(&world), [("a.sh onStartup".to_owned(), at_start)], "{config}");
        open(&mut world, "a.sh kubernetes");
        world.close("a.sh onStartup");
        assert_eq!(given(&world), [("a.sh kubernetes".to_owned(), at_event)], "{config}");
        world.close("a.sh kubernetes");
        open(&mut world, "a.sh kubernetes");
        world.change("a.sh pods", WatchEvent::Added, "x");
        assert_eq!(given(&world), [("a.sh kubernetes".to_owned(), at_event)], "{config}");
    }
}

#[test]
fn the_hooks_of_a_module_and_its_schedules_have_theirs() {
    let config = "beforeHelm: 1\nsettings: {timeout: 7s}\nschedule:\n- crontab: '* * * * * *'\n  timeout: 3s";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", config);
    open(&mut world, "one/h.sh beforeHelm");
    let mut world = world.start();
    assert_eq!(given(&world), [("one/h.sh beforeHelm".to_owned(), 7)]);
    open(&mut world, "one/h.sh schedule");
    world.close("one/h.sh beforeHelm");
    world.sleep();
    assert_eq!(given(&world), [("one/h.sh schedule".to_owned(), 3)]);
}

#[test]
fn a_run_that_tells_several_things_has_the_longest_time_of_them() {
    for group in ["", "\n  group: g"] {
        let bindings = format!(
            "kubernetes:\n- name: pods\n  kind: Pod\n  timeout: 5s{group}\n- name: jobs\n  kind: Job\n  timeout: 1m{group}\n\
             - name: nodes\n  kind: Node\n  timeout: 1s{group}"
        );
        let mut world = watching(&bindings);
        world.change("a.sh pods", WatchEvent::Added, "first");
        world.change("a.sh jobs", WatchEvent::Added, "x");
        world.change("a.sh nodes", WatchEvent::Added, "x");
        end_first(&mut world);
        assert_eq!(given(&world), [("a.sh kubernetes".to_owned(), 60)], "group:{group}");
    }
}

#[test]
fn who_sets_no_time_counts_with_that_of_the_policy_in_such_a_run() {
    let mut world = watching("kubernetes:\n- name: pods\n  kind: Pod\n  timeout: 5s\n- name: jobs\n  kind: Job");
    world.change("a.sh pods", WatchEvent::Added, "first");
    world.change("a.sh pods", WatchEvent::Added, "x");
    world.change("a.sh jobs", WatchEvent::Added, "x");
    end_first(&mut world);
    assert_eq!(given(&world), [("a.sh kubernetes".to_owned(), GLOBAL)]);
}

#[test]
fn a_run_that_is_tried_again_has_as_much_time_as_before() {
    let mut world = watching("kubernetes:\n- name: pods\n  kind: Pod\n  timeout: 5s");
    world.failing.insert("a.sh kubernetes".to_owned(), 1);
    world.open.clear();
    world.change("a.sh pods", WatchEvent::Added, "x");
    assert_eq!(world.take_log(), ["a.sh kubernetes fails"]);
    open(&mut world, "a.sh kubernetes");
    world.sleep();
    assert_eq!(given(&world), [("a.sh kubernetes".to_owned(), 5)]);
}
