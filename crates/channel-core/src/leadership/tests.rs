//! One replica, step by step; then several replicas, with the worst clocks, delays and losses.

mod entitlement;
mod trials;
mod world;

use proptest::prelude::*;

use super::*;
use world::{Skew, World};

const TIMING: Timing = Timing::ORIGINAL;

fn at(seconds: u64) -> Now {
    Now {
        tick: Tick::from_micros(seconds * 1_000_000),
        wall: Timestamp::from_second(1_700_000_000 + i64::try_from(seconds).unwrap()).unwrap(),
    }
}

fn tick(seconds: u64) -> Tick {
    at(seconds).tick
}

fn replica() -> Election {
    Election::new("me".to_owned(), BTreeSet::new(), TIMING)
}

fn held(version: &str, holder: &str) -> Sighting {
    Sighting {
        version: version.to_owned(),
        record: Record {
            holder: holder.to_owned(),
            lasts: TIMING.lease,
            acquired: Timestamp::UNIX_EPOCH,
            renewed: Timestamp::UNIX_EPOCH,
            transitions: 3,
            entitled: None,
        },
        holder: Holder::Unknown,
    }
}

fn writing(election: &mut Election, seconds: u64) -> Writing {
    match election.poll(at(seconds)) {
        Move::Write(writing, _) => writing,
        other => panic!("{other:?} at {seconds} s"),
    }
}

/// Writes at that second; the write succeeds at once.
fn write(election: &mut Election, seconds: u64, version: &str) -> Record {
    let writing = writing(election, seconds);
    let through = Written::Through(version.to_owned());
    election.wrote(tick(seconds), tick(seconds), writing.clone(), through);
    writing.record
}

/// A replica that has led since the first second, after a lease without a holder.
fn leader() -> Election {
    let mut election = replica();
    election.looked(tick(0), None);
    write(&mut election, 0, "1");
    election
}

#[test]
fn a_lease_that_is_not_there_is_made() {
    let mut election = replica();
    assert_eq!(election.poll(at(0)), Move::Look(PATIENCE));
    election.looked(tick(0), None);
    let writing = writing(&mut election, 0);
    assert_eq!((writing.over.as_deref(), writing.record.transitions), (None, 0));
    assert_eq!(writing.record.holder, "me");
    assert_eq!(election.standing(tick(0)), ReplicaRole::Standby);
    election.wrote(tick(0), tick(1), writing, Written::Through("1".to_owned()));
    assert_eq!(election.standing(tick(1)), ReplicaRole::Leads);
    assert_eq!(
        election.poll(at(1)),
        Move::Wait(tick(10)),
        "counted from when it was sent"
    );
}

#[test]
fn a_lease_of_another_is_left_to_it_until_it_is_known_for_as_long_as_it_lasts() {
    let mut election = replica();
    election.looked(tick(100), Some(held("7", "other")));
    assert_eq!(election.leader(), Some("other"));
    for seconds in [110, 120, 130] {
        assert_eq!(election.poll(at(seconds - 1)), Move::Wait(tick(seconds)));
        assert_eq!(election.poll(at(seconds)), Move::Look(PATIENCE));
        election.looked(tick(seconds), Some(held("7", "other")));
        if let Move::Ask(about, _) = election.poll(at(seconds)) {
            election.asked(tick(seconds), &about, Holder::Unknown);
        }
    }
    assert_eq!(
        election.poll(at(134)),
        Move::Wait(tick(135)),
        "not only at the next look"
    );
    let writing = writing(&mut election, 135);
    assert_eq!((writing.over.as_deref(), writing.record.transitions), (Some("7"), 4));
}

#[test]
fn a_renewal_of_another_begins_the_wait_anew() {
    let mut election = replica();
    election.looked(tick(0), Some(held("7", "other")));
    election.heard(tick(20), held("8", "other"));
    election.look_failed(tick(35));
    assert_eq!(election.poll(at(38)), Move::Look(PATIENCE));
    election.looked(tick(38), Some(held("8", "other")));
    assert!(matches!(election.poll(at(55)), Move::Write(..)));
}

