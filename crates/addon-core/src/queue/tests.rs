use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::failure::Class;

fn queues(tasks: &[u32]) -> Queues<&'static str, u32, char> {
    let mut queues = Queues::default();
    for task in tasks {
        queues.push("a", *task, Tick::ZERO);
    }
    queues
}

/// The lanes that may start while no slot of any kind is free.
fn ready(queues: &Queues<&'static str, u32, char>) -> Vec<&'static str> {
    queues.ready(|_| false).into_iter().map(|(lane, _)| lane).collect()
}

#[test]
fn a_lane_is_first_in_first_out() {
    let mut queues = queues(&[1, 2, 3]);
    let order: Vec<_> = std::iter::from_fn(|| queues.finish(&"a")).collect();
    assert_eq!(order, [1, 2, 3]);
    assert_eq!(
        queues.ledger(),
        Ledger {
            pushed: 3,
            done: 3,
            merged: 0,
            dropped: 0
        }
    );
}

#[test]
fn a_failing_head_stays_the_head_until_its_time_has_come() {
    let mut queues = queues(&[1, 2]);
    queues.running(&"a", Tick::ZERO);
    let second = Duration::from_secs(1);
    assert_eq!(
        queues.fail(&"a", Tick::ZERO, second, &Failure::new(Class::HookFailed, "no")),
        1
    );
    queues.wake(Tick::ZERO + Duration::from_millis(999));
    assert!(ready(&queues).is_empty());
    assert_eq!(queues.next_wake().map(|(at, _)| at), Some(Tick::ZERO + second));
    queues.wake(Tick::ZERO + second);
    assert_eq!(ready(&queues), ["a"]);
    assert_eq!(queues.head(&"a").map(|head| (head.task, head.failures)), Some((1, 1)));
}

#[test]
fn who_has_been_ready_longest_comes_first() {
    let mut queues = queues(&[1]);
    queues.push("b", 2, Tick::ZERO);
    assert_eq!(ready(&queues), ["a", "b"]);
    queues.running(&"a", Tick::ZERO);
    queues.resume(&"a");
    assert_eq!(ready(&queues), ["b", "a"]);
}

#[test]
fn a_head_that_lacks_a_slot_is_left_out_until_there_is_one() {
    let mut queues = queues(&[1, 2]);
    queues.push("b", 3, Tick::ZERO);
    queues.lack(&"a", 'h');
    assert_eq!(ready(&queues), ["b"]);
    assert!(queues.ready(|slot| slot != 'h').iter().all(|(lane, _)| *lane == "b"));
    assert_eq!(queues.ready(|slot| slot == 'h'), [("a", Some('h')), ("b", None)]);
}

#[test]
fn a_head_lacks_nothing_once_anything_about_it_has_changed() {
    type Change = fn(&mut Queues<&'static str, u32, char>);
    let changes: [Change; 5] = [
        |queues| queues.resume(&"a"),
        |queues| queues.renew(&"a", Tick::ZERO),
        |queues| _ = queues.finish(&"a"),
        |queues| _ = queues.drop_waiting(&"a", |task| *task == 1),
        |queues| {
            queues.hold(&"a", Tick::from_micros(1), Tick::ZERO);
            queues.wake(Tick::from_micros(1));
        },
    ];
    for change in changes {
        let mut queues = queues(&[1, 2]);
        queues.lack(&"a", 'h');
        change(&mut queues);
        assert_eq!(ready(&queues), ["a"]);
    }
}

#[test]
fn what_is_under_way_is_not_dropped_but_what_waits_after_a_failure_is() {
    let mut queues = queues(&[1, 2, 3]);
    queues.running(&"a", Tick::ZERO);
    assert_eq!(queues.drop_waiting(&"a", |_| true), 2);
    queues.fail(
        &"a",
        Tick::ZERO,
        Duration::from_secs(1),
        &Failure::new(Class::HookFailed, "no"),
    );
    assert_eq!(queues.drop_waiting(&"a", |_| true), 1);
    assert!(queues.is_empty());
}

proptest! {
    /// Merging keeps the order and all tasks, and does not change the head.
    #[test]
    fn merging_keeps_every_task(tasks in proptest::collection::vec(0_u32..3, 1..20)) {
        let mut queues = queues(&tasks);
        let mut seen = Vec::new();
        while let Some(head) = queues.head(&"a").map(|head| head.task) {
            queues.running(&"a", Tick::ZERO);
            let merged = queues.merge_following(&"a", |head, next| head == next);
            prop_assert!(merged.iter().all(|task| *task == head));
            seen.push(head);
            seen.extend(merged);
            queues.finish(&"a");
        }
        prop_assert_eq!(&seen, &tasks);
        let ledger = queues.ledger();
        prop_assert_eq!(ledger.pushed, ledger.done + ledger.merged + ledger.dropped);
    }
}
