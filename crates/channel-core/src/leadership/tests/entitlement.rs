//! Entitled versions: one replica, step by step; then several replicas of two versions.

use proptest::prelude::*;

use super::world::{Skew, World, digest};
use super::*;

const OURS: u8 = 1;
const OTHER: u8 = 2;

fn ours() -> ImageDigest {
    digest(OURS, 1)
}

fn other() -> ImageDigest {
    digest(OTHER, 1)
}

/// A replica whose version has two digests.
fn of_ours() -> Election {
    let versions = BTreeSet::from([ours(), digest(OURS, 2)]);
    Election::new("me".to_owned(), versions, TIMING)
}

fn entitling(whom: Option<ImageDigest>, found: Sighting) -> Sighting {
    let record = Record {
        entitled: whom,
        ..found.record
    };
    Sighting { record, ..found }
}

/// A lease that its holder has released.
fn released(version: &str, whom: Option<ImageDigest>) -> Sighting {
    let found = entitling(whom, held(version, ""));
    let record = Record {
        lasts: Duration::from_secs(1),
        ..found.record
    };
    Sighting { record, ..found }
}

/// A replica that has led since the first second, with a lease that was released to its version.
fn leader_of_ours() -> Election {
    let mut election = of_ours();
    election.looked(tick(0), Some(released("1", Some(ours()))));
    write(&mut election, 0, "2");
    election
}

/// The lease as a leader finds it after a conflict: its own record, but another version is entitled.
fn own_entitling(record: &Record, version: &str, whom: Option<ImageDigest>) -> Sighting {
    let found = Sighting {
        version: version.to_owned(),
        record: record.clone(),
        holder: Holder::Unknown,
    };
    entitling(whom, found)
}

/// Another writer changes the entitled version right before the renewal at that second.
fn overtaken(election: &mut Election, seconds: u64, version: &str, whom: Option<ImageDigest>) {
    let lost = writing(election, seconds);
    let record = lost.record.clone();
    election.wrote(tick(seconds), tick(seconds), lost, Written::Conflict);
    assert_eq!(election.poll(at(seconds)), Move::Look(PATIENCE));
    election.looked(tick(seconds), Some(own_entitling(&record, version, whom)));
}

fn writes_at(election: &mut Election, seconds: u64) -> bool {
    matches!(election.poll(at(seconds)), Move::Write(..))
}

#[test]
fn a_released_lease_is_taken_at_once_by_the_version_that_is_entitled() {
    for name in [ours(), digest(OURS, 2)] {
        let mut election = of_ours();
        election.heard(tick(5), released("7", Some(name.clone())));
        let record = write(&mut election, 5, "8");
        assert_eq!(record.entitled, Some(name), "it stays there");
        assert_eq!(election.standing(tick(5)), ReplicaRole::Leads);
    }
}

#[test]
fn a_replica_that_learns_its_version_is_entitled_from_then_on() {
    let unnamed = || Election::new("me".to_owned(), BTreeSet::new(), TIMING);
    let mut election = unnamed();
    election.heard(tick(5), released("7", Some(ours())));
    assert_eq!(election.poll(at(6)), Move::Wait(tick(15)));
    election.name_versions(tick(6), [other()].into());
    assert!(!writes_at(&mut election, 6), "it is of another version");
    election.name_versions(tick(7), [digest(OURS, 2), ours()].into());
    assert!(writes_at(&mut election, 7));

    // Before it knew its version, it waited until the lease expired.
    let mut election = unnamed();
    election.looked(tick(5), Some(released("7", Some(ours()))));
    election.look_failed(tick(38));
    write(&mut election, 40, "8");
    election.name_versions(tick(41), [ours()].into());
    overtaken(&mut election, 50, "9", Some(other()));
    assert_eq!(election.standing(tick(50)), ReplicaRole::Yields);
    overtaken(&mut election, 51, "10", Some(ours()));
    assert_eq!(election.standing(tick(51)), ReplicaRole::Yields, "once is for good");
}