#[test]
fn a_lease_that_nobody_holds_is_taken_at_once() {
    let gone = Sighting {
        holder: Holder::Gone,
        ..held("7", "other")
    };
    for (found, transitions) in [(held("7", ""), 4), (held("7", "me"), 3), (gone, 4)] {
        let mut election = replica();
        election.heard(tick(5), found);
        assert_eq!(writing(&mut election, 5).record.transitions, transitions);
    }
}

#[test]
fn a_write_that_is_overtaken_makes_it_look_again() {
    let mut election = replica();
    election.looked(tick(0), Some(held("7", "")));
    let lost = writing(&mut election, 0);
    election.wrote(tick(0), tick(1), lost, Written::Conflict);
    assert_eq!(election.poll(at(1)), Move::Look(PATIENCE));
    election.looked(tick(1), Some(held("8", "other")));
    assert_eq!(election.poll(at(1)), Move::Wait(tick(11)));
}

#[test]
fn an_attempt_of_which_nothing_is_heard_does_not_begin_the_wait_anew() {
    let mut election = replica();
    election.looked(tick(0), Some(held("7", "other")));
    let attempt = writing(&mut election, 35);
    election.wrote(tick(35), tick(40), attempt, Written::Unknown);
    assert_eq!(election.poll(at(40)), Move::Wait(tick(42)));
    assert_eq!(writing(&mut election, 42).over.as_deref(), Some("7"));
}

#[test]
fn a_leader_renews_what_it_wrote() {
    let mut election = leader();
    let renewed = write(&mut election, 10, "2");
    assert_eq!(
        (renewed.acquired, renewed.renewed, renewed.transitions),
        (at(0).wall, at(10).wall, 0)
    );
    assert_eq!(writing(&mut election, 20).over.as_deref(), Some("2"));
    assert_eq!(election.standing(tick(39)), ReplicaRole::Leads);
}

#[test]
fn a_leader_that_cannot_renew_ends_at_its_deadline() {
    let mut election = leader();
    for seconds in [10, 17, 24] {
        let Move::Write(writing, limit) = election.poll(at(seconds)) else {
            panic!("at {seconds} s")
        };
        assert_eq!(limit, PATIENCE);
        election.wrote(tick(seconds), tick(seconds) + limit, writing, Written::Unknown);
    }
    assert_eq!(election.poll(at(29)), Move::Wait(tick(30)));
    assert_eq!(election.standing(tick(29)), ReplicaRole::Leads);
    assert_eq!(
        election.standing(tick(30)),
        ReplicaRole::Deposed,
        "also if nobody polls"
    );
    assert_eq!(election.poll(at(30)), Move::StepDown);
    // Late answers change nothing.
    let late = held("2", "me").record;
    let late = Writing {
        record: late,
        over: None,
        aim: Aim::Hold,
    };
    election.wrote(tick(29), tick(31), late, Written::Through("2".to_owned()));
    assert_eq!(election.poll(at(31)), Move::StepDown);
}

#[test]
fn a_leader_finds_its_own_write_again() {
    let mut election = leader();
    let unheard = writing(&mut election, 10);
    election.wrote(tick(10), tick(15), unheard.clone(), Written::Unknown);
    let again = writing(&mut election, 17);
    election.wrote(tick(17), tick(17), again, Written::Conflict);
    assert_eq!(election.poll(at(17)), Move::Look(PATIENCE));
    let found = Sighting {
        version: "2".to_owned(),
        record: unheard.record,
        holder: Holder::Unknown,
    };
    election.looked(tick(17), Some(found));
    assert_eq!(writing(&mut election, 17).over.as_deref(), Some("2"));
    assert_eq!(
        election.standing(tick(30)),
        ReplicaRole::Deposed,
        "a look renews nothing"
    );
}

