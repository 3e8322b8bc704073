//! Enabled scripts that take long, or never end.

use super::*;

const ASKED: &str = "slow enabled?";

/// A world with the module `slow`, whose script does not answer, before the module `other`.
fn world() -> World {
    let slow = Module {
        has_enabled_script: true,
        ..module(10, "slow")
    };
    let mut world = World::new(vec![slow, module(20, "other")]);
    world.open.insert(ASKED.to_owned());
    world.start()
}

/// Ends the script of `slow` with an answer.
fn answer(world: &mut World, enabled: bool) {
    answer_to(world, ASKED, enabled);
}

fn answer_to(world: &mut World, asked: &str, enabled: bool) {
    let at = world.pending.iter().position(|job| words(job) == asked).unwrap();
    let job = world.pending.remove(at);
    let answer = ScriptAnswer {
        enabled,
        ..ScriptAnswer::default()
    };
    world.handle(Event::JobFinished(answered(&job, answer)));
}

fn running(world: &World) -> usize {
    world.pending.iter().filter(|job| words(job) == ASKED).count()
}

#[test]
fn the_others_go_on_without_a_script_that_takes_its_time_and_its_answer_counts_when_it_comes() {
    let mut world = world();
    assert_eq!(world.take_log(), [""; 0]);
    world.sleep();
    assert_eq!(world.take_log(), ["other sync"]);
    assert!(world.status().ready);
    assert_eq!(
        world.waits_for("slow"),
        "its enabled script, which has been running for 10s"
    );
    let late = |notice: &&Notice| matches!(notice, Notice::ScriptLate { module, .. } if *module == name("slow"));
    assert_eq!(world.notices.iter().filter(late).count(), 1);

    // An input changes meanwhile: the round does not wait for the script again, and it is not started a second time.
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["other sync"]);
    assert_eq!((running(&world), world.waits_for("other")), (1, String::new()));
    // The answer was for the inputs of before, so the script is started again.
    answer(&mut world, false);
    assert_eq!(running(&world), 1);
    answer(&mut world, true);
    assert_eq!(world.take_log(), ["slow sync", "other sync"]);
    assert_eq!(world.waits_for("slow"), "");
}

#[test]
fn a_late_no_removes_what_a_script_had_allowed() {
    let mut world = world();
    answer(&mut world, true);
    assert_eq!(world.take_log(), ["slow sync", "other sync"]);
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(running(&world), 1);
    world.sleep();
    assert_eq!(
        world.take_log(),
        ["slow sync", "other sync"],
        "as it was, until it answers"
    );
    answer(&mut world, false);
    assert_eq!(world.take_log(), ["slow delete", "other sync"]);
    assert_eq!(running(&world), 0, "what it said is not asked again");
}

#[test]
fn a_script_that_is_ended_late_fails_by_name_and_is_asked_again() {
    let mut world = world();
    world.sleep();
    let job = world.pending.remove(0);
    let failure = Failure::new(Class::TimedOut, "it did not end");
    world.handle(Event::JobFinished(job.failed(failure)));
    let modules = world.operator.answer(&ModulesQuery);
    let failing = &modules[0].failing[0];
    assert_eq!((failing.task, failing.failures), ("EnabledScript", 1));
    assert_eq!(failing.error, "it did not end");
    assert!(failing.retry_in.is_some(), "{failing:?}");
    assert!(modules[0].fails && !modules[1].fails);
    world.sleep();
    assert_eq!(running(&world), 1);
    answer(&mut world, true);
    assert_eq!(world.take_log(), ["other sync", "slow sync", "other sync"]);
}

#[test]
fn one_that_fails_does_not_keep_one_that_is_slow_from_being_heard() {
    let scripted = |order, text| Module {
        has_enabled_script: true,
        ..module(order, text)
    };
    let mut world = World::new(vec![scripted(5, "failing"), scripted(10, "slow")]);
    world.failing.insert("failing enabled?".to_owned(), 1);
    world.open.insert(ASKED.to_owned());
    let mut world = world.start();
    assert_eq!(world.take_log(), ["failing enabled? fails"]);
    // Longer than the delay after a failure, and shorter than the patience with a script.
    world.tick = world.tick + Duration::from_secs(8);
    world.handle(Event::TimerFired);
    assert_eq!((running(&world), world.take_log().len()), (1, 0));
    answer(&mut world, true);
    assert_eq!(world.take_log()[0], "failing enabled?");
}

#[test]
fn in_strict_order_a_script_is_waited_for_to_its_end() {
    let slow = Module {
        has_enabled_script: true,
        ..module(10, "slow")
    };
    let mut world = World::new(vec![slow, module(20, "other")]);
    let policy = Policy {
        strict_order: true,
        ..Policy::default()
    };
    world.operator = Operator::new(1, policy);
    world.open.insert(ASKED.to_owned());
    let mut world = world.start();
    assert_eq!(world.operator.poll_timeout(), None);
    answer(&mut world, true);
    assert_eq!(world.take_log(), ["slow sync", "other sync"]);
}

