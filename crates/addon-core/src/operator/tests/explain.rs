//! What people are told of a module.

use super::*;
use crate::operator::query::{FailingTask, ModuleReport};

fn report(world: &World, module: &str) -> ModuleReport {
    let Answer::Modules(modules) = world.operator.answer(&Query::Modules) else {
        panic!("another question was answered");
    };
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
    let answer = |module: &str| world.operator.answer(&Query::ReleaseValues(name(module)));
    let Answer::ReleaseValues(values) = answer("one") else {
        panic!("another question was answered");
    };
    let values = values.to_value();
    assert_eq!(
        (&values["global"]["zone"], &values["one"]),
        (&json!("a"), &json!({"size": 1}))
    );
    assert_eq!(answer("nobody"), Answer::NoSuchModule);
}