#[test]
fn a_leader_that_finds_another_in_its_place_ends_at_once() {
    // A holder of the same name that took the lease at another time is another life.
    for found in [held("9", "other"), held("9", "me")] {
        let mut election = leader();
        let lost = writing(&mut election, 10);
        election.wrote(tick(10), tick(10), lost, Written::Conflict);
        election.looked(tick(10), Some(found));
        assert_eq!(election.poll(at(10)), Move::StepDown);
        assert_eq!(election.standing(tick(10)), ReplicaRole::Deposed);
    }
}

#[test]
fn a_leader_whose_lease_was_deleted_makes_it_again() {
    let mut election = leader();
    let lost = writing(&mut election, 10);
    election.wrote(tick(10), tick(10), lost, Written::Conflict);
    election.looked(tick(10), None);
    assert_eq!(writing(&mut election, 10).over, None);
}

#[test]
fn a_lease_that_was_deleted_keeps_others_away_for_as_long_as_it_would_have() {
    let mut election = replica();
    election.looked(tick(0), Some(held("7", "other")));
    election.looked(tick(10), None);
    assert_eq!(election.poll(at(10)), Move::Wait(tick(20)), "its holder leads");
    election.looked(tick(20), Some(held("8", "other")));
    election.looked(tick(30), None);
    election.looked(tick(50), None);
    assert_eq!(election.poll(at(54)), Move::Wait(tick(55)));
    assert_eq!(
        writing(&mut election, 55).over.as_deref(),
        Some("8"),
        "it may be there again"
    );
    election.looked(tick(55), None);
    assert_eq!(writing(&mut election, 55).over, None);
}

#[test]
fn a_leader_does_not_listen_to_old_news() {
    let mut election = leader();
    election.heard(tick(1), held("0", "other"));
    assert_eq!(election.standing(tick(1)), ReplicaRole::Leads);
    assert_eq!(election.leader(), None);
}

#[test]
fn only_a_leader_has_something_to_release() {
    let release = leader().release(at(12)).unwrap();
    assert_eq!(
        (release.record.holder.as_str(), release.over.as_deref()),
        ("", Some("1"))
    );
    assert_eq!(release.record.lasts, Duration::from_secs(1));
    assert_eq!(leader().release(at(30)), None, "its deadline has passed");
    assert_eq!(replica().release(at(0)), None);
}

#[test]
fn another_takes_over_within_the_lease_and_a_look() {
    let mut world = World::new(7, &[Skew::NONE; 2]).faultless();
    world.run_for(Duration::from_mins(1));
    let first = world.leader().unwrap();
    world.kill(first);
    world.run_for(TIMING.lease + Duration::from_secs(1));
    assert!(world.leader().is_some_and(|second| second != first));
}

#[test]
fn clocks_that_differ_by_more_than_the_lease_allows_are_found_out() {
    let overlaps = (0..100).filter(|seed| {
        let mut world = World::new(*seed, &[Skew::NONE, Skew::faster_by(1.6)]);
        world.run_for(Duration::from_mins(20));
        world.overlap().is_some()
    });
    assert!(overlaps.count() > 0, "the world is too tame");
}

/// Waits for another replica's overdue lease until it wants to ask about the holder.
fn in_doubt() -> (Election, Sighting) {
    let mut election = replica();
    election.looked(tick(0), Some(held("7", "other")));
    for seconds in [10, 20] {
        assert_eq!(election.poll(at(seconds)), Move::Look(PATIENCE));
        election.looked(tick(seconds), Some(held("7", "other")));
    }
    let Move::Ask(about, PATIENCE) = election.poll(at(20)) else {
        panic!("it does not ask")
    };
    (election, about)
}

#[test]
fn a_lease_that_is_overdue_is_taken_at_once_if_its_holder_has_ended() {
    let (mut election, about) = in_doubt();
    assert_eq!(about, held("7", "other"));
    election.asked(tick(20), &about, Holder::Gone);
    // An earlier report of it changes nothing.
    election.heard(tick(20), held("7", "other"));
    let record = write(&mut election, 20, "8");
    assert_eq!(record.transitions, 4);
    assert_eq!(election.reign().unwrap().succession, Succession::Clear);
}

