//! The reports about modules and queues.

use super::*;
use crate::operator::query::{FailingTask, ModuleReport};

fn report(world: &World, module: &str) -> ModuleReport {
    let modules = world.operator.answer(&ModulesQuery);
    modules.into_iter().find(|report| report.name == module).unwrap()
}

#[test]
fn a_failing_run_is_told_with_its_next_attempt_and_a_waiting_module_with_those_before_it() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]);
    world.open.insert("one sync".to_owned());
    let mut world = world.start();
    assert_eq!(report(&world, "two").after, ["one"]);
    assert!(report(&world, "one").after.is_empty() && report(&world, "one").failing.is_empty());

    world.failing.insert("one sync".to_owned(), 1);
    world.open.clear();
    world.drain();
    let one = report(&world, "one");
    assert_eq!((one.failing.len(), one.failures), (1, 1));
    assert_eq!(one.hints, ["try another"]);
    let FailingTask {
        queue,
        task,
        hook,
        failures,
        error,
        retry_in,
    } = &one.failing[0];
    assert_eq!(
        (queue.as_str(), *task, hook.as_str(), *failures),
        ("main", "ModuleRun", "", 1)
    );
    assert!(
        error.contains("no") && retry_in.is_some_and(|seconds| seconds > 0),
        "{one:?}"
    );
    assert_eq!(report(&world, "two").after, Vec::<String>::new());
}

#[test]
fn warnings_about_a_release_are_told_until_the_module_is_gone() {
    let mut world = World::new(vec![module(10, "one")]).start();
    assert_eq!(report(&world, "one").remarks, ["a webhook of one"]);
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(report(&world, "one").state, "Disabled");
    assert_eq!(report(&world, "one").remarks, Vec::<String>::new());
}

#[test]
fn a_failing_hook_of_another_queue_is_told_although_its_module_is_ready() {
    let config = "schedule: [{name: s, crontab: '* * * * * *', queue: side}]";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "hooks/a", config);
    world.failing.insert("one/hooks/a schedule".to_owned(), 9);
    let mut world = world.start();
    world.tick = world.tick + Duration::from_secs(2);
    world.handle(Event::TimerFired);
    let one = report(&world, "one");
    assert_eq!((one.state.as_str(), one.waits_for.as_str()), ("Ready", ""));
    let told: Vec<_> = one
        .failing
        .iter()
        .map(|task| (task.queue.as_str(), task.hook.as_str()))
        .collect();
    assert_eq!(told, [("side", "hooks/a")], "{:?}", world.log);
}

#[test]
fn a_broken_key_is_told_with_the_module_that_it_concerns() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).start();
    world.edit(&[("two", Some("- [")), ("twoEnabled", Some("on"))]);
    assert_eq!(report(&world, "two").config_problems.len(), 2);
    assert!(report(&world, "one").config_problems.is_empty());
}

#[test]
fn the_values_of_a_release_are_those_that_its_job_would_be_given() {
    let mut world = World::new(vec![module(10, "one")]).start();
    world.edit(&[("global", Some("zone: a")), ("one", Some("size: 1"))]);
    let answer = |module: &str| world.operator.answer(&ReleaseValuesQuery(name(module)));
    let values = answer("one").unwrap().to_value();
    assert_eq!(
        (&values["global"]["zone"], &values["one"]),
        (&json!("a"), &json!({"size": 1}))
    );
    assert_eq!(answer("nobody"), Err(NoSuchModule));
}

/// The modules that need the attention of a person.
fn failing(world: &World) -> Vec<String> {
    let modules = world.operator.answer(&ModulesQuery);
    let failing = modules.into_iter().filter(|report| report.fails);
    failing.map(|report| report.name).collect()
}

#[test]
fn a_module_fails_from_its_first_failure_until_it_succeeds_or_is_removed() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]);
    world.failing.insert("two sync".to_owned(), 2);
    let mut world = world.start();
    assert_eq!(failing(&world), ["two"]);
    // A module counts as failing even while it is retried.
    world.open.insert("two sync".to_owned());
    world.sleep();
    assert_eq!(
        (report(&world, "two").state.as_str(), failing(&world)),
        ("Releasing", vec!["two".to_owned()])
    );
    world.open.clear();
    world.drain();
    assert_eq!(failing(&world), ["two"]);
    world.sleep();
    assert_eq!(failing(&world), Vec::<String>::new());

    world.failing.insert("one delete".to_owned(), 1);
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(failing(&world), ["one"], "it is off, and still there");
    world.sleep();
    assert_eq!(failing(&world), Vec::<String>::new());
}