#[test]
fn others_wait_for_a_whole_lease_whatever_tells_that_nobody_holds_it() {
    let gone = Sighting {
        holder: Holder::Gone,
        ..held("7", "other")
    };
    for found in [released("7", None), held("7", "me"), gone] {
        for mut election in [of_ours(), replica()] {
            let found = entitling(Some(other()), found.clone());
            election.looked(tick(5), Some(found.clone()));
            for seconds in [15, 25, 35] {
                assert_eq!(election.poll(at(seconds - 1)), Move::Wait(tick(seconds)), "{found:?}");
                assert_eq!(election.poll(at(seconds)), Move::Look(PATIENCE), "{found:?}");
                election.looked(tick(seconds), Some(found.clone()));
            }
            assert_eq!(election.poll(at(39)), Move::Wait(tick(40)), "{found:?}");
            let record = write(&mut election, 40, "8");
            assert_eq!(record.entitled, Some(other()), "it stays there");
            assert_eq!(election.standing(tick(40)), ReplicaRole::Leads);
            assert_eq!(election.reign().unwrap().succession, Succession::Clear);
        }
    }
}

#[test]
fn a_holder_that_is_found_to_have_ended_helps_no_other_version() {
    let mut election = of_ours();
    let found = entitling(Some(other()), held("7", "other"));
    election.looked(tick(0), Some(found.clone()));
    election.suspect(tick(1));
    let Move::Ask(about, _) = election.poll(at(1)) else {
        panic!("it does not ask")
    };
    election.asked(tick(1), &about, Holder::Gone);
    assert_eq!(election.poll(at(1)), Move::Wait(tick(11)));
    assert_eq!(election.poll(at(11)), Move::Look(PATIENCE));
    election.looked(tick(11), Some(found));
    assert_eq!(election.poll(at(20)), Move::Wait(tick(21)), "it need not ask again");
    election.suspect(tick(20));
    assert_eq!(election.poll(at(20)), Move::Look(PATIENCE));
    election.look_failed(tick(33));
    assert!(writes_at(&mut election, 35));
}

#[test]
fn a_released_lease_that_was_deleted_keeps_other_versions_away_as_long() {
    let mut election = of_ours();
    election.looked(tick(0), Some(released("7", Some(other()))));
    election.looked(tick(10), None);
    assert_eq!(election.poll(at(10)), Move::Wait(tick(20)));
    election.looked(tick(35), None);
    let record = write(&mut election, 35, "1");
    assert_eq!(record.entitled, Some(other()), "who is entitled is not forgotten");
}

#[test]
fn a_renewal_keeps_who_is_entitled_and_so_does_a_lease_that_is_made_again() {
    let mut election = leader_of_ours();
    let renewed = write(&mut election, 10, "3");
    assert_eq!(renewed.entitled, Some(ours()));
    let lost = writing(&mut election, 20);
    election.wrote(tick(20), tick(20), lost, Written::Conflict);
    election.looked(tick(20), None);
    let again = writing(&mut election, 20);
    assert_eq!((again.over, again.record.entitled), (None, Some(ours())));
    let release = leader_of_ours().release(at(5)).unwrap();
    assert_eq!(release.record.entitled, Some(ours()));
    assert_eq!(release.aim, Aim::Leave);
}

#[test]
fn a_leader_yields_when_it_finds_that_another_version_is_entitled() {
    for mut election in [leader_of_ours(), leader()] {
        overtaken(&mut election, 10, "3", Some(other()));
        assert_eq!(election.standing(tick(10)), ReplicaRole::Yields);
        let renewed = write(&mut election, 10, "4");
        assert_eq!(renewed.entitled, Some(other()), "it renews while its work ends");
        assert_eq!(election.standing(tick(39)), ReplicaRole::Yields);
        assert!(election.reign().is_some());
        let release = election.release(at(12)).unwrap();
        assert_eq!(release.record.entitled, Some(other()));
        assert_eq!(
            election.standing(tick(40)),
            ReplicaRole::Deposed,
            "its deadline counts as ever"
        );
    }
}

#[test]
fn a_leader_that_yields_does_so_to_its_end() {
    let mut election = leader_of_ours();
    overtaken(&mut election, 10, "3", Some(other()));
    write(&mut election, 10, "4");
    overtaken(&mut election, 20, "5", Some(ours()));
    assert_eq!(
        election.standing(tick(20)),
        ReplicaRole::Yields,
        "its work is being ended"
    );
    let release = election.release(at(20)).unwrap();
    assert_eq!(release.record.entitled, Some(ours()));
    let released = Written::Through("6".to_owned());
    election.wrote(tick(20), tick(20), release, released);
    assert_eq!(election.standing(tick(20)), ReplicaRole::Deposed);
}

