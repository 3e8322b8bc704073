//! The steps of a trial, and the replicas that do them.

use super::*;

#[test]
fn a_leader_begins_and_hands_over_when_the_pod_was_ready_for_ten_seconds() {
    let mut bench = Bench::leader();
    bench.settle();
    assert_eq!(bench.done(), ["begin", "entitle 1", "make"]);
    let begun = bench.sight.trial.there().unwrap();
    assert_eq!((begun.by.as_str(), &begun.to.digest), ("r0", &digest(2)));
    assert_eq!(bench.trials.news(), [TrialNews::Begun(wanted(2).target)]);
    bench.pass(60);
    assert_eq!(bench.done(), [""; 0], "the pod is not there");
    bench.put_pod(PodState::Starting, 0);
    bench.pass(60);
    assert_eq!(bench.done(), ["note pod"]);
    bench.put_pod(PodState::Ready, 0);
    bench.pass(10);
    assert_eq!(bench.done(), [""; 0]);
    bench.pass(1);
    assert_eq!(bench.done(), ["note hand-over", "entitle 2"]);
    bench.pass(5);
    assert_eq!(bench.done(), [""; 0]);
    assert_eq!(bench.trials.stage().label(), "doubts");
}

#[test]
fn a_version_that_passes_is_promoted_and_all_of_the_trial_goes() {
    let mut bench = Bench::judge();
    bench.pass_with_reports(30, false, &[]);
    bench.pass_with_reports(60, true, &[]);
    assert_eq!(bench.done(), [""; 0]);
    bench.pass_with_reports(1, true, &[]);
    assert_eq!(bench.done(), ["passed".to_owned(), format!("promote {}", image(2))]);
    bench.sight.deployment.as_mut().unwrap().stuck = Some("no room".to_owned());
    bench.pass(60);
    assert_eq!(bench.done(), [""; 0]);
    assert!(
        bench
            .trials
            .stage()
            .to_string()
            .ends_with("its rollout goes no further: no room")
    );

    // A pod of the new version does the next step.
    let sight = bench.sight.clone();
    let mut heir = Bench::new("r2", 2, PodKind::Deployment);
    heir.sight = sight;
    let deployment = heir.sight.deployment.as_mut().unwrap();
    (deployment.is_rolled_out, deployment.stuck) = (true, None);
    heir.sight.replicas = Some(vec![replica("r2", 2)]);
    heir.pass(1);
    assert_eq!(heir.done(), ["drop"]);
    heir.pass(60);
    assert_eq!(heir.done(), [""; 0], "its pod has not ended");
    heir.sight.set = Known::Absent;
    heir.pass(60);
    assert_eq!(heir.done(), [""; 0], "the leader closes");
    heir.wish.lead = Lead::Leads;
    heir.pass(60);
    assert_eq!(heir.done(), ["entitle none", "close"]);
}

#[test]
fn a_version_that_fails_is_remembered_and_the_old_one_leads_again() {
    let mut bench = Bench::judge();
    bench.put_pod(PodState::Crashed("exit code 1".to_owned()), 2);
    bench.pass(1);
    assert_eq!(bench.done(), ["failed", "entitle 1", "remember", "drop"]);
    let why = "its container was started again 2 times: exit code 1".to_owned();
    assert_eq!(bench.remembered().failed[&digest(2)].why, why);
    let news = bench.trials.news();
    assert!(matches!(&news[..], [TrialNews::Ended(..)]), "{news:?}");
    bench.sight.set = Known::Absent;
    bench.wish.lead = Lead::Leads;
    bench.pass(60);
    // Without an approval there is no approval to forget.
    assert_eq!(bench.done(), ["entitle none", "close", "remember"]);
    assert_eq!(bench.trials.stage().label(), "waits");
    bench.wish.wanted = Some(wanted(3));
    bench.pass(1);
    assert_eq!(
        bench.done(),
        ["begin", "entitle 1", "make"],
        "the next version is tried"
    );
}

#[test]
fn a_record_that_was_seen_late_takes_nothing_from_the_next_trial() {
    let mut bench = Bench::judge();
    bench.put_pod(PodState::Crashed("exit code 1".to_owned()), 2);
    bench.pass(1);
    assert_eq!(bench.done(), ["failed", "entitle 1", "remember", "drop"]);
    // Other replicas have closed that record and begun the next trial. This machine has not read the record again, but
    // sees the current objects.
    let read = bench.sight.trial.there().cloned();
    if let Known::There(set) = &mut bench.sight.set {
        (set.uid, set.digest, set.is_going) = ("s2".to_owned(), digest(3), false);
    }
    bench.trials.see(bench.sight.clone());
    let drop = Action::DropSet {
        over: read.map(Box::new),
        uid: "s2".to_owned(),
    };
    assert_eq!(
        bench.trials.next(at(bench.seconds)),
        Move::Do(drop),
        "it counts over that record alone"
    );
}

fn failed(second: i64) -> Failed {
    Failed {
        why: "it hangs".to_owned(),
        at: Timestamp::from_second(second).unwrap(),
    }
}