#[test]
fn a_module_that_cannot_be_run_as_it_is_declared_fails_and_one_that_needs_it_does_not() {
    let needing = |order, text, need: &str| Module {
        depends_on: vec![name(need)],
        ..module(order, text)
    };
    let broken = Module {
        broken: Some(Failure::new(Class::Invalid, "no")),
        ..module(50, "broken")
    };
    let modules = vec![
        needing(10, "a", "b"),
        needing(20, "b", "a"),
        needing(30, "above", "a"),
        needing(40, "lost", "nowhere"),
        broken,
        needing(60, "behind", "broken"),
        module(70, "fine"),
    ];
    let mut world = World::new(modules).start();
    assert_eq!(failing(&world), ["a", "b", "lost", "broken"]);
    let off = ["aEnabled", "bEnabled", "brokenEnabled", "lostEnabled"];
    world.edit(&off.map(|key| (key, Some("false"))));
    assert_eq!(failing(&world), Vec::<String>::new(), "nobody wants them to run");
}

#[test]
fn a_removal_that_is_withheld_says_what_for() {
    let mut one = module(10, "one");
    one.enabled = Some(false);
    let mut two = module(20, "two");
    two.enabled = None;
    let mut world = World::new(vec![one, two]).hook("", "g.sh", "schedule:\n- crontab: '0 0 1 1 *'");
    world.releases = ["one", "two"]
        .map(|name| ReleaseSummary {
            name: name.to_owned(),
            ours: true,
            config: None,
        })
        .into();
    let world = world.start();
    let hook = "global hook 'g.sh' to have run before it is removed, as that hook may want it";
    assert_eq!([world.waits_for("one"), world.waits_for("two")], [hook, hook]);

    let mut two = module(20, "two");
    two.enabled = None;
    let mut world = World::new(vec![two]);
    world.releases.push(ReleaseSummary {
        name: "two".to_owned(),
        ours: true,
        config: None,
    });
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert_eq!(
        world.waits_for("two"),
        "a ConfigMap that people made and that does not name it before it is removed"
    );
}

/// The status of a queue in the report.
fn status_of(world: &World, queue: &str) -> String {
    let queues = world.operator.answer(&QueuesQuery);
    let report = queues.into_iter().find(|report| report.name == queue);
    report.map(|report| report.status).unwrap_or_default()
}

#[test]
fn a_task_names_its_trigger_and_a_queue_that_is_empty_how_long_it_has_been() {
    let mut world = World::new(vec![module(10, "one")]).hook(
        "one",
        "h.sh",
        "kubernetes:\n- {name: watched, kind: Pod, queue: own}",
    );
    world.open.insert("one/h.sh kubernetes".to_owned());
    let mut world = world.start();
    assert_eq!(
        world.tasks("own"),
        ["ModuleHookRun:own:kubernetes:h.sh:watched:OperatorStartup"]
    );
    assert_eq!(world.tasks("main")[0], "ModuleRun:main:one:doStartup:OperatorStartup");

    world.change("one/h.sh watched", WatchEvent::Added, "a");
    world.change("one/h.sh watched", WatchEvent::Modified, "a");
    world.close("one/h.sh kubernetes");
    assert_eq!(world.tasks("own"), [""; 0]);
    world.tick = world.tick + Duration::from_secs(63);
    world.handle(Event::TimerFired);
    assert_eq!(status_of(&world, "main"), "waiting for task 1m3s");
    assert_eq!(status_of(&world, "own"), "waiting for task 1m3s");

    world.open.insert("one/h.sh kubernetes".to_owned());
    for object in ["b", "c", "d"] {
        world.change("one/h.sh watched", WatchEvent::Added, object);
    }
    assert_eq!(world.tasks("own").len(), 3);
    assert_eq!(
        world.tasks("own")[0],
        "ModuleHookRun:own:kubernetes:h.sh:watched:Kubernetes"
    );
    assert_eq!(status_of(&world, "own"), "run first task");
}
