//! The rulings of a judge, each at its limit.

use super::record::{Failures, Ruling};
use super::*;

/// Shows these sights to a judge, one a second. The ruling must come after `after` seconds and not before.
pub(super) fn check(
    after: u64,
    ruling: Ruling,
    why: &str,
    arrange: impl Fn(&mut Bench),
    see: impl Fn(&mut Bench, u64),
) {
    let mut bench = Bench::judge();
    arrange(&mut bench);
    for second in 0..=after {
        assert!(
            bench.verdict().is_none(),
            "{why}: ruled at {second}: {:?}",
            bench.verdict()
        );
        see(&mut bench, second);
        bench.pass(1);
    }
    let verdict = bench.verdict().unwrap_or_else(|| panic!("{why}: no verdict"));
    assert_eq!(
        (verdict.ruling, verdict.why.as_str(), verdict.judge.as_str()),
        (ruling, why, "r1")
    );
}

pub(super) fn nothing(_: &mut Bench) {}

fn not_led(bench: &mut Bench) {
    bench.sight.lease = Some(LeaseSight {
        holder: Some("r0".to_owned()),
        entitled: Some(digest(1)),
    });
}

#[test]
fn it_passes_after_a_minute_in_the_lead_without_new_failures() {
    let why = "it has led for 60 s since its first converge, and nothing new failed";
    let converged = |bench: &mut Bench, second| bench.report(second, true, &[]);
    check(60, Ruling::Passed, why, nothing, converged);
    // The minute starts again after a failure. A subject that failed before the trial does not count.
    let fails = |bench: &mut Bench, second| {
        let failing: &[(&str, Failures)] = if second == 30 {
            &[("module a", Failures::InARow(1))]
        } else {
            &[("module b", Failures::InARow(9))]
        };
        bench.report(second, true, failing);
    };
    let failing = |bench: &mut Bench| {
        let trial = bench.sight.trial.there().unwrap().clone();
        bench.sight.trial = Known::There(Trial {
            failing: ["module b".to_owned()].into(),
            ..trial
        });
    };
    check(91, Ruling::Passed, why, failing, fails);
    // A new process has to prove itself from the start.
    let again = |bench: &mut Bench, second| bench.report(second, second != 30, &[]);
    check(91, Ruling::Passed, why, nothing, again);
    // A process that lost the lease meanwhile has to prove itself from the start, too.
    let absent = |bench: &mut Bench, second: u64| {
        let holder = if second == 30 { "r0" } else { "trial-1" };
        bench.sight.lease.as_mut().unwrap().holder = Some(holder.to_owned());
        bench.report(second, true, &[]);
    };
    check(91, Ruling::Passed, why, nothing, absent);
    // The lease of a pod may run out while its node is busy.
    let overdue = |bench: &mut Bench, second: u64| {
        bench.put_pod(PodState::Ready, u32::try_from(second.min(3)).unwrap());
        bench.put_overdue(true);
        bench.report(second, true, &[]);
    };
    check(60, Ruling::Passed, why, nothing, overdue);
}

#[test]
fn it_fails_by_its_own_fault() {
    let crashed = |bench: &mut Bench, second| {
        let restarts = u32::try_from(second).unwrap();
        bench.put_pod(PodState::Crashed("exit code 1".to_owned()), restarts);
    };
    let why = "its container was started again 2 times: exit code 1";
    check(2, Ruling::Failed, why, nothing, crashed);

    // The second restart follows the end of a lease.
    let among_others = |bench: &mut Bench, second: u64| {
        bench.put_pod(PodState::Ready, u32::try_from(second.min(3)).unwrap());
        bench.put_overdue(second == 2);
    };
    let why = "its container was started again 3 times";
    check(3, Ruling::Failed, why, nothing, among_others);

    let failing = |bench: &mut Bench, second: u64| {
        let times = u32::try_from(second / 10).unwrap();
        bench.report(second, true, &[("module a", Failures::InARow(times))]);
    };
    let why = "module a failed 3 times in a row and did not fail before";
    check(30, Ruling::Failed, why, nothing, failing);
    let broken = |bench: &mut Bench, second: u64| {
        let failing: &[_] = if second < 10 {
            &[]
        } else {
            &[("module a", Failures::ForGood)]
        };
        bench.report(second, true, failing);
    };
    let why = "module a cannot be run as it is declared, and did not fail before";
    check(10, Ruling::Failed, why, nothing, broken);

    let starting = |bench: &mut Bench, _| bench.put_pod(PodState::Starting, 0);
    let why = "its pod was not ready within 15 min";
    check(15 * 60, Ruling::Failed, why, not_led, starting);

    let why = "it was to lead and has said nothing for 60 s";
    let why = why.replace("60 s", "1 min");
    check(60, Ruling::Failed, &why, nothing, |_, _| {});
    let last = |bench: &mut Bench, second: u64| bench.report(second.min(100), false, &[]);
    check(160, Ruling::Failed, &why, nothing, last);
    // The version has to report after its minute in the lead.
    let last = |bench: &mut Bench, second: u64| bench.report(second.min(50), true, &[]);
    check(110, Ruling::Failed, &why, nothing, last);
    // Reports of other pods do not count.
    let other = |bench: &mut Bench, second| {
        bench.report(second, true, &[]);
        if let Known::There(report) = &mut bench.sight.report {
            report.pod = "trial-0".to_owned();
        }
    };
    check(60, Ruling::Failed, &why, nothing, other);

    let slow = |bench: &mut Bench, second| bench.report(second, false, &[]);
    let why = "its first converge was not over within 15 min";
    check(15 * 60, Ruling::Failed, why, nothing, slow);
}

