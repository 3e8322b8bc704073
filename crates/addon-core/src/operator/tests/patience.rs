//! Runs that hang: which modules go on without them, which wait, and what becomes of their slots.

use super::*;

const HOOK: &str = "c/h.sh beforeHelm";

/// Modules named by `letters`, each with its own order number. The modules in `hanging` have a hook that never ends.
fn world(letters: &str, hanging: &str, policy: Policy) -> World {
    let modules = letters
        .chars()
        .zip(1..)
        .map(|(letter, nth)| module(nth * 10, &letter.to_string()));
    let mut world = World::new(modules.collect());
    for letter in hanging.chars() {
        world = world.hook(&letter.to_string(), "h.sh", "beforeHelm: 1");
        world.open.insert(format!("{letter}/h.sh beforeHelm"));
    }
    world.operator = Operator::new(1, policy);
    world
}

fn with_slots(hook_slots: usize, helm_slots: usize) -> Policy {
    Policy {
        hook_slots,
        helm_slots,
        ..Policy::default()
    }
}

/// Ends the job with this text, with this failure or with the outcome that the world has for it.
fn end(world: &mut World, wanted: &str, result: Option<Failure>) {
    let at = world.pending.iter().position(|job| words(job) == wanted).unwrap();
    let job = world.pending.remove(at);
    let finished = result.map_or_else(|| world.carry_out(&job), |failure| job.failed(failure));
    world.handle(Event::JobFinished(finished));
}

fn sleep_for(world: &mut World, time: Duration) {
    let until = world.tick + time;
    while world.operator.poll_timeout().is_some_and(|(at, _)| at <= until) {
        world.sleep();
    }
    world.tick = until;
}

fn report(world: &World, module: &str) -> query::ModuleReport {
    let modules = world.operator.answer(&ModulesQuery);
    modules.into_iter().find(|report| report.name == module).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "it is handed on as it is")]
fn timed_out() -> Option<Failure> {
    Some(Failure::new(Class::TimedOut, "it did not end"))
}

const MINUTE: Duration = Duration::from_mins(1);

#[test]
fn a_number_is_passed_without_a_module_that_hangs_whose_run_counts_when_it_ends() {
    let mut world = world("abcde", "c", Policy::default())
        .hook("", "g.sh", "afterAll: 1")
        .start();
    assert_eq!(world.take_log(), ["a sync", "b sync"]);
    let (at, waiting) = world.operator.poll_timeout().unwrap();
    assert!(at <= Tick::ZERO + MINUTE + Duration::from_secs(1), "{at}");
    assert!(matches!(waiting, Waiting::Patience(_)), "{waiting:?}");
    assert_eq!(world.status().waiting, ["modules 'c' (hook 'h.sh' (beforeHelm))"]);
    world.sleep();
    assert_eq!(world.take_log(), ["d sync", "e sync", "g.sh afterAll"]);
    let status = world.status();
    assert!(status.ready);
    assert_eq!(status.late, ["module 'c': hook 'h.sh' (beforeHelm), for 60s"]);
    assert!(report(&world, "c").late && !report(&world, "d").late);
    let late = |notice: &&Notice| matches!(notice, Notice::ModuleLate { module, .. } if *module == name("c"));
    assert_eq!(world.notices.iter().filter(late).count(), 1);
    end(&mut world, HOOK, None);
    assert_eq!(world.take_log(), [HOOK, "c sync", "g.sh afterAll"]);
    assert_eq!(world.status().late, [""; 0]);
    assert!(!report(&world, "c").late);
}

#[test]
fn in_strict_order_all_wait_for_it() {
    let policy = Policy {
        strict_order: true,
        ..Policy::default()
    };
    let mut world = world("abcd", "c", policy).start();
    sleep_for(&mut world, 10 * MINUTE);
    assert_eq!(world.take_log(), ["a sync", "b sync"]);
    assert!(!world.status().ready && !report(&world, "c").late);
    end(&mut world, HOOK, None);
    assert_eq!(world.take_log(), [HOOK, "c sync", "d sync"]);
}

#[test]
fn those_that_need_one_that_hangs_wait_for_it_by_name() {
    let mut world = world("cde", "c", Policy::default());
    world.inventory.modules[1].depends_on = vec![name("c")];
    let mut world = world.start();
    world.sleep();
    assert_eq!(world.take_log(), ["e sync"]);
    assert_eq!(world.waits_for("d"), "it needs module 'c', whose run hangs");
    end(&mut world, HOOK, None);
    assert_eq!(world.take_log(), [HOOK, "c sync", "d sync"]);
}

#[test]
fn nobody_waits_for_those_of_its_own_number_that_need_one_that_hangs() {
    let mut world = world("cde", "c", Policy::default());
    world.inventory.modules[1].depends_on = vec![name("c")];
    world.inventory.modules[1].order = world.inventory.modules[0].order;
    let mut world = world.start();
    world.sleep();
    assert_eq!(world.take_log(), ["e sync"]);
    assert!(world.status().ready);
    assert_eq!(world.waits_for("d"), "it needs module 'c', whose run hangs");
    end(&mut world, HOOK, None);
    assert_eq!(world.take_log(), [HOOK, "c sync", "d sync"]);
}

