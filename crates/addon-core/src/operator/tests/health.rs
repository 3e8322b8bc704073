//! The health of modules: what holds others up, for how long, and what people are told.

use channel_core::choice::Activity;

use super::*;
use crate::module::health::{OnFailure, TIMEOUT};
use crate::operator::effect::HealthNews;
use crate::operator::health::{Health, HealthSight, Seen};

const SECOND: Duration = Duration::from_secs(1);
const WEB: &str = "Deployment web: 0 of 1 pods are ready";

impl World {
    /// Tells that the releases of the last syncs are healthy, unless a test tells their health itself.
    pub(super) fn tell_healths(&mut self) {
        for release in std::mem::take(&mut self.untold) {
            if !self.ill.contains(&release) {
                let now = self.now();
                self.operator.handle(now, sight(&release, 1, Seen::Healthy));
                self.drain();
            }
        }
    }

    pub(super) fn see(&mut self, release: &str, revision: u32, seen: Seen) {
        self.handle(sight(release, revision, seen));
    }

    /// Lets this time pass, with every wake that the operator asks for.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.tick + time;
        while let Some((at, _)) = self.operator.poll_timeout().filter(|(at, _)| *at <= end) {
            self.tick = self.tick.max(at);
            self.handle(Event::TimerFired);
        }
        self.tick = self.tick.max(end);
    }

    fn on_its_way(&mut self, release: &str) {
        self.see(release, 1, Seen::InProgress(WEB.to_owned()));
    }

    fn health(&self, module: &str) -> (Health, Option<String>) {
        let modules = self.operator.answer(&ModulesQuery);
        let report = modules.into_iter().find(|report| report.name == module).unwrap();
        (report.health, report.unhealthy)
    }

    /// The modules that were told unhealthy or healthy.
    fn told(&self) -> Vec<String> {
        let told = |notice: &Notice| match notice {
            Notice::HealthTurned(HealthNews { module, unhealthy }) => Some(match unhealthy {
                Some(sentence) => format!("{module}: {sentence}"),
                None => format!("{module} is healthy"),
            }),
            _ => None,
        };
        self.notices.iter().filter_map(told).collect()
    }
}

fn sight(release: &str, revision: u32, seen: Seen) -> Event {
    Event::HealthSeen(HealthSight {
        release: release.to_owned(),
        revision,
        seen,
    })
}

/// A world with watched releases, in which the module `db` tells its health by hand, and `app` needs it.
fn world() -> World {
    let mut app = module(20, "app");
    app.depends_on = vec![name("db")];
    let mut world = World::new(vec![module(10, "db"), app, module(10, "other")]);
    world.operator = Operator::new(1, policy());
    world.ill.insert("db".to_owned());
    world
}

pub(super) fn policy() -> Policy {
    Policy {
        watches_releases: true,
        ..Policy::default()
    }
}

#[test]
fn a_module_waits_until_the_module_that_it_needs_is_healthy_and_no_other_waits() {
    let mut world = world().start();
    assert_eq!(world.take_log(), ["db sync", "other sync", "watch releases"]);
    assert_eq!(world.waits_for("app"), "module 'db', which it needs, to be healthy");
    world.on_its_way("db");
    assert_eq!(
        world.waits_for("app"),
        format!("module 'db', which it needs, to be healthy: {WEB}")
    );
    assert_eq!(world.health("db"), (Health::RollingOut, Some(WEB.to_owned())));
    assert!(world.take_log().is_empty());
    world.see("db", 1, Seen::Healthy);
    assert_eq!(world.take_log(), ["app sync"]);
    assert_eq!(world.health("db"), (Health::Healthy, None));
    assert!(world.told().is_empty());
}

#[test]
fn the_success_of_a_needed_module_is_enough_if_the_module_says_so() {
    let mut world = world();
    let app = &mut world.inventory.modules[1];
    app.health.until_ready.insert(name("db"));
    let mut world = world.start();
    assert!(world.take_log().contains(&"app sync".to_owned()));
}

