//! Damaged releases: when their modules run again, and when they do not.

use super::*;
use crate::operator::event::{Drift, ReleaseSight};
use crate::release::Status;

const SECOND: Duration = Duration::from_secs(1);

fn restoring(modules: Vec<Module>) -> World {
    let mut world = World::new(modules);
    let policy = Policy {
        watches_releases: true,
        ..Policy::default()
    };
    world.operator = Operator::new(1, policy);
    world
}

impl World {
    fn sight(&mut self, release: &str, drift: Option<Drift>) {
        let release = release.to_owned();
        self.handle(Event::ReleaseSeen(ReleaseSight { release, drift }));
    }

    fn vanish(&mut self, release: &str) {
        self.sight(release, Some(Drift::Absent(format!("ns/ConfigMap/{release}"))));
    }

    /// The time until the operator wants to be woken.
    fn wait(&self) -> Option<Duration> {
        let (at, _) = self.operator.poll_timeout()?;
        Some(at - self.tick)
    }

    fn drifts(&self) -> Vec<(Drift, u32)> {
        let of = |notice: &Notice| match notice {
            Notice::ReleaseDrifted { drift, times, .. } => Some((drift.clone(), *times)),
            _ => None,
        };
        self.notices.iter().filter_map(of).collect()
    }
}

#[test]
fn releases_are_watched_once_there_is_one_and_only_if_they_are_to_be_restored() {
    let world = restoring(vec![module(10, "one")]).start();
    assert_eq!(world.log, ["one sync", "watch releases"]);
    let world = World::new(vec![module(10, "one")]).start();
    assert_eq!(world.log, ["one sync"]);
    let mut bare = module(10, "one");
    bare.has_chart = false;
    assert!(restoring(vec![bare]).start().log.is_empty());
}

#[test]
fn after_a_restart_the_watch_begins_before_the_first_run() {
    let mut world = restoring(vec![module(10, "one")]);
    world.releases = vec![ReleaseSummary {
        name: "one".to_owned(),
        ours: true,
        config: None,
    }];
    assert_eq!(world.start().log, ["watch releases", "one sync"]);
    let mut world = restoring(vec![module(10, "one")]);
    world.releases = vec![ReleaseSummary {
        name: "other".to_owned(),
        ours: false,
        config: None,
    }];
    assert_eq!(world.start().log, ["one sync", "watch releases"]);
}

#[test]
fn who_begins_to_watch_is_told_what_there_should_be() {
    let mut world = restoring(vec![module(10, "one"), module(20, "two")]);
    world.inventory.modules[1].has_chart = false;
    world.open.insert("watch releases".to_owned());
    let world = world.start();
    let expected = world.pending.iter().find_map(|job| match job {
        Job::WatchReleases { expected, .. } => Some(expected.clone()),
        _ => None,
    });
    assert_eq!(expected, Some(vec![name("one")]));
}

#[test]
fn an_object_that_stays_absent_is_restored_once_it_has_settled() {
    let mut world = restoring(vec![module(10, "one"), module(20, "two")]).start();
    world.take_log();
    world.vanish("one");
    assert!(world.log.is_empty() && world.wait() == Some(SECOND));
    world.open.insert("one sync".to_owned());
    world.sleep();
    assert_eq!(world.tasks("main"), ["ModuleRun:main:one:AbsentHelmResourcesDetected"]);
    world.close("one sync");
    assert_eq!(world.take_log(), ["one sync"]);
    world.sight("one", None);
    assert_eq!(world.wait(), None);
    assert_eq!(world.drifts(), [(Drift::Absent("ns/ConfigMap/one".to_owned()), 1)]);
}

#[test]
fn what_comes_back_by_itself_runs_nothing() {
    let mut world = restoring(vec![module(10, "one")]).start();
    world.take_log();
    world.vanish("one");
    world.sight("one", None);
    assert!(world.log.is_empty() && world.wait().is_none() && world.drifts().is_empty());
    world.vanish("other");
    assert_eq!(world.wait(), None);
}

#[test]
fn who_insists_is_answered_later_and_later_and_forgotten_in_the_end() {
    let mut world = restoring(vec![module(10, "one")]).start();
    world.take_log();
    let mut pauses = Vec::new();
    for _ in 0..9 {
        world.vanish("one");
        pauses.push(world.wait().unwrap().as_secs());
        world.sleep();
        assert_eq!(world.take_log(), ["one sync"]);
        world.sight("one", None);
    }
    assert_eq!(pauses, [1, 4, 9, 19, 39, 79, 159, 299, 299]);
    world.tick = world.tick + Duration::from_mins(11);
    world.vanish("one");
    assert_eq!(world.wait(), Some(SECOND));
}

