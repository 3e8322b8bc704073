use super::*;
use crate::choice::Activity;
use crate::trial::action::Move;
use crate::trial::news::TrialNews;
use crate::trial::record::Remembered;
use crate::trial::replica::Lead;
use crate::trial::sight::{Known, TrialSet};
use crate::trial::tests::{Bench, OLD, at, deployment, digest, image, replica};

#[test]
fn whose_hands_an_image_is_by() {
    let two = image(2);
    let check = |named: &str, values: &str, values_then: &str, former: &str, wanted: Hands<'_>| {
        let deployment = Deployment {
            patched: Some(image(2)),
            former: Some(former.to_owned()),
            chart_image: Some(values.to_owned()),
            chart_image_then: Some(values_then.to_owned()),
            ..deployment(named.to_owned())
        };
        assert_eq!(hands(&deployment, &Remembered::default()), wanted, "{named} {values}");
    };
    let (one, three) = (image(1), image(3));
    check(&two, OLD, OLD, OLD, Hands::Agreed);
    check(&two, "host/operator:9", OLD, OLD, Hands::Agreed);
    // Argo CD puts the image back, with the same values.
    check(OLD, OLD, OLD, &one, Hands::PutBack(&two));
    check(&one, &one, &one, &one, Hands::PutBack(&two));
    check(OLD, "", "", OLD, Hands::PutBack(&two));
    // Changed values of the chart count.
    check("host/operator:9", "host/operator:9", OLD, &one, Hands::Unpinned);
    check(&three, &three, OLD, &one, Hands::Agreed);
    check(OLD, OLD, "host/operator:0", OLD, Hands::Unpinned);
    // A person sets another tag; sets a digest; or takes a digest back.
    check("host/operator:3", OLD, OLD, &one, Hands::Unpinned);
    check(&three, OLD, OLD, &one, Hands::Held);
    check(&one, OLD, OLD, &one, Hands::Held);
}

#[test]
fn an_image_that_nobody_has_patched_counts_as_it_is() {
    let unpatched = |image: String| Deployment {
        patched: None,
        ..deployment(image)
    };
    let remembered = Remembered::default();
    assert_eq!(hands(&unpatched(OLD.to_owned()), &remembered), Hands::Unpinned);
    assert_eq!(hands(&unpatched(image(1)), &remembered), Hands::Agreed);
}

fn unpinned() -> Bench {
    let mut bench = Bench::leader();
    bench.sight.deployment = Some(Deployment {
        patched: None,
        ..deployment(OLD.to_owned())
    });
    bench
}

#[test]
fn an_image_by_tag_alone_is_pinned_in_a_quiet_moment_before_any_trial() {
    let mut bench = unpinned();
    bench.settle();
    assert_eq!(bench.done(), [format!("pin {}", image(1))]);
    assert_eq!(bench.trials.news(), [TrialNews::Pinned(image(1))]);
    bench.pass(30);
    assert_eq!(bench.done(), [""; 0], "the rollout is under way");
    bench.sight.deployment.as_mut().unwrap().is_rolled_out = true;
    bench.pass(1);
    assert_eq!(bench.done()[0], "begin");

    let mut busy = unpinned();
    busy.wish.activity = Activity::Busy;
    busy.pass(599);
    assert_eq!((busy.done(), busy.trials.stage().label()), (vec![], "pinning"));
    busy.pass(2);
    assert_eq!(busy.done().len(), 1, "not for ever");

    let mut rolling = unpinned();
    rolling.sight.deployment.as_mut().unwrap().is_rolled_out = false;
    assert_eq!(rolling.settle(), Move::Rest);
    let mut other = unpinned();
    other.sight.replicas = Some(vec![replica("r9", 1)]);
    assert_eq!(other.settle(), Move::Rest);
    let mut standby = unpinned();
    standby.wish.lead = Lead::Follows;
    assert_eq!(standby.settle(), Move::Rest);
}

fn put_back(bench: &mut Bench) {
    let patched = bench.sight.deployment.as_ref().unwrap().patched.clone();
    bench.sight.deployment = Some(Deployment {
        patched,
        manager: Some(("argocd-controller".to_owned(), None)),
        ..deployment(OLD.to_owned())
    });
    bench.pass(60);
}