#[test]
fn a_converge_goes_on_without_a_health_that_takes_long() {
    let mut world = world().start();
    world.on_its_way("db");
    world.take_log();
    assert!(!world.operator.answer(&StatusQuery).ready);
    world.pass(policy().patience);
    assert!(
        world.operator.answer(&StatusQuery).ready,
        "only the module that needs it waits"
    );
    let reason = format!("it needs module 'db', which is not healthy: {WEB}");
    assert_eq!(world.waits_for("app"), reason);
    world.see("db", 1, Seen::Healthy);
    assert_eq!(world.take_log(), ["app sync"]);
}

#[test]
fn a_module_that_gets_unhealthy_later_holds_up_nobody_who_is_installed() {
    let mut world = world().start();
    world.see("db", 1, Seen::Healthy);
    world.take_log();
    world.pass(SECOND * 60);
    world.on_its_way("db");
    world.edit(&[("app", Some("{a: 1}"))]);
    assert_eq!(world.take_log(), ["app sync"]);
    world.pass(SECOND * 301);
    assert_eq!(world.health("db").0, Health::Unhealthy);
    world.edit(&[("app", Some("{a: 2}"))]);
    assert_eq!(world.take_log(), ["app sync"]);
}

#[test]
fn objects_on_their_way_for_too_long_are_told_once_and_their_recovery_too() {
    let mut world = world().start();
    world.on_its_way("db");
    world.pass(SECOND * 299);
    assert_eq!(world.health("db").0, Health::RollingOut);
    world.pass(SECOND * 2);
    assert_eq!(world.health("db").0, Health::Unhealthy);
    world.see("db", 1, Seen::InProgress("Deployment web: another sentence".to_owned()));
    assert_eq!(world.told(), [format!("db: {WEB}")]);
    world.see("db", 1, Seen::Healthy);
    assert_eq!(world.health("db").0, Health::Healthy);
    assert_eq!(world.told().len(), 1, "a recovery is no news before it has lasted");
    world.pass(SECOND * 30);
    assert_eq!(world.told(), [format!("db: {WEB}"), "db is healthy".to_owned()]);
}

#[test]
fn a_failure_counts_once_it_has_lasted() {
    let mut world = world().start();
    world.see("db", 1, Seen::Failed("Job move: it has failed".to_owned()));
    world.pass(SECOND * 4);
    assert_eq!(world.health("db").0, Health::RollingOut);
    world.pass(SECOND * 2);
    assert_eq!(world.health("db").0, Health::Unhealthy);
    assert_eq!(world.told(), ["db: Job move: it has failed"]);
}

#[test]
fn a_module_that_flaps_gets_no_new_time_with_each_relapse() {
    let mut world = world().start();
    for _ in 0..20 {
        world.on_its_way("db");
        world.pass(SECOND * 10);
        world.see("db", 1, Seen::Healthy);
        world.pass(SECOND * 6);
    }
    world.on_its_way("db");
    assert_eq!(world.health("db").0, Health::Unhealthy);
    assert_eq!(world.told(), [format!("db: {WEB}")], "all its relapses are told once");
}

#[test]
fn a_health_that_nobody_tells_holds_up_nobody_for_long() {
    let mut world = world().start();
    world.take_log();
    world.pass(SECOND * 31);
    assert_eq!(world.health("db").0, Health::Unknown);
    assert_eq!(world.take_log(), ["app sync"]);
}

#[test]
fn a_report_about_an_older_revision_says_nothing_about_the_new_one() {
    let mut world = world().start();
    world.see("db", 0, Seen::Healthy);
    assert_eq!(world.health("db").0, Health::RollingOut);
    assert_eq!(world.waits_for("app"), "module 'db', which it needs, to be healthy");
}