#[test]
fn a_leader_does_not_yield_to_its_own_version_nor_to_none() {
    for whom in [Some(digest(OURS, 2)), None] {
        let mut election = leader_of_ours();
        overtaken(&mut election, 10, "3", whom.clone());
        assert_eq!(election.standing(tick(10)), ReplicaRole::Leads);
        assert_eq!(write(&mut election, 10, "4").entitled, whom);
    }
}

#[test]
fn an_order_goes_out_with_the_next_write_which_is_made_at_once() {
    let mut election = leader_of_ours();
    assert_eq!(election.poll(at(1)), Move::Wait(tick(10)));
    election.entitle(tick(1), Some(other()));
    assert_eq!(election.standing(tick(1)), ReplicaRole::Leads, "nobody knows of it");
    let record = write(&mut election, 1, "3");
    assert_eq!(record.entitled, Some(other()));
    assert_eq!(election.standing(tick(1)), ReplicaRole::Yields);
    assert_eq!(election.entitled(), Some(&other()));

    let mut election = leader_of_ours();
    election.entitle(tick(1), None);
    assert_eq!(write(&mut election, 1, "3").entitled, None);
    assert_eq!(write(&mut election, 11, "4").entitled, None);
    assert_eq!(election.standing(tick(11)), ReplicaRole::Leads);
}

#[test]
fn an_order_is_written_again_after_a_conflict_and_after_silence() {
    let mut election = leader_of_ours();
    election.entitle(tick(1), None);
    overtaken(&mut election, 1, "3", Some(ours()));
    let unheard = writing(&mut election, 1);
    let record = unheard.record.clone();
    election.wrote(tick(1), tick(6), unheard, Written::Unknown);
    let again = writing(&mut election, 8);
    assert_eq!((&record.entitled, &again.record.entitled), (&None, &None));
    // The lease has the version by now, so the order is not written over later changes.
    election.wrote(tick(8), tick(8), again, Written::Conflict);
    election.looked(tick(8), Some(own_entitling(&record, "4", None)));
    overtaken(&mut election, 8, "5", Some(ours()));
    assert_eq!(writing(&mut election, 8).record.entitled, Some(ours()));
}

#[test]
fn an_order_that_was_not_written_gives_way_to_what_makes_a_leader_yield() {
    let mut election = leader_of_ours();
    election.entitle(tick(1), Some(ours()));
    overtaken(&mut election, 1, "3", Some(other()));
    assert_eq!(election.standing(tick(1)), ReplicaRole::Yields);
    assert_eq!(writing(&mut election, 1).record.entitled, Some(other()));
}

/// A replica that has led since second 40, because the entitled version did not come.
fn leads_despite() -> Election {
    let mut election = of_ours();
    election.looked(tick(5), Some(released("7", Some(other()))));
    election.look_failed(tick(38));
    write(&mut election, 40, "8");
    election
}

#[test]
fn who_leads_because_the_entitled_version_did_not_come_goes_on_until_another_one_is_named() {
    let mut election = leads_despite();
    write(&mut election, 50, "9");
    overtaken(&mut election, 60, "10", Some(other()));
    assert_eq!(election.standing(tick(60)), ReplicaRole::Leads);
    // Entitled again, after another version was.
    overtaken(&mut election, 61, "11", Some(ours()));
    write(&mut election, 61, "12");
    overtaken(&mut election, 71, "13", Some(other()));
    assert_eq!(election.standing(tick(71)), ReplicaRole::Yields);

    let mut election = leads_despite();
    overtaken(&mut election, 50, "9", Some(digest(3, 1)));
    assert_eq!(election.standing(tick(50)), ReplicaRole::Yields);
}

#[test]
fn who_leads_because_the_entitled_version_did_not_come_can_be_told_to_yield_to_it() {
    let mut election = leads_despite();
    election.entitle(tick(41), Some(other()));
    write(&mut election, 41, "9");
    assert_eq!(election.standing(tick(41)), ReplicaRole::Yields);
}