#[test]
fn an_image_that_is_put_back_is_replaced_twice_an_hour() {
    let mut bench = Bench::leader();
    bench.wish.wanted = None;
    for _ in 0..2 {
        put_back(&mut bench);
        assert_eq!(bench.done(), ["remember".to_owned(), format!("pin {}", image(1))]);
    }
    bench.trials.news();
    put_back(&mut bench);
    assert_eq!(bench.done(), ["remember"]);
    let told = format!("'argocd-controller' has put the image {OLD} back into the Deployment 3 times within an hour");
    assert_eq!(bench.trials.news(), [TrialNews::Stopped(told)]);
    assert_eq!(bench.trials.stage().label(), "stopped");
    bench.pass(4000);
    assert_eq!(bench.done(), [""; 0], "until a person resumes");
    bench.wish.resumed = Some("go".to_owned());
    bench.pass(1);
    assert_eq!(bench.done()[0], "remember");
    assert_eq!(bench.trials.news()[0], TrialNews::Resumed);
    assert_eq!(bench.remembered().stopped, None);

    let mut rare = Bench::leader();
    rare.wish.wanted = None;
    for _ in 0..5 {
        put_back(&mut rare);
        assert_eq!(rare.done().len(), 2);
        rare.seconds += 1800;
    }
}

#[test]
fn a_digest_by_hand_holds_until_a_person_resumes() {
    let mut bench = Bench::leader();
    // An old resume does not end the hold.
    bench.wish.resumed = Some("old".to_owned());
    bench.remembered().resumed = Some("old".to_owned());
    let patched = bench.sight.deployment.as_ref().unwrap().patched.clone();
    bench.sight.deployment = Some(Deployment {
        patched,
        ..deployment(image(5))
    });
    bench.pass(60);
    assert_eq!(bench.done(), [""; 0]);
    assert_eq!(bench.trials.news(), [TrialNews::Held(image(5))]);
    bench.wish.resumed = Some("new".to_owned());
    bench.pass(1);
    let noted = format!("pin {}", image(5));
    assert_eq!(
        bench.done()[..4],
        ["remember".to_owned(), noted, "remember".to_owned(), "begin".to_owned()]
    );
    assert_eq!(bench.trials.news()[0], TrialNews::Resumed);
    assert_eq!(
        bench.remembered().adopted,
        None,
        "the same by hand again would hold again"
    );
}

#[test]
fn remains_without_a_record_go_after_a_while() {
    let mut bench = Bench::leader();
    bench.wish.lead = Lead::Follows;
    bench.sight.set = Known::There(TrialSet {
        uid: "s0".to_owned(),
        digest: digest(2),
        is_going: false,
        pod: None,
    });
    bench.sight.lease.as_mut().unwrap().entitled = Some(digest(2));
    bench.pass(30);
    assert_eq!(bench.done(), [""; 0], "the record may be on its way");
    bench.pass(5);
    assert_eq!(bench.done(), ["drop"]);
    bench.sight.set = Known::Absent;
    bench.pass(60);
    assert_eq!(bench.done(), [""; 0], "the leader names nobody");
    bench.wish.lead = Lead::Leads;
    bench.wish.wanted = None;
    bench.pass(1);
    assert_eq!(bench.done(), ["entitle none"]);
}

#[test]
fn a_version_whose_trial_found_out_nothing_waits_here_too() {
    let mut bench = Bench::leader();
    bench.remembered().unclear = Some(Unclear {
        digest: digest(2),
        times: 1,
        at: at(0).wall,
        again: at(130).wall,
        why: String::new(),
    });
    bench.pass(29);
    assert_eq!(bench.done(), [""; 0]);
    assert_eq!(
        bench.trials.stage().to_string(),
        "2 (sha256:000000000000) is tried as soon as the pause after its last trial, which found out nothing, is over"
    );
    bench.pass(1);
    assert_eq!(bench.done()[0], "begin");
}