#[test]
fn nothing_is_found_out_by_the_fault_of_others() {
    let unscheduled = |bench: &mut Bench, _| bench.put_pod(PodState::Unscheduled("no cpu".to_owned()), 0);
    check(
        120,
        Ruling::Unclear,
        "no machine was found for its pod: no cpu",
        not_led,
        unscheduled,
    );
    let not_pulled = |bench: &mut Bench, _| bench.put_pod(PodState::NotPulled("no such host".to_owned()), 0);
    check(
        120,
        Ruling::Unclear,
        "its image could not be pulled: no such host",
        not_led,
        not_pulled,
    );
    let lost = |bench: &mut Bench, second: u64| {
        bench.put_pod(PodState::Ready, 0);
        if let Known::There(TrialSet { pod: Some(pod), .. }) = &mut bench.sight.set {
            pod.uid = format!("u{}", 1 + second / 10);
        }
        bench.report(second, false, &[]);
    };
    check(30, Ruling::Unclear, "its pod was lost 3 times", nothing, lost);
    let on_and_off = |bench: &mut Bench, second: u64| {
        let failing = [("module a", Failures::InARow(1))];
        let is_failing = second.is_multiple_of(50);
        bench.report(second, true, if is_failing { &failing } else { &[] });
    };
    let why = "it has converged, and has not led for 1 min without new failures within 15 min";
    check(15 * 60, Ruling::Unclear, why, nothing, on_and_off);
}

/// Sees nothing for this time.
fn gap(bench: &mut Bench, seconds: u64) {
    bench.seconds += seconds;
    bench.settle();
}

#[test]
fn a_time_over_which_nothing_was_heard_does_not_count() {
    let mut bench = Bench::judge();
    bench.report(1, true, &[]);
    bench.pass(50);
    gap(&mut bench, 100);
    bench.pass(50);
    assert_eq!(bench.verdict(), None, "its silence and its lead are counted anew");
    bench.pass(10);
    assert_eq!(bench.verdict().map(|verdict| verdict.ruling), Some(Ruling::Failed));
    let mut bench = Bench::judge();
    bench.report(1, false, &[]);
    bench.pass(50);
    gap(&mut bench, 20);
    assert!(bench.verdict().is_some(), "a short one does");
}

#[test]
fn a_version_that_suffers_while_the_api_server_is_away_is_not_to_blame() {
    let why = Some("the API server was away for 40 s, and it has suffered from that");
    let check = |change: fn(&mut Bench)| {
        let mut bench = Bench::judge();
        bench.pass_with_reports(5, true, &[]);
        change(&mut bench);
        gap(&mut bench, 40);
        let verdict = bench.verdict().map(|verdict| (verdict.ruling, verdict.why.clone()));
        assert_eq!(verdict, why.map(|why| (Ruling::Unclear, why.to_owned())));
    };
    check(|bench| bench.put_pod(PodState::Crashed(String::new()), 2));
    check(|bench| bench.sight.lease.as_mut().unwrap().holder = Some("r0".to_owned()));
}

#[test]
fn a_judge_that_has_just_started_begins_its_watch_anew() {
    let mut bench = Bench::judge();
    bench.report(1, true, &[]);
    bench.pass(55);
    let mut heir = Bench::judge();
    heir.sight = bench.sight;
    heir.pass(55);
    assert_eq!(heir.verdict(), None);
}

#[test]
fn trials_that_find_out_nothing_have_longer_and_longer_pauses() {
    let mut pauses = Vec::new();
    let mut remembered = Remembered::default();
    let mut trial = trial();
    for number in 0..9 {
        let verdict = Verdict {
            ruling: Ruling::Unclear,
            why: String::new(),
            at: at(100_000 * number).wall,
            judge: String::new(),
        };
        remembered = memory::after(&remembered, &trial, &verdict);
        let once = remembered.clone();
        assert_eq!(memory::after(&remembered, &trial, &verdict), once, "counted once");
        let unclear = remembered.unclear.as_ref().unwrap();
        pauses.push(unclear.again.duration_since(verdict.at).as_secs() / 60);
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 360, 360]);
    trial.to.digest = digest(3);
    let passed = Verdict {
        ruling: Ruling::Passed,
        why: String::new(),
        at: at(0).wall,
        judge: String::new(),
    };
    assert!(
        memory::after(&remembered, &trial, &passed).unclear.is_some(),
        "that of another version stays"
    );
}

#[test]
fn the_stage_of_a_version_that_leads_names_what_still_keeps_it_from_passing() {
    let mut bench = Bench::judge();
    let mut stage = |converged, failing: &[(&str, Failures)]| {
        bench.report(bench.seconds, converged, failing);
        bench.pass(1);
        bench.trials.stage().label()
    };
    assert_eq!(stage(false, &[]), "converges");
    assert_eq!(stage(false, &[("module a", Failures::InARow(1))]), "fails");
    assert_eq!(stage(true, &[("module a", Failures::InARow(2))]), "fails");
    assert_eq!(stage(true, &[]), "proves");
    assert_eq!(stage(true, &[("module a", Failures::InARow(1))]), "fails");
    let told = bench.trials.stage().to_string();
    assert!(
        told.ends_with("is on trial and leads; module a fails, and did not before"),
        "{told}"
    );
}