#[test]
fn a_standby_says_who_is_entitled_and_leaves_the_lease_to_its_holder() {
    let mut election = of_ours();
    let found = entitling(Some(other()), held("7", "other"));
    election.looked(tick(0), Some(found.clone()));
    election.entitle(tick(3), Some(ours()));
    assert_eq!(election.poll(at(3)), Move::Look(PATIENCE), "over what stands there now");
    election.looked(tick(3), Some(found.clone()));
    let order = writing(&mut election, 3);
    let record = Record {
        entitled: Some(ours()),
        ..found.record
    };
    let wanted = Writing {
        record,
        over: Some("7".to_owned()),
        aim: Aim::Leave,
    };
    assert_eq!(order, wanted);
    election.wrote(tick(3), tick(3), order, Written::Through("8".to_owned()));
    assert_eq!(election.standing(tick(3)), ReplicaRole::Standby);
    assert_eq!(election.leader(), Some("other"));
    // The holder did nothing in between, so the wait did not start again.
    election.look_failed(tick(33));
    assert_eq!(writing(&mut election, 35).over.as_deref(), Some("8"));
}

/// A standby whose order had a conflict in the first second, and that has to read the lease again.
fn overtaken_order() -> Election {
    let mut election = of_ours();
    election.looked(tick(0), Some(held("7", "other")));
    election.entitle(tick(1), Some(other()));
    election.looked(tick(1), Some(held("7", "other")));
    let lost = writing(&mut election, 1);
    election.wrote(tick(1), tick(1), lost, Written::Conflict);
    assert_eq!(election.poll(at(1)), Move::Look(PATIENCE));
    election
}

#[test]
fn an_order_of_a_standby_that_is_overtaken_is_looked_at_and_written_again() {
    let mut election = overtaken_order();
    election.looked(tick(2), Some(held("8", "other")));
    assert_eq!(writing(&mut election, 2).over.as_deref(), Some("8"));
    // The writer of this version may know a later state.
    election.heard(tick(2), held("9", "other"));
    assert_eq!(election.poll(at(2)), Move::Look(PATIENCE));
    election.looked(tick(2), Some(entitling(Some(other()), held("10", "other"))));
    assert_eq!(election.poll(at(2)), Move::Wait(tick(12)), "another one has written it");
}

#[test]
fn an_order_over_a_lease_that_was_just_deleted_takes_nothing_from_its_holder() {
    let mut election = overtaken_order();
    election.looked(tick(1), None);
    assert_eq!(election.poll(at(1)), Move::Wait(tick(11)), "its holder leads");
}

#[test]
fn old_news_of_one_who_has_ended_says_nothing_of_the_holder_to_whom_an_order_leaves_the_lease() {
    let mut election = of_ours();
    election.looked(tick(0), Some(held("7", "other")));
    election.entitle(tick(1), Some(ours()));
    election.looked(tick(1), Some(held("7", "other")));
    let order = writing(&mut election, 1);
    let gone = Sighting {
        holder: Holder::Gone,
        ..held("6", "another")
    };
    election.heard(tick(1), gone);
    election.wrote(tick(1), tick(2), order, Written::Through("8".to_owned()));
    assert!(!writes_at(&mut election, 2), "its holder leads");
}

#[test]
fn who_bars_itself_by_its_own_order_waits_from_then_on() {
    let mut election = of_ours();
    election.looked(tick(0), Some(held("7", "other")));
    election.entitle(tick(30), Some(other()));
    election.looked(tick(30), Some(held("7", "other")));
    let order = writing(&mut election, 30);
    election.wrote(tick(30), tick(30), order, Written::Through("8".to_owned()));
    election.look_failed(tick(62));
    assert!(!writes_at(&mut election, 64));
    assert!(writes_at(&mut election, 65));
}

/// The time for a read and a write, with a late report of a release included.
const SOON: Duration = Duration::from_secs(TIMING.retry.as_secs() + 2);

/// A world with two replicas of each of two versions.
fn pairs(seed: u64, skew: f64) -> World {
    let fast = Skew::faster_by(skew);
    World::of_versions(
        seed,
        &[
            (fast, OURS),
            (Skew::NONE, OURS),
            (Skew::NONE, OTHER),
            (Skew::NONE, OTHER),
        ],
    )
}

/// A world after faults and orders, in which everything works, and the number of its leader.
fn calm(seed: u64) -> (World, usize) {
    let mut world = pairs(seed, 1.0);
    world.in_pods();
    world.with_orders();
    world.run_for(Duration::from_mins(5));
    world = world.faultless();
    world.run_for(Duration::from_mins(4));
    let leader = world.leader().unwrap();
    (world, leader)
}