#[test]
fn a_run_that_does_not_help_is_repeated_with_pauses() {
    let mut world = restoring(vec![module(10, "one")]).start();
    world.take_log();
    world.vanish("one");
    world.sleep();
    let mut pauses = Vec::new();
    for _ in 0..3 {
        pauses.push(world.wait().unwrap().as_secs());
        world.sleep();
    }
    assert_eq!(pauses, [5, 10, 20]);
    assert_eq!(world.take_log().len(), 4);
    let times: Vec<u32> = world.drifts().into_iter().map(|(_, times)| times).collect();
    assert_eq!(times, [1, 2, 3, 4]);
}

#[test]
fn nothing_that_happens_during_a_run_counts_before_its_end() {
    let mut world = restoring(vec![module(10, "one")]).start();
    world.open.insert("one sync".to_owned());
    world.edit(&[("one", Some("x: 1"))]);
    world.take_log();
    world.vanish("one");
    assert_eq!(world.wait(), None);
    world.close("one sync");
    assert_eq!(world.wait(), Some(SECOND));
    world.sight("one", None);
    assert!(world.wait().is_none() && world.drifts().is_empty());
    assert_eq!(world.take_log(), ["one sync"]);
}

#[test]
fn a_failing_module_keeps_its_own_time() {
    let mut world = restoring(vec![module(10, "one")]).start();
    world.failing.insert("one sync".to_owned(), 2);
    world.edit(&[("one", Some("x: 1"))]);
    let before = world.wait();
    world.vanish("one");
    assert!(world.wait() < before && world.wait() > Some(Duration::from_secs(4)));
    world.sleep();
    world.sleep();
    assert!(world.drifts().is_empty());
    assert_eq!(world.wait(), Some(SECOND));
}

#[test]
fn a_release_that_is_not_deployed_is_told_by_its_state() {
    let mut world = restoring(vec![module(10, "one")]).start();
    world.take_log();
    world.sight("one", Some(Drift::Status(Some(Status::Failed))));
    world.open.insert("one sync".to_owned());
    world.sleep();
    assert_eq!(world.tasks("main"), ["ModuleRun:main:one:HelmReleaseUnexpectedStatus"]);
    assert_eq!(world.drifts(), [(Drift::Status(Some(Status::Failed)), 1)]);
}

#[test]
fn what_people_have_in_their_hands_is_not_restored_before_they_give_it_back() {
    let mut world = restoring(vec![module(10, "one")]).start();
    world.edit(&[("oneMaintenance", Some("NoResourceReconciliation"))]);
    world.take_log();
    world.sight("one", Some(Drift::Status(None)));
    assert_eq!(world.wait(), None);
    world.edit(&[("oneMaintenance", None)]);
    assert_eq!(world.take_log(), ["one sync"]);
    world.sight("one", None);
    assert!(world.wait().is_none() && world.drifts().is_empty());
}

#[test]
fn a_converge_that_has_not_come_to_its_modules_restores_them_itself() {
    let mut world = restoring(vec![module(10, "one")])
        .hook("", "g.sh", "beforeAll: 1")
        .start();
    world.open.insert("g.sh beforeAll".to_owned());
    world.edit(&[("global", Some("x: 1"))]);
    world.take_log();
    world.vanish("one");
    // Only the patience with the hook.
    let timeout = world.operator.poll_timeout();
    assert!(matches!(timeout, Some((_, Waiting::Patience(_)))), "{timeout:?}");
    world.close("g.sh beforeAll");
    assert_eq!(world.take_log(), ["g.sh beforeAll", "one sync"]);
    world.sight("one", None);
    assert!(world.wait().is_none() && world.drifts().is_empty());
}

#[test]
fn a_module_that_is_switched_off_loses_its_release_for_good() {
    let mut world = restoring(vec![module(10, "one"), module(20, "two")]).start();
    world.open.insert("one delete".to_owned());
    world.edit(&[("oneEnabled", Some("false"))]);
    world.vanish("one");
    let timeout = world.operator.poll_timeout();
    assert!(matches!(timeout, Some((_, Waiting::Patience(_)))), "{timeout:?}");
    world.close("one delete");
    world.sight("one", Some(Drift::Status(None)));
    world.take_log();
    assert!(world.wait().is_none() && world.drifts().is_empty());
    // The next life of the module begins with a run, and earlier damage is forgotten.
    world.edit(&[("oneEnabled", Some("true"))]);
    assert_eq!(world.take_log(), ["one sync", "two sync"]);
    world.sight("one", None);
    assert_eq!(world.wait(), None);
}

#[test]
fn a_watch_that_is_refused_is_asked_for_again() {
    let mut world = restoring(vec![module(10, "one")]);
    world.failing.insert("watch releases".to_owned(), 1);
    let mut world = world.start();
    assert!(world.status().ready && world.status().waiting.is_empty());
    world.sleep();
    assert_eq!(world.log, ["one sync", "watch releases fails", "watch releases"]);
}