#[test]
fn a_holder_that_may_live_is_waited_for_and_asked_after_again() {
    let (mut election, about) = in_doubt();
    election.asked(tick(20), &about, Holder::Unknown);
    assert_eq!(election.poll(at(29)), Move::Wait(tick(30)));
    assert_eq!(election.poll(at(30)), Move::Look(PATIENCE));
    election.looked(tick(30), Some(held("7", "other")));
    assert!(matches!(election.poll(at(30)), Move::Ask(..)));
    election.asked(tick(30), &about, Holder::Unknown);
    write(&mut election, 35, "8");
    assert_eq!(election.reign().unwrap().succession, Succession::Contested);
}

#[test]
fn an_answer_about_an_earlier_version_says_nothing_of_a_later_one() {
    let (mut election, about) = in_doubt();
    election.heard(tick(20), held("8", "other"));
    election.asked(tick(21), &about, Holder::Gone);
    assert_eq!(
        election.poll(at(29)),
        Move::Wait(tick(30)),
        "a process of the same name lives again"
    );
}

#[test]
fn a_sign_of_the_holders_end_is_followed_at_once() {
    let mut election = replica();
    election.looked(tick(0), Some(held("7", "other")));
    election.suspect(tick(1));
    assert!(matches!(election.poll(at(1)), Move::Ask(..)));
    let mut leads = leader();
    leads.suspect(tick(1));
    assert_eq!(leads.poll(at(1)), Move::Wait(tick(10)));
}

#[test]
fn a_reign_tells_its_ends() {
    let mut election = leader();
    write(&mut election, 10, "2");
    let reign = election.reign().unwrap();
    assert_eq!((reign.deadline, reign.expiry), (tick(40), tick(45)));
    assert_eq!(reign.succession, Succession::Contested, "who deleted the lease?");
    election.poll(at(40));
    assert_eq!(election.reign(), None);
    assert_eq!(replica().reign(), None);
}

#[test]
fn a_holder_that_is_seen_to_have_ended_is_replaced_before_its_lease_runs_out() {
    let mut world = World::new(7, &[Skew::NONE; 2]).faultless();
    world.run_for(Duration::from_mins(1));
    let first = world.leader().unwrap();
    world.end(first);
    world.run_for(TIMING.retry * 3);
    assert!(world.leader().is_some_and(|second| second != first));
}

proptest! {
    #[test]
    fn no_two_lead_at_once_if_ends_are_seen(seed: u64, skew in 1.0..1.029_f64) {
        let mut world = World::new(seed, &[Skew::faster_by(skew), Skew::NONE, Skew::NONE]);
        world.ends_after(Duration::from_secs(4));
        world.with_deaths();
        world.run_for(Duration::from_mins(20));
        prop_assert_eq!(world.overlap(), None);
    }

    #[test]
    fn no_two_lead_at_once(seed: u64, skew in 1.0..1.166_f64, replicas in 2_usize..4) {
        let mut skews = vec![Skew::NONE; replicas];
        skews[0] = Skew::faster_by(skew);
        let mut world = World::new(seed, &skews);
        world.run_for(Duration::from_mins(20));
        prop_assert_eq!(world.overlap(), None);
    }

    #[test]
    fn nobody_leads_before_what_another_has_started_has_ended(seed: u64, skew in 1.0..1.029_f64) {
        let mut world = World::new(seed, &[Skew::faster_by(skew), Skew::NONE]);
        world.ends_after(Duration::from_secs(4));
        world.run_for(Duration::from_mins(20));
        prop_assert_eq!(world.overlap(), None);
    }

    #[test]
    fn somebody_leads_again_once_everything_works(seed: u64) {
        let mut world = World::new(seed, &[Skew::NONE; 3]);
        world.run_for(Duration::from_mins(5));
        world = world.faultless();
        world.run_for(Duration::from_mins(3));
        prop_assert!(world.leader().is_some());
    }
}