proptest! {
    #[test]
    fn no_two_lead_at_once_whoever_is_entitled(seed: u64, skew in 1.0..1.166_f64, is_in_pods: bool) {
        let mut world = pairs(seed, skew);
        if is_in_pods {
            world.in_pods();
        }
        world.with_orders();
        world.run_for(Duration::from_mins(20));
        prop_assert_eq!(world.overlap(), None);
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn no_two_lead_at_once_whoever_is_entitled_if_ends_are_seen(seed: u64, skew in 1.0..1.029_f64, is_in_pods: bool) {
        let mut world = pairs(seed, skew);
        if is_in_pods {
            world.in_pods();
        }
        world.ends_after(Duration::from_secs(4));
        world.with_deaths();
        world.with_orders();
        world.run_for(Duration::from_mins(20));
        prop_assert_eq!(world.overlap(), None);
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn whoever_is_entitled_one_leads_again_once_everything_works_and_goes_on(seed: u64) {
        let (mut world, leader) = calm(seed);
        for _ in 0..20 {
            world.run_for(Duration::from_secs(15));
            prop_assert_eq!(world.leader(), Some(leader));
        }
    }

    #[test]
    fn a_version_that_lives_leads_as_soon_as_the_lease_is_released_to_it(seed: u64, name in 1_u8..3) {
        let (mut world, leader) = calm(seed);
        let next = if world.is_of(leader, &ours()) { digest(OTHER, name) } else { digest(OURS, name) };
        world.order_now(leader, Some(next.clone()));
        world.run_until_released();
        prop_assert_eq!(world.entitled(), Some(&next));
        world.run_for(SOON);
        prop_assert!(world.leader().is_some_and(|second| world.is_of(second, &next)));
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn a_standby_moves_the_lease_to_its_own_version(seed: u64) {
        let (mut world, leader) = calm(seed);
        let (judge, next) = if world.is_of(leader, &ours()) { (2, other()) } else { (0, ours()) };
        // The leader writes first that no version is entitled. So it notices that the standby's write changes this.
        world.order_now(leader, None);
        world.run_for(Duration::from_secs(2));
        prop_assert_eq!(world.leader(), Some(leader));
        world.order_now(judge, Some(next.clone()));
        world.run_until_released();
        world.run_for(SOON);
        prop_assert!(world.leader().is_some_and(|second| world.is_of(second, &next)));
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn a_version_that_does_not_come_keeps_others_away_for_one_lease_and_no_longer(seed: u64) {
        let (mut world, leader) = calm(seed);
        let dead = digest(98, 1);
        world.order_now(leader, Some(dead.clone()));
        world.run_until_released();
        world.run_for(TIMING.lease.saturating_sub(Duration::from_secs(1)));
        prop_assert_eq!(world.leader(), None);
        world.run_for(Duration::from_secs(1) + SOON);
        let second = world.leader();
        prop_assert!(second.is_some());
        for _ in 0..20 {
            world.run_for(Duration::from_secs(15));
            prop_assert_eq!(world.leader(), second);
        }
        prop_assert_eq!(world.entitled(), Some(&dead));
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn an_entitled_version_that_is_killed_is_followed_when_its_lease_has_run_out(seed: u64) {
        let (mut world, _) = calm(seed);
        // All replicas of one version are killed, so that the other version remains.
        let leader = world.leader().unwrap();
        let (whom, of_it) = if world.is_of(leader, &ours()) { (ours(), [0, 1]) } else { (other(), [2, 3]) };
        world.order_now(leader, Some(whom.clone()));
        world.run_for(Duration::from_secs(1));
        for number in of_it {
            world.end(number);
        }
        world.run_for(TIMING.lease.saturating_sub(TIMING.retry + Duration::from_secs(1)));
        prop_assert_eq!(world.leader().filter(|number| !of_it.contains(number)), None);
        world.run_for(TIMING.retry + SOON);
        prop_assert!(world.leader().is_some_and(|number| !of_it.contains(&number)));
        prop_assert_eq!(world.entitled(), Some(&whom));
        prop_assert_eq!(world.breach(), None);
    }
}
