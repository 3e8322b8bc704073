//! Rulings about a version by the health of modules.

use super::record::{Ailment, Ruling};
use super::rulings::{check, nothing};
use super::*;

/// The revision of all modules before the trial.
const BEFORE: u32 = 3;

fn ailment(has_failed: bool, is_upgraded: bool) -> Ailment {
    Ailment {
        has_failed,
        revision: BEFORE + u32::from(is_upgraded),
        is_hindered: false,
        sentence: "Deployment web: 0 of 1 pods are ready".to_owned(),
    }
}

fn report(bench: &mut Bench, second: u64, unhealthy: &[(&str, Ailment)]) {
    bench.report(second, true, &[]);
    let unhealthy = unhealthy
        .iter()
        .map(|(module, ailment)| ((*module).to_owned(), ailment.clone()));
    if let Known::There(report) = &mut bench.sight.report {
        report.unhealthy = unhealthy.collect();
    }
}

#[test]
fn a_version_passes_once_the_modules_that_it_upgraded_are_healthy_for_a_minute() {
    let slow = |bench: &mut Bench, second: u64| {
        let unhealthy = [("a", ailment(false, true))];
        report(bench, second, if second < 90 { &unhealthy } else { &[] });
    };
    let why = "it has led for 60 s since its first converge, and nothing new failed";
    check(150, Ruling::Passed, why, nothing, slow);
}

#[test]
fn a_version_fails_if_a_module_that_it_upgraded_says_so_or_is_not_healthy_in_time() {
    let fails = |bench: &mut Bench, second: u64| {
        let unhealthy = [("a", ailment(second >= 40, true))];
        report(bench, second, &unhealthy);
    };
    let why = "module a is not healthy: Deployment web: 0 of 1 pods are ready";
    check(40, Ruling::Failed, why, nothing, fails);
    let hangs = |bench: &mut Bench, second: u64| report(bench, second, &[("a", ailment(false, true))]);
    let why = "within 15 min module a is not healthy: Deployment web: 0 of 1 pods are ready";
    check(900, Ruling::Failed, why, nothing, hangs);
}

#[test]
fn a_version_whose_pod_was_replaced_is_still_blamed_for_what_it_upgraded() {
    let forgets = |bench: &mut Bench, second: u64| {
        if let (20, Known::There(TrialSet { pod: Some(pod), .. })) = (second, &mut bench.sight.set) {
            pod.uid = "u2".to_owned();
        }
        report(bench, second, &[("a", ailment(second >= 300, true))]);
    };
    let why = "module a is not healthy: Deployment web: 0 of 1 pods are ready";
    check(300, Ruling::Failed, why, nothing, forgets);
}

#[test]
fn a_module_that_is_healthy_at_the_limit_has_the_time_to_stay_so() {
    let late = |bench: &mut Bench, second: u64| {
        let unhealthy = [("a", ailment(false, true))];
        report(bench, second, if second < 880 { &unhealthy } else { &[] });
    };
    let why = "it has led for 60 s since its first converge, and nothing new failed";
    check(940, Ruling::Passed, why, nothing, late);
    let flaps = |bench: &mut Bench, second: u64| {
        let unhealthy = [("a", ailment(false, true))];
        report(bench, second, if second % 50 < 10 { &unhealthy } else { &[] });
    };
    let why = "within 15 min module a is not healthy: Deployment web: 0 of 1 pods are ready";
    check(900, Ruling::Failed, why, nothing, flaps);
    let flaps = |bench: &mut Bench, second: u64| {
        let unhealthy = [("a", ailment(false, true))];
        report(bench, second, if second % 50 >= 40 { &unhealthy } else { &[] });
    };
    check(940, Ruling::Failed, why, nothing, flaps);
}

#[test]
fn a_version_is_not_blamed_for_objects_that_it_did_not_touch_or_that_were_ill_before() {
    let node = |bench: &mut Bench, second: u64| {
        let unhealthy = [("a", ailment(true, true)), ("b", ailment(true, false))];
        report(bench, second, &unhealthy);
    };
    let why = "module a is not healthy: Deployment web: 0 of 1 pods are ready, but module b is not healthy: Deployment web: \
               0 of 1 pods are ready too, which it did not touch";
    check(900, Ruling::Unclear, why, nothing, node);
    let before = |bench: &mut Bench| {
        let trial = bench.sight.trial.there().unwrap().clone();
        bench.sight.trial = Known::There(Trial {
            unwell: ["a".to_owned()].into(),
            ..trial
        });
    };
    let ill = |bench: &mut Bench, second: u64| report(bench, second, &[("a", ailment(true, true))]);
    let why = "it has led for 60 s since its first converge, and nothing new failed";
    check(60, Ruling::Passed, why, before, ill);
}

#[test]
fn a_version_that_the_cluster_hinders_neither_fails_nor_passes_for_that() {
    let hindered = |bench: &mut Bench, second: u64, converged: bool, until: u64| {
        bench.report(second, converged, &[]);
        if let (true, Known::There(report)) = (second < until, &mut bench.sight.report) {
            report.hindered = ["module a".to_owned()].into();
        }
    };
    let why = "it has led for 60 s since its first converge, and nothing new failed";
    check(150, Ruling::Passed, why, nothing, |bench, second| {
        hindered(bench, second, true, 90);
    });
    let why = "the cluster has hindered module a for longer than 15 min";
    for converged in [true, false] {
        check(900, Ruling::Unclear, why, nothing, |bench, second| {
            hindered(bench, second, converged, 2000);
        });
    }
}

#[test]
fn a_version_is_not_blamed_for_a_registry_that_does_not_answer() {
    let hindered = Ailment {
        is_hindered: true,
        ..ailment(true, true)
    };
    let away = |bench: &mut Bench, second: u64| report(bench, second, &[("a", hindered.clone())]);
    let why = "within 15 min module a is not healthy: Deployment web: 0 of 1 pods are ready";
    check(900, Ruling::Unclear, why, nothing, away);
    let beside = |bench: &mut Bench, second: u64| {
        report(
            bench,
            second,
            &[("a", hindered.clone()), ("b", ailment(second >= 40, true))],
        );
    };
    let why = "module b is not healthy: Deployment web: 0 of 1 pods are ready";
    check(40, Ruling::Failed, why, nothing, beside);
}

#[test]
fn a_report_of_an_earlier_version_says_nothing_about_health() {
    let text = r#"{"of": "sha256:0000000000000000000000000000000000000000000000000000000000000002", "pod": "p", "number": 1,
        "converged": null, "failing": {}}"#;
    let report: Report = serde_json::from_str(text).unwrap();
    assert!(report.unhealthy.is_empty());
}