#[test]
fn a_converge_does_not_wait_for_a_run_of_before_that_hangs_which_begins_anew() {
    let mut world = world("abcd", "c", Policy::default())
        .hook("", "g.sh", "beforeAll: 1")
        .start();
    world.sleep();
    world.take_log();
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["g.sh beforeAll", "a sync", "b sync", "d sync"]);
    assert!(report(&world, "c").late);
    end(&mut world, HOOK, None);
    assert_eq!(world.take_log(), [HOOK]);
    assert_eq!(world.tasks("main").len(), 1, "one run, and no second behind it");
    end(&mut world, HOOK, None);
    assert_eq!(world.take_log(), [HOOK, "c sync"]);
}

#[test]
fn what_ends_beside_the_hooks_before_all_modules_waits_for_what_the_converge_decides() {
    let mut world = world("abcd", "c", Policy::default())
        .hook("", "g.sh", "beforeAll: 1")
        .start();
    world.sleep();
    world.take_log();
    world.open.insert("g.sh beforeAll".to_owned());
    world.edit(&[("global", Some("color: red"))]);
    world.open.remove(HOOK);
    end(&mut world, HOOK, None);
    assert_eq!(world.take_log(), [HOOK]);
    world.close("g.sh beforeAll");
    assert_eq!(
        world.take_log(),
        ["g.sh beforeAll", "a sync", "b sync", HOOK, "c sync", "d sync"]
    );
}

#[test]
fn one_that_hangs_and_is_switched_off_holds_up_its_own_removal_only() {
    let mut world = world("abcd", "c", Policy::default());
    let ours = |name: &str| ReleaseSummary {
        name: name.to_owned(),
        ours: true,
        config: None,
    };
    world.releases = vec![ours("b"), ours("c")];
    let patch = json!([{"op": "add", "path": "/c/tick", "value": 1}]);
    let mut world = world.patching(HOOK, &patch, &json!([])).start();
    world.sleep();
    world.take_log();
    world.edit(&[("bEnabled", Some("false")), ("cEnabled", Some("false"))]);
    sleep_for(&mut world, 2 * MINUTE);
    assert_eq!(world.take_log(), ["b delete", "a sync", "d sync"]);
    assert!(world.waits_for("c").starts_with("hook 'h.sh' (beforeHelm), for "));
    end(&mut world, HOOK, None);
    assert_eq!(world.take_log(), [HOOK, "c delete"]);
}

#[test]
fn slots_of_runs_that_hang_are_lent_and_who_has_them_is_named() {
    let mut world = world("abcd", "ab", with_slots(2, 2));
    for module in &mut world.inventory.modules {
        module.order = 10;
    }
    let mut world = world.hook("d", "h.sh", "beforeHelm: 1").start();
    assert_eq!(world.take_log(), ["c sync"]);
    let held = "a free slot for hooks, held by hook 'h.sh' of module 'a' for 0s, hook 'h.sh' of module 'b' for 0s";
    assert_eq!(world.waits_for("d"), held);
    world.sleep();
    assert_eq!(world.take_log(), ["d/h.sh beforeHelm", "d sync"]);
    world.sleep();
    let runs = world.notices.iter().filter_map(|notice| match notice {
        Notice::RunLate { run, .. } => Some(run.as_str()),
        _ => None,
    });
    assert_eq!(
        runs.collect::<Vec<_>>(),
        ["hook 'h.sh' of module 'a'", "hook 'h.sh' of module 'b'"]
    );
}

#[test]
fn hooks_alone_lend_their_slots_too() {
    let every_second = |queue: &str| format!("schedule:\n- crontab: '* * * * * *'\n  queue: {queue}");
    let mut world = World::alone()
        .hook("", "a.sh", &every_second("one"))
        .hook("", "b.sh", &every_second("two"));
    let policy = Policy {
        mode: Mode::Hooks,
        ..with_slots(1, 1)
    };
    world.operator = Operator::new(1, policy);
    world.open.insert("a.sh schedule".to_owned());
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    world.sleep();
    sleep_for(&mut world, MINUTE / 2);
    assert_eq!(world.take_log(), [""; 0]);
    let queues = world.operator.answer(&QueuesQuery);
    let two = queues.into_iter().find(|queue| queue.name == "two").unwrap();
    assert_eq!(
        two.status,
        "waits for a free slot for hooks, held by hook 'a.sh' for 30s"
    );
    sleep_for(&mut world, MINUTE);
    assert!(world.take_log().contains(&"b.sh schedule".to_owned()));
}

