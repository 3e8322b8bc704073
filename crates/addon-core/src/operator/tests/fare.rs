//! The pulse of a process, by which its version is judged.

use channel_core::choice::Activity;
use channel_core::trial::record::Failures;

use super::pulse::Pulse;
use super::*;

impl World {
    pub(super) fn pulse(&self) -> Pulse {
        self.operator.answer(&PulseQuery)
    }

    pub(super) fn failing(&self) -> Vec<(String, Failures)> {
        self.pulse().failing.into_iter().collect()
    }
}

#[test]
fn a_pulse_names_what_fails_and_how_often_in_a_row() {
    let broken = Module {
        broken: Some(Failure::new(Class::Invalid, "no values")),
        ..module(30, "broken")
    };
    let hook = "schedule:\n- crontab: '* * * * * *'\n  queue: side";
    let mut world = World::new(vec![module(10, "one"), module(20, "two"), broken])
        .hook("", "g.sh", hook)
        .hook("", "all.sh", "afterAll: 1");
    world.failing.insert("one sync".to_owned(), 2);
    world.failing.insert("all.sh afterAll".to_owned(), 1);
    let mut world = world.start();
    let failing = |rows: &[(&str, Failures)]| -> Vec<(String, Failures)> {
        let rows = rows.iter();
        rows.map(|(subject, failures)| ((*subject).to_owned(), *failures))
            .collect()
    };
    let once = Failures::InARow(1);
    let for_good = ("module broken", Failures::ForGood);
    assert_eq!(
        world.failing(),
        failing(&[("hook all.sh", once), for_good, ("module one", once)])
    );
    assert_eq!(
        (world.pulse().converged, world.pulse().activity),
        (false, Activity::Busy)
    );
    while world.pulse().failing.contains_key("module one") {
        world.failing.insert("g.sh schedule".to_owned(), 1);
        world.sleep();
    }
    assert!(world.pulse().failing["hook g.sh"] > Failures::InARow(0));
    world.failing.clear();
    while world.pulse().failing.contains_key("hook g.sh") {
        world.sleep();
    }
    assert_eq!(world.failing(), failing(&[for_good]));
    assert!(world.pulse().converged);
}

#[test]
fn a_module_that_rests_after_a_failure_disturbs_nobody() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]);
    world.failing.insert("one sync".to_owned(), 9);
    let mut world = world.start();
    while !world.pulse().converged {
        world.sleep();
    }
    assert_eq!(world.pulse().activity, Activity::Quiet);
    assert!(world.pulse().failing.contains_key("module one"));
}

#[test]
fn a_moment_is_quiet_when_main_is_empty_and_no_helm_runs() {
    let hook = "schedule:\n- crontab: '* * * * * *'\n  queue: side";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", hook);
    assert_eq!(world.pulse().activity, Activity::Busy, "nothing is known yet");
    world.open.insert("one sync".to_owned());
    let mut world = world.start();
    assert_eq!(world.pulse().activity, Activity::Busy);
    world.close("one sync");
    assert_eq!(world.pulse().activity, Activity::Quiet);
    world.open.insert("one/h.sh schedule".to_owned());
    world.sleep();
    assert_eq!(
        world.pulse().activity,
        Activity::Quiet,
        "a queue of its own disturbs nobody"
    );
    world.open.insert("one sync".to_owned());
    world.edit(&[("one", Some("a: 1"))]);
    assert_eq!(world.pulse().activity, Activity::Busy);
}

#[test]
fn failures_in_a_row_are_counted_over_converges_that_begin_anew() {
    let mut world = World::new(vec![module(10, "one")]);
    world.failing.insert("one sync".to_owned(), 3);
    let mut world = world.start();
    let one = |times: u32| vec![("module one".to_owned(), Failures::InARow(times))];
    assert_eq!(world.failing(), one(1));
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.failing(), one(2));
    world.sleep();
    assert_eq!(world.failing(), one(3));
    world.edit(&[("global", Some("color: blue"))]);
    assert_eq!(world.failing(), []);
}

#[test]
fn a_module_is_not_at_fault_while_the_api_server_is_away() {
    let hindered = |world: &World| world.pulse().hindered.into_iter().collect::<Vec<_>>();
    let mut world = World::new(vec![module(10, "one")]);
    world.failing.insert("one sync".to_owned(), 3);
    world.is_away = true;
    let mut world = world.start();
    world.sleep();
    assert_eq!(
        (world.failing(), hindered(&world)),
        (Vec::new(), vec!["module one".to_owned()])
    );
    world.is_away = false;
    world.sleep();
    let once = Failures::InARow(1);
    assert_eq!(
        (world.failing(), hindered(&world)),
        (vec![("module one".to_owned(), once)], Vec::new())
    );
    world.sleep();
    assert_eq!((world.failing(), hindered(&world)), (Vec::new(), Vec::new()));
}
