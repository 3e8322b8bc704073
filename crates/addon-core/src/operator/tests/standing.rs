//! Several replicas: a standby does nothing, and a deposed leader does nothing more.

use super::*;

const HOOK: &str = "onStartup: 1\nschedule:\n- crontab: '* * * * *'";
/// A world whose operator knows everything that a standby can know.
fn standby(modules: Vec<Module>) -> World {
    World::new(modules).hook("", "g.sh", HOOK).standby(4)
}

#[test]
fn a_standby_asks_its_hooks_what_they_bind_to_and_does_nothing_else() {
    let mut world = standby(vec![module(1, "one")]);
    world.edit(&[("one", Some("x: 1"))]);
    assert!(world.take_log().is_empty());
    assert!(
        world.operator.poll_timeout().is_none(),
        "it waits for nothing but its turn"
    );
    let status = world.status();
    assert!(!status.ready && status.not_started);
    assert_eq!(status.waiting, ["to be elected leader"]);
    let configured = |notice: &Notice| matches!(notice, Notice::HooksConfigured { .. });
    assert!(world.notices.iter().any(configured));
}

#[test]
fn a_standby_begins_when_it_is_elected_with_what_holds_then() {
    let mut world = standby(vec![module(1, "one"), module(2, "two")]);
    world.edit(&[("twoEnabled", Some("false"))]);
    world.notices.clear();
    world.handle(Event::Elected);
    assert_eq!(world.take_log(), ["g.sh onStartup", "one sync", "watch releases"]);
    assert!(world.status().ready);
    let configured = |notice: &Notice| {
        matches!(
            notice,
            Notice::HooksConfigured {
                owner: Owner::Global,
                ..
            }
        )
    };
    assert!(!world.notices.iter().any(configured), "that was known");
}

#[test]
fn what_a_standby_reads_for_weeks_is_forgotten_but_for_the_last() {
    let mut world = standby(vec![module(1, "one")]);
    for number in 0..1000 {
        world.edit(&[("one", Some(&format!("x: {number}")))]);
    }
    world.handle(Event::Elected);
    let values = ValuesQuery {
        module: Some(name("one")),
        with_global: false,
        secrets: Secrets::Shown,
    };
    assert_eq!(world.operator.answer(&values), Ok(json!({"x": 999})));
}

#[test]
fn a_leader_that_is_deposed_ends_what_runs_at_once() {
    let mut world = standby(vec![module(1, "one")]);
    world.open.insert("one sync".to_owned());
    world.handle(Event::Elected);
    world.take_log();
    world.handle(Event::Deposed);
    let log = world.take_log();
    assert!(log.len() == 1 && log[0].starts_with("cancel "), "{log:?}");
    world.close("one sync");
    assert!(world.take_log().contains(&"exit".to_owned()));
}

#[test]
fn a_deposed_leader_that_was_stopping_does_not_go_on_with_that() {
    let mut world = standby(vec![module(1, "one")]);
    world.open.insert("one sync".to_owned());
    world.handle(Event::Elected);
    world.take_log();
    world.handle(Event::ShutdownRequested);
    assert!(world.take_log().is_empty(), "what runs has its time");
    world.handle(Event::Deposed);
    assert!(world.take_log()[0].starts_with("cancel "));
}

#[test]
fn a_standby_that_is_asked_to_stop_stops() {
    let mut world = standby(vec![module(1, "one")]);
    world.handle(Event::ShutdownRequested);
    assert_eq!(world.take_log(), ["exit"]);
}

#[test]
fn a_job_that_is_not_known_changes_nothing_when_it_ends() {
    let mut world = World::new(vec![module(1, "one")]);
    world.open.insert("one sync".to_owned());
    let mut world = world.start();
    let job = world.pending[0].clone();
    world.close("one sync");
    world.take_log();
    let (tasks, state, notices) = (world.tasks("main"), world.state("one"), world.notices.len());
    world.handle(Event::JobFinished(
        job.failed(Failure::new(Class::HookFailed, "once more")),
    ));
    assert_eq!((world.tasks("main"), world.state("one")), (tasks, state));
    assert_eq!((world.take_log().len(), world.notices.len()), (0, notices));
}