#[test]
fn a_release_that_is_made_again_inherits_no_health() {
    let mut world = world().start();
    world.see("db", 1, Seen::Healthy);
    let (release, drift) = ("db".to_owned(), Some(event::Drift::Status(None)));
    world.handle(Event::ReleaseSeen(event::ReleaseSight { release, drift }));
    assert_eq!(world.health("db").0, Health::Unknown);
    world.edit(&[("db", Some("{a: 1}"))]);
    assert_eq!(
        world.health("db").0,
        Health::RollingOut,
        "revision 1 is another one now"
    );
}

#[test]
fn a_report_that_comes_before_the_files_of_its_module_is_kept() {
    let mut world = world();
    world.handle(sight("db", 1, Seen::Healthy));
    let mut world = world.start();
    assert!(world.take_log().contains(&"app sync".to_owned()));
}

/// The world in which the module `db` returns from an unhealthy revision, or keeps it.
fn returning(on_failure: OnFailure) -> World {
    let mut db = module(10, "db");
    db.health.on_failure = on_failure;
    let mut world = World::new(vec![db, module(10, "other")]);
    world.operator = Operator::new(1, policy());
    world.ill.insert("db".to_owned());
    world.start()
}

#[test]
fn a_module_runs_once_to_leave_an_unhealthy_revision() {
    let mut world = returning(OnFailure::Return);
    world.take_log();
    world.on_its_way("db");
    world.pass(SECOND * 299);
    assert!(world.take_log().is_empty());
    world.pass(SECOND * 2);
    assert_eq!(world.take_log(), ["db sync away from 1"]);
    world.pass(SECOND * 298);
    assert!(
        world.take_log().is_empty(),
        "in this world each run makes a revision, which gets its own time"
    );
    world.edit(&[("db", Some("{a: 1}"))]);
    world.see("db", 1, Seen::Healthy);
    world.pass(TIMEOUT);
    assert_eq!(world.take_log(), ["db sync"]);
}

#[test]
fn a_module_that_keeps_its_revision_does_not_run_for_its_health() {
    let mut world = returning(OnFailure::Keep);
    world.take_log();
    world.on_its_way("db");
    world.pass(TIMEOUT * 3);
    assert_eq!(world.health("db").0, Health::Unhealthy);
    assert!(world.take_log().is_empty());
}

#[test]
fn a_relapse_is_reported_for_a_while_with_its_revision() {
    let mut world = world().start();
    let ailment = |world: &World| {
        let pulse = world.operator.answer(&PulseQuery);
        let ailment = pulse.unhealthy.get("db").cloned();
        ailment.map(|ailment| (ailment.revision, ailment.sentence))
    };
    world.on_its_way("db");
    assert_eq!(ailment(&world), Some((1, WEB.to_owned())));
    world.see("db", 1, Seen::Healthy);
    assert_eq!(ailment(&world), None, "the way to health is no relapse");
    world.pass(SECOND * 40);
    world.on_its_way("db");
    assert_eq!(ailment(&world), Some((1, WEB.to_owned())));
    world.pass(SECOND);
    world.see("db", 1, Seen::Healthy);
    assert_eq!(world.health("db").0, Health::Healthy);
    assert_eq!(
        ailment(&world),
        Some((1, WEB.to_owned())),
        "nobody may have looked in that second"
    );
    world.pass(SECOND * 15);
    assert_eq!(ailment(&world), None);
}

#[test]
fn no_moment_is_quiet_while_a_module_is_on_its_way() {
    let mut world = world().start();
    let activity = |world: &World| world.operator.answer(&PulseQuery).activity;
    world.see("db", 1, Seen::Healthy);
    assert_eq!(activity(&world), Activity::Quiet);
    world.on_its_way("db");
    assert_eq!(activity(&world), Activity::Busy);
    world.pass(TIMEOUT);
    assert_eq!(
        activity(&world),
        Activity::Quiet,
        "an unhealthy module may stay so for ever"
    );
}