#[test]
fn a_script_that_was_left_behind_takes_no_place_from_hooks() {
    let slow = Module {
        has_enabled_script: true,
        ..module(10, "slow")
    };
    let mut world = World::new(vec![slow, module(20, "other")]).hook("other", "h.sh", "beforeHelm: 1");
    let policy = Policy {
        hook_slots: 1,
        ..Policy::default()
    };
    world.operator = Operator::new(1, policy);
    world.open.insert(ASKED.to_owned());
    let mut world = world.start();
    world.sleep();
    assert_eq!(world.take_log(), ["other/h.sh beforeHelm", "other sync"]);
    answer(&mut world, true);
    assert_eq!(world.take_log(), ["slow sync", "other/h.sh beforeHelm", "other sync"]);
}

#[test]
fn nor_does_one_that_nobody_waits_for_as_others_are_asked_anew() {
    let scripted = |order, text| Module {
        has_enabled_script: true,
        ..module(order, text)
    };
    let modules = vec![scripted(5, "first"), scripted(10, "slow"), module(20, "other")];
    let mut world = World::new(modules);
    let policy = Policy {
        hook_slots: 1,
        ..Policy::default()
    };
    world.operator = Operator::new(1, policy);
    world.open.insert(ASKED.to_owned());
    let mut world = world.start();
    assert_eq!(world.take_log(), ["first enabled?"]);
    world.edit(&[("firstEnabled", Some("true"))]);
    assert_eq!(world.take_log(), [""; 0], "the only place is taken");
    world.sleep();
    assert_eq!(world.take_log(), ["first enabled?", "first sync", "other sync"]);
}

#[test]
fn a_module_that_is_wanted_after_all_is_not_removed_while_its_script_is_asked() {
    let scripted = Module {
        has_enabled_script: true,
        ..module(10, "slow")
    };
    let mut world = World::new(vec![scripted, module(20, "other")]).start();
    world.take_log();
    world.open.extend(["other delete", ASKED].map(str::to_owned));
    world.edit(&[("slowEnabled", Some("false")), ("otherEnabled", Some("false"))]);
    world.edit(&[("slowEnabled", Some("true"))]);
    world.close("other delete");
    assert_eq!(world.take_log(), ["other delete"]);
    answer(&mut world, true);
    assert_eq!(world.take_log(), ["slow sync"]);
}

#[test]
fn what_one_said_before_another_answered_is_asked_again() {
    let scripted = |order, text| Module {
        has_enabled_script: true,
        ..module(order, text)
    };
    let mut world = World::new(vec![scripted(10, "slow"), scripted(20, "other")]);
    let other = "other enabled?";
    world.open.extend([ASKED, other].map(str::to_owned));
    let mut world = world.start();
    world.sleep();
    world.sleep();
    answer_to(&mut world, other, false);
    answer(&mut world, true);
    assert_eq!(world.take_log(), [""; 0], "the other one has not heard of that");
    answer_to(&mut world, other, true);
    assert_eq!(world.take_log(), ["slow sync", "other sync"]);
}

#[test]
fn a_no_that_was_said_before_another_answered_removes_nothing() {
    let scripted = |order, text| Module {
        has_enabled_script: true,
        ..module(order, text)
    };
    let mut world = World::new(vec![scripted(10, "slow"), scripted(20, "other")]);
    world.releases.push(ReleaseSummary {
        name: "other".to_owned(),
        ours: true,
        config: None,
    });
    let other = "other enabled?";
    world.open.extend([ASKED, other].map(str::to_owned));
    let mut world = world.start();
    world.sleep();
    answer_to(&mut world, other, false);
    assert_eq!(world.state("other"), "Disabled");
    assert_eq!(world.take_log(), [""; 0]);
    answer(&mut world, true);
    answer_to(&mut world, other, false);
    assert_eq!(world.take_log(), ["other delete", "slow sync"], "now it knows");
}

#[test]
fn a_plain_edit_of_a_section_asks_no_script_but_its_own() {
    let mut asked = module(10, "asked");
    asked.has_enabled_script = true;
    let mut world = World::new(vec![asked, module(20, "plain")]).start();
    world.take_log();
    world.edit(&[("plain", Some("size: 1"))]);
    assert_eq!(world.take_log(), ["plain sync"]);
    world.edit(&[("asked", Some("size: 1"))]);
    assert_eq!(world.take_log(), ["asked enabled?", "asked sync"]);
    world.edit(&[("global", Some("size: 1"))]);
    assert!(world.take_log().contains(&"asked enabled?".to_owned()));
}

#[test]
fn what_a_slow_script_answers_counts_after_a_plain_edit_of_another_section() {
    let mut world = world();
    world.sleep();
    world.take_log();
    world.edit(&[("other", Some("size: 1"))]);
    assert_eq!((world.take_log(), running(&world)), (vec!["other sync".to_owned()], 1));
    answer(&mut world, true);
    assert_eq!(running(&world), 0, "it is not asked anew");
    assert_eq!(world.take_log(), ["slow sync", "other sync"]);
}