#[test]
fn as_many_slots_of_helm_are_lent_as_there_are_and_those_who_starve_then_hold_up_nobody() {
    let mut world = world("abcde", "", with_slots(2, 1));
    world
        .open
        .extend(["a", "b", "c"].map(|letter| format!("{letter} sync")));
    for module in &mut world.inventory.modules {
        module.order = 10;
        module.has_chart = module.name.as_str() != "e";
    }
    world.inventory.modules[4].order = 20;
    let mut world = world.hook("e", "h.sh", "beforeHelm: 1").start();
    world.sleep();
    let pending = |world: &World| world.pending.iter().map(words).collect::<Vec<_>>();
    assert_eq!(pending(&world), ["a sync", "b sync"]);
    assert!(
        world.take_log().is_empty(),
        "the group waits for those that have been let run since"
    );
    world.sleep();
    assert_eq!(pending(&world), ["a sync", "b sync"]);
    assert_eq!(world.take_log(), ["e/h.sh beforeHelm"]);
    let held = "a free slot for helm, held by the release of module 'a' for 120s, the release of module 'b' for 60s";
    assert_eq!(world.waits_for("d"), held);
    end(&mut world, "a sync", None);
    assert_eq!(pending(&world), ["b sync", "c sync"]);
}

#[test]
fn what_a_deadline_ended_is_tried_again_after_growing_pauses() {
    let mut world = world("c", "c", Policy::default()).start();
    let mut pauses = Vec::new();
    for _ in 0..7 {
        sleep_for(&mut world, 20 * MINUTE);
        end(&mut world, HOOK, timed_out());
        let (at, _) = world.operator.poll_timeout().unwrap();
        pauses.push((at - world.tick).as_secs().div_ceil(60));
        world.sleep();
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 20, 20]);
}

#[test]
fn a_short_deadline_and_a_hook_for_which_all_wait_make_pauses_as_any_failure_does() {
    let before_all = "g.sh beforeAll";
    for (hook, time) in [(HOOK, MINUTE / 2), (before_all, 20 * MINUTE)] {
        let mut world = world("c", "c", Policy::default()).hook("", "g.sh", "beforeAll: 1");
        world.open.insert(hook.to_owned());
        let mut world = world.start();
        sleep_for(&mut world, time);
        end(&mut world, hook, timed_out());
        let (at, _) = world.operator.poll_timeout().unwrap();
        assert_eq!((at - world.tick).as_millis().div_ceil(1000), 5, "{hook}");
    }
}

#[test]
fn a_run_that_hung_waits_in_no_queue_when_what_it_needs_is_switched_off() {
    let mut world = world("bc", "c", Policy::default());
    world.inventory.modules[1].depends_on = vec![name("b")];
    let mut world = world.start();
    world.sleep();
    world.edit(&[("bEnabled", Some("false"))]);
    end(&mut world, HOOK, None);
    assert_eq!(world.tasks("main"), [""; 0]);
    assert_eq!(world.waits_for("c"), "it needs module 'b', which is disabled");
    world.open.remove(HOOK);
    world.take_log();
    world.edit(&[("bEnabled", None)]);
    assert_eq!(world.take_log(), ["b sync", HOOK, "c sync"]);
}

#[test]
fn a_release_that_helm_left_at_its_deadline_goes_although_one_of_others_was_there_at_the_start() {
    let mut world = World::new(vec![module(10, "one")]);
    world.open.insert("one sync".to_owned());
    world.releases = vec![ReleaseSummary {
        name: "one".to_owned(),
        ours: false,
        config: None,
    }];
    let mut world = world.start();
    end(&mut world, "one sync", timed_out());
    world.edit(&[("oneEnabled", Some("false"))]);
    sleep_for(&mut world, 5 * MINUTE);
    assert_eq!(world.take_log(), ["one delete"]);
}

#[test]
fn a_converge_that_waits_for_a_slot_names_its_holder_and_starts_over_at_once() {
    let mut world = world("a", "", with_slots(1, 1))
        .hook("a", "w.sh", "kubernetes:\n- {name: pods, kind: Pod, queue: own}")
        .hook("", "g.sh", "beforeAll: 1")
        .start();
    world.open.insert("a/w.sh kubernetes".to_owned());
    world.change("a/w.sh pods", WatchEvent::Added, "o");
    world.notices.clear();
    let started = |world: &World| {
        let is_start = |notice: &&Notice| matches!(notice, Notice::ConvergeStarted { .. });
        world.notices.iter().filter(is_start).count()
    };
    world.edit(&[("global", Some("x: 1"))]);
    assert_eq!(started(&world), 1);
    let queues = world.operator.answer(&QueuesQuery);
    let main = queues.into_iter().find(|queue| queue.name == "main").unwrap();
    assert!(
        main.status.contains("a free slot for hooks, held by"),
        "{}",
        main.status
    );
    world.edit(&[("global", Some("x: 2"))]);
    assert_eq!(started(&world), 2);
}