#[test]
fn the_first_failures_are_forgotten_when_there_are_too_many() {
    let mut bench = Bench::judge();
    // The later a digest failed, the lower it is.
    let other = |number: i64| ImageDigest::parse(&format!("sha256:{number:064x}")).unwrap();
    bench.remembered().failed = (0..100).map(|number| (other(200 - number), failed(number))).collect();
    bench.put_pod(PodState::Crashed("exit code 1".to_owned()), 2);
    bench.pass(1);
    let failed = &bench.remembered().failed;
    assert_eq!(failed.len(), 100);
    assert!(failed.contains_key(&digest(2)) && failed.contains_key(&other(199)));
    assert!(!failed.contains_key(&other(200)), "it failed before all others");
}

#[test]
fn an_approval_lifts_a_failure_for_one_trial() {
    let mut bench = Bench::leader();
    bench.remembered().failed = [(digest(2), failed(0))].into();
    bench.remembered().spent = [digest(2)].into();
    bench.wish.settings.as_mut().unwrap().approved = [digest(2)].into();
    bench.pass(5);
    assert_eq!(bench.done(), [""; 0]);
    bench.wish.settings.as_mut().unwrap().approved = BTreeSet::new();
    bench.pass(1);
    assert_eq!(bench.done(), ["remember"]);
    bench.wish.settings.as_mut().unwrap().approved = [digest(2)].into();
    bench.pass(1);
    assert_eq!(bench.done()[0], "begin");
}

#[test]
fn a_lease_that_comes_back_is_handed_over_again_if_the_new_version_speaks() {
    let mut bench = Bench::judge();
    bench.report(1, false, &[]);
    bench.pass(5);
    bench.wish.lead = Lead::Leads;
    bench.sight.lease.as_mut().unwrap().holder = Some("r1".to_owned());
    bench.pass(20);
    assert_eq!(bench.done(), [""; 0]);
    assert_eq!(bench.trials.stage().label(), "doubts");
    bench.report(2, false, &[]);
    bench.pass(2);
    assert_eq!(bench.done(), ["entitle 1", "note hand-over", "entitle 2"]);
    bench.sight.trial = Known::There(Trial {
        handed: 3,
        ..bench.sight.trial.there().unwrap().clone()
    });
    bench.sight.lease.as_mut().unwrap().entitled = Some(digest(1));
    let mut other = Bench::leader();
    other.sight = bench.sight;
    other.pass(12);
    assert_eq!(other.done()[0], "unclear");
}

#[test]
fn a_pod_that_is_lost_is_counted_once_and_the_lease_named_back() {
    let mut bench = Bench::judge();
    bench.pass(5);
    bench.put_pod(PodState::Lost("evicted".to_owned()), 0);
    bench.pass(5);
    assert_eq!(bench.done(), ["note loss", "entitle 1"]);
    assert_eq!(bench.sight.trial.there().unwrap().lost, 1);
    bench.sight.trial = Known::There(Trial {
        lost: 3,
        ..bench.sight.trial.there().unwrap().clone()
    });
    bench.pass(1);
    assert_eq!(bench.done(), ["unclear", "remember", "drop"]);
}

#[test]
fn the_new_version_promotes_itself_only_if_no_judge_does() {
    let mut bench = Bench::new("trial-1", 2, PodKind::Trial);
    bench.sight = Bench::judge().sight;
    bench.wish.lead = Lead::Leads;
    bench.pass(60);
    assert_eq!(bench.done(), [""; 0], "it does not judge itself");
    bench.sight.replicas = Some(Vec::new());
    bench.pass(1);
    assert_eq!(bench.trials.stage().label(), "unjudged");
    let passed = Verdict {
        ruling: record::Ruling::Passed,
        why: String::new(),
        at: at(0).wall,
        judge: "r1".to_owned(),
    };
    bench.sight.trial = Known::There(Trial {
        verdict: Some(passed),
        ..bench.sight.trial.there().unwrap().clone()
    });
    bench.pass(30);
    assert_eq!(bench.done(), [""; 0]);
    bench.pass(1);
    assert_eq!(bench.done(), [format!("promote {}", image(2))]);
}

#[test]
fn a_trial_is_void_if_people_change_what_it_stands_on() {
    let check = |change: fn(&mut Bench), told: &str| {
        let mut bench = Bench::judge();
        bench.pass(3);
        change(&mut bench);
        bench.pass(1);
        let words = bench.done();
        assert_eq!(words.first().map(String::as_str), Some("void"), "{told}");
        assert_eq!(bench.verdict().unwrap().why, told);
        assert!(bench.remembered().spent.is_empty(), "{told}");
    };
    check(
        |bench| bench.sight.deployment.as_mut().unwrap().template.push('x'),
        "the Deployment was changed meanwhile",
    );
    check(
        |bench| {
            let channel = crate::channel::Channel::parse("beta").unwrap();
            bench.wish.settings.as_mut().unwrap().channel = Some(channel);
        },
        "releaseChannel was changed meanwhile",
    );
    check(
        |bench| {
            let trial = bench.sight.trial.there().unwrap().clone();
            bench.sight.trial = Known::There(Trial {
                is_approved: true,
                ..trial
            });
        },
        "it was taken out of releaseApproved meanwhile",
    );
    check(
        |bench| bench.remembered().failed = [(digest(2), failed(0))].into(),
        "this version failed on trial meanwhile",
    );
}

