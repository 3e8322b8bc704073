//! Schedules and the wall clock, which may be set while schedules wait.

use jiff::SignedDuration;

use super::*;

const MINUTE: u64 = 60;

/// Sets the wall clock by `set` seconds at 8:20. Returns the seconds after which the hook runs, within the next two hours.
fn runs_after(set: i64, crontab: &str) -> Vec<u64> {
    let mut world = World::alone().hook("", "h.sh", &format!("schedule:\n- crontab: '{crontab}'"));
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    let mut pass = |from, to| {
        let [began, until] = [from, to].map(|minute| Tick::ZERO + Duration::from_secs(minute * MINUTE));
        let mut runs = Vec::new();
        while world.operator.poll_timeout().is_some_and(|(at, _)| at <= until) {
            world.sleep();
            runs.extend(world.take_log().iter().map(|_| (world.tick - began).as_secs()));
        }
        world.tick = until;
        world.set = SignedDuration::from_secs(set);
        runs
    };
    pass(0, 20);
    pass(20, 140)
}

fn check(set: i64, crontab: &str, minutes: &[u64]) {
    let seconds: Vec<u64> = minutes.iter().map(|minute| minute * MINUTE).collect();
    assert_eq!(
        runs_after(set, crontab),
        seconds,
        "{crontab} with a clock set by {set} s"
    );
}

#[test]
fn a_clock_that_is_set_back_holds_up_no_schedule() {
    check(-3600, "*/30 * * * *", &[10, 40, 70, 100]);
    check(-3600, "25 * * * *", &[5, 65]);
    check(-25 * 60, "@hourly", &[5, 65]);
    check(-3600, "0 8 * * *", &[40]);
    check(-24 * 3600, "0 9 * * *", &[40]);
}

#[test]
fn what_a_clock_jumps_over_comes_once() {
    check(5 * 3600, "*/30 * * * *", &[0, 10, 40, 70, 100]);
    check(5 * 3600, "0 10 * * *", &[0]);
    check(5 * 3600, "0 7 * * *", &[]);
}

#[test]
fn one_that_is_put_right_by_a_little_lets_no_time_come_twice() {
    let every_minute: Vec<u64> = (1..=120).map(|minute| minute * MINUTE + 10).collect();
    assert_eq!(runs_after(-10, "* * * * *")[..119], every_minute[..119]);
}

#[test]
fn a_period_passes_however_the_clock_is_set() {
    for set in [-24 * 3600, -3600, 5 * 3600] {
        check(set, "@every 35m", &[15, 50, 85, 120]);
    }
}