#[test]
fn whoever_is_of_another_version_winds_up_and_does_not_judge() {
    let mut bench = Bench::judge();
    bench.trials.know(Me {
        digest: digest(7),
        digests: [digest(7)].into(),
        pod: "r1".to_owned(),
        place: PodKind::Deployment,
    });
    bench.put_pod(PodState::Crashed(String::new()), 5);
    bench.pass(120);
    assert_eq!(bench.done(), [""; 0]);
    bench.sight.deployment = Some(deployment(image(7)));
    bench.pass(1);
    assert_eq!(bench.done(), ["void", "entitle none", "drop"]);
    let mut stranger = Bench::judge();
    stranger.trials.know(Me {
        digest: digest(7),
        digests: [digest(7)].into(),
        pod: "trial-0".to_owned(),
        place: PodKind::Trial,
    });
    stranger.pass(120);
    assert_eq!(stranger.done(), [""; 0]);
}

#[test]
fn others_who_put_the_image_back_during_the_rollout_end_the_trial() {
    let mut bench = Bench::judge();
    bench.pass_with_reports(70, true, &[]);
    assert_eq!(bench.done()[0], "passed");
    let named = bench.sight.deployment.clone().unwrap();
    bench.sight.deployment = Some(Deployment {
        patched: named.patched,
        ..deployment(image(1))
    });
    bench.pass(2);
    assert_eq!(
        bench.done(),
        ["entitle 1", "drop"],
        "it is not promoted again and again"
    );
}

#[test]
fn nothing_is_done_about_an_old_sight() {
    let mut bench = Bench::leader();
    bench.sight.heard = at(100).tick;
    bench.trials.see(bench.sight.clone());
    bench.trials.wish(bench.wish.clone(), at(116));
    assert_eq!(bench.trials.next(at(116)), Move::Rest);
    assert_eq!(bench.trials.stage().label(), "unheard");
    assert!(matches!(bench.trials.next(at(115)), Move::Do(_)));
}

#[test]
fn what_is_not_known_is_not_taken_for_absent() {
    let check = |forget: fn(&mut Sight), told: &str| {
        let mut bench = Bench::leader();
        forget(&mut bench.sight);
        assert_eq!(bench.settle(), Move::Rest, "{told}");
        assert_eq!(bench.trials.stage().to_string(), told);
    };
    check(|sight| sight.deployment = None, "our Deployment is not known yet");
    check(
        |sight| sight.replicas = None,
        "the pods of our Deployment are not known yet",
    );
    check(
        |sight| sight.set = Known::Unknown,
        "the ReplicaSet of the trial is not known yet",
    );
    check(|sight| sight.lease = None, "the lease is not known yet");
    check(
        |sight| sight.trial = Known::Unknown,
        "the Secret with our state is not known yet",
    );
    check(
        |sight| sight.remembered = None,
        "the Secret with our state is not known yet",
    );
}

#[test]
fn a_deed_whose_answer_was_lost_is_recognized() {
    let mut bench = Bench::leader();
    bench.settle();
    bench.done();
    bench.put_pod(PodState::Ready, 0);
    bench.pass(10);
    bench.trials.news();
    bench.seconds += 1;
    let now = at(bench.seconds);
    bench.sight.heard = now.tick;
    bench.trials.see(bench.sight.clone());
    let Move::Do(action) = bench.trials.next(now) else {
        panic!()
    };
    assert_eq!(word(&action), "note hand-over");
    apply(&mut bench.sight, &action);
    bench
        .trials
        .did(action, Outcome::Failed("writing the Secret".to_owned()), now);
    bench.done();
    bench.pass(1);
    assert_eq!(bench.done(), ["entitle 2"], "it is not counted twice");
    assert_eq!(bench.trials.trouble(), None);
}

#[test]
fn a_deed_that_fails_is_tried_again_later() {
    let mut bench = Bench::leader();
    bench.sight.heard = at(100).tick;
    bench.trials.see(bench.sight.clone());
    bench.trials.wish(bench.wish.clone(), at(100));
    let Move::Do(action) = bench.trials.next(at(100)) else {
        panic!()
    };
    bench.trials.did(
        action.clone(),
        Outcome::Failed("writing the Secret".to_owned()),
        at(100),
    );
    assert_eq!(bench.trials.next(at(100)), Move::Wait(at(105).tick));
    assert_eq!(bench.trials.trouble(), Some("writing the Secret"));
    bench.trials.see(bench.sight.clone());
    assert_eq!(bench.trials.next(at(104)), Move::Wait(at(105).tick));
    assert!(matches!(
        bench.trials.next(at(105)),
        Move::Do(Action::Record { over: None, .. })
    ));
    bench.trials.did(action, Outcome::Changed, at(105));
    assert_eq!(bench.trials.next(at(105)), Move::Wait(at(107).tick));
}
