//! A version on trial: the work that it leaves undone, that goes on when the trial is passed, and that is undone when it
//! is not.

use channel_core::trial::record::Ruling;

use super::event::{Settled, TrialStage};
use super::policy::OnTrial;
use super::query::HeldBy;
use super::*;

impl World {
    /// A start on trial.
    fn on_trial(mut self, policy: Policy) -> Self {
        let policy = Policy {
            on_trial: OnTrial::Yes,
            ..policy
        };
        self.operator = Operator::new(1, policy);
        self.start()
    }

    pub(super) fn note(&mut self, key: &str, text: &str, on_trial: OnTrial) {
        if on_trial == OnTrial::Yes {
            self.trial_sections
                .note(key, self.data.get(key).map(String::as_str), text);
        }
    }

    pub(super) fn settle(&mut self, ruling: Ruling) -> Settled {
        let sections = std::mem::take(&mut self.trial_sections);
        if ruling == Ruling::Passed {
            return Settled::default();
        }
        let back = sections.give_back(&self.data);
        for (key, text) in &back.put_back {
            match text {
                Some(text) => self.data.insert(key.clone(), text.clone()),
                None => self.data.remove(key),
            };
        }
        self.version += 1;
        Settled {
            put_back: back.put_back.into_keys().collect(),
            edited: back.left.into_iter().collect(),
            read: Some(ConfigRead::Present {
                version: self.version,
                data: self.data.clone(),
                provenance: self.provenance.clone(),
            }),
        }
    }
}

fn ended(ruling: Ruling) -> Event {
    Event::TrialSeen(TrialStage::Ended(ruling))
}

fn with_crds(order: u32, text: &str) -> Module {
    Module {
        has_crds: true,
        ..module(order, text)
    }
}

fn ours(name: &str) -> ReleaseSummary {
    ReleaseSummary {
        name: name.to_owned(),
        ours: true,
        config: None,
    }
}

/// A module that no source names and a module that is switched off, both with releases; a module that runs; and a release
/// without a module.
fn with_removals() -> World {
    let silent = Module {
        enabled: None,
        ..module(10, "silent")
    };
    let hooks = "beforeDeleteHelm: 1\nafterDeleteHelm: 1";
    let mut world = World::new(vec![silent, module(20, "off"), module(30, "one")]).hook("off", "h.sh", hooks);
    for name in ["silent", "off", "gone"] {
        world.releases.push(ours(name));
    }
    world.data.insert("offEnabled".to_owned(), "false".to_owned());
    world
}

#[test]
fn nothing_is_removed_on_trial_and_all_of_it_when_that_is_passed() {
    let mut world = with_removals().on_trial(Policy::default());
    assert_eq!(world.take_log(), ["one sync"]);
    assert!(world.status().ready);
    let held = world.status().held;
    let names: Vec<_> = held.iter().map(|held| (held.release.as_str(), held.by)).collect();
    assert_eq!(
        names,
        [
            ("off", HeldBy::Trial),
            ("silent", HeldBy::Trial),
            ("gone", HeldBy::Trial)
        ]
    );
    for module in ["off", "silent"] {
        assert_eq!(world.state(module), "Held");
        assert!(
            world.waits_for(module).starts_with("the end of a trial"),
            "{}",
            world.waits_for(module)
        );
    }
    // A person's confirmation ends the hold of the brake, but not that of the trial.
    let all = ["off", "silent", "gone"].map(str::to_owned);
    world.handle(Event::PurgeConfirmed(all.into()));
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["one sync"]);
    for ruling in [Ruling::Failed, Ruling::Unclear, Ruling::Void] {
        world.handle(ended(ruling));
        assert_eq!(world.take_log(), [""; 0], "{ruling:?}");
    }
    world.handle(ended(Ruling::Passed));
    let mut log = world.take_log();
    log.sort();
    let expected = [
        "gone delete",
        "off delete",
        "off/h.sh afterDeleteHelm",
        "off/h.sh beforeDeleteHelm",
        "one sync",
        "silent delete",
    ];
    assert_eq!(log, expected);
    assert_eq!(world.status().held, []);
}

#[test]
fn removals_that_the_brake_holds_wait_for_a_person_after_the_trial_too() {
    let names = ["alpha", "beta", "gamma", "delta"];
    let silent = |name: &str| Module {
        enabled: None,
        ..module(10, name)
    };
    let mut world = World::new(names.into_iter().map(silent).chain([module(30, "one")]).collect());
    world.releases = names.into_iter().map(ours).collect();
    let mut world = world.on_trial(Policy::default());
    assert!(world.status().held.iter().all(|held| held.by == HeldBy::Brake));
    world.handle(Event::PurgeConfirmed(["alpha".to_owned()].into()));
    let by_trial = |world: &World| {
        let held = world.status().held.into_iter();
        let held = held.filter(|held| held.by == HeldBy::Trial);
        held.map(|held| held.release).collect::<Vec<_>>()
    };
    assert_eq!(by_trial(&world), ["alpha"]);
    world.take_log();
    world.handle(ended(Ruling::Passed));
    let deleted = |line: &&String| line.ends_with("delete");
    let log = world.take_log();
    assert_eq!(log.iter().filter(deleted).collect::<Vec<_>>(), ["alpha delete"]);
}

#[test]
fn a_crd_that_exists_is_not_changed_on_trial_and_holds_its_module_and_those_that_need_it() {
    let needy = Module {
        depends_on: vec![name("other")],
        ..module(30, "needy")
    };
    let mut world = World::new(vec![
        with_crds(10, "new"),
        with_crds(20, "other"),
        needy,
        module(40, "one"),
    ]);
    world.other_crds.insert(name("other"));
    let mut world = world.on_trial(Policy::default());
    assert_eq!(world.take_log(), ["crds of new, other", "new sync", "one sync"]);
    assert!(world.pulse().converged);
    assert_eq!(world.failing(), [], "who waits for the end of a trial does not fail");
    let reason = "this version of the operator is on trial, and does not change before it has passed: CRD of other";
    assert_eq!(world.waits_for("other"), reason);
    assert_eq!(world.state("other"), "Held");
    assert_eq!(
        world.waits_for("needy"),
        format!("it needs module 'other', which is held: {reason}")
    );
    assert_eq!(world.status().held_by_trial, [format!("module 'other': {reason}")]);
    // Neither an edit nor the success of other modules makes it run.
    world.edit(&[("other", Some("a: 1"))]);
    world.edit(&[("one", Some("a: 1"))]);
    assert_eq!(world.take_log(), ["one sync"]);
    world.handle(ended(Ruling::Passed));
    assert_eq!(
        world.take_log(),
        ["crds of other", "new sync", "other sync", "needy sync", "one sync"]
    );
    assert_eq!(world.status().held_by_trial, [""; 0]);
}

#[test]
fn a_trial_that_is_passed_while_crds_are_looked_at_holds_nobody() {
    let mut world = World::new(vec![with_crds(10, "other")]);
    world.other_crds.insert(name("other"));
    world.open.insert("crds of other".to_owned());
    let mut world = world.on_trial(Policy::default());
    world.handle(ended(Ruling::Passed));
    world.close("crds of other");
    assert_eq!(world.take_log(), ["crds of other", "crds of other", "other sync"]);
    assert_eq!(world.state("other"), "Ready");
}

#[test]
fn a_module_that_comes_later_is_held_by_its_own_run() {
    let mut world = World::new(vec![with_crds(10, "other"), module(20, "one")]);
    world.other_crds.insert(name("other"));
    // The job of the converge failed as a whole, so nothing is known about the single modules.
    world.failing.insert("crds of other".to_owned(), 1);
    let mut world = world.on_trial(Policy::default());
    world.sleep();
    assert_eq!(world.take_log(), ["crds of other fails", "crds of other", "one sync"]);
    assert_eq!((world.state("other").as_str(), world.failing()), ("Held", Vec::new()));
    world.handle(ended(Ruling::Passed));
    assert_eq!(world.state("other"), "Ready");
}

#[test]
fn in_strict_order_the_converge_ends_although_all_behind_wait_for_the_trial() {
    let mut world = World::new(vec![
        module(10, "one"),
        with_crds(20, "other"),
        module(30, "two"),
        module(40, "three"),
    ]);
    world.other_crds.insert(name("other"));
    let policy = Policy {
        strict_order: true,
        ..Policy::default()
    };
    let mut world = world.on_trial(policy);
    assert_eq!(world.take_log(), ["crds of other", "one sync"]);
    assert!(world.pulse().converged);
    let reason = "in strict order it comes after module 'other', which waits for the end of a trial";
    assert_eq!(
        (world.waits_for("two"), world.waits_for("three")),
        (reason.to_owned(), reason.to_owned())
    );
    world.handle(ended(Ruling::Passed));
    assert_eq!(
        world.take_log(),
        ["crds of other", "one sync", "other sync", "two sync", "three sync"]
    );
}

#[test]
fn what_stood_by_learns_of_the_verdict_before_it_leads() {
    let mut world = with_removals();
    let policy = Policy {
        leadership: Leadership::Elected,
        on_trial: OnTrial::Yes,
        ..Policy::default()
    };
    world.operator = Operator::new(1, policy);
    let mut world = world.start();
    world.handle(ended(Ruling::Passed));
    world.handle(Event::Elected);
    let log = world.take_log();
    assert!(log.contains(&"off delete".to_owned()), "{log:?}");
}

/// A world on trial with a hook before the release that patches its config values.
fn saving() -> World {
    let wish = json!([{"op": "add", "path": "/one/wish", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &json!([]), &wish);
    world.data.insert("one".to_owned(), "a: 1\n".to_owned());
    world.on_trial(Policy::default())
}

/// This world with a process of the old version, whose hooks patch nothing.
fn old_version(mut world: World) -> World {
    world.patches.clear();
    world.take_log();
    world.operator = Operator::new(2, Policy::default());
    world
}

#[test]
fn sections_of_hooks_are_put_back_before_the_old_version_converges() {
    let world = saving();
    assert_eq!(world.data["one"], "a: 1\nwish: 1\n");
    assert_eq!(world.pulse().noted, ["one"]);
    let mut world = old_version(world);
    world.handle(ended(Ruling::Failed));
    let mut world = world.start();
    assert_eq!(world.take_log(), ["settle Failed", "one/h.sh beforeHelm", "one sync"]);
    assert_eq!(world.data["one"], "a: 1\n");
    let put_back = |notice: &&Notice| matches!(notice, Notice::SectionsPutBack { keys, .. } if keys == &["one"]);
    assert_eq!(world.notices.iter().filter(put_back).count(), 1);
    assert_eq!(world.pulse().noted, [""; 0]);
    world.handle(ended(Ruling::Failed));
    assert_eq!(world.take_log(), [""; 0], "it happens once");
}

#[test]
fn the_verdict_may_come_when_the_old_version_leads_already() {
    let mut world = old_version(saving()).start();
    assert_eq!(world.take_log(), ["one/h.sh beforeHelm", "one sync"]);
    assert_eq!(
        world.status().waiting,
        ["the verdict on the trial in which hooks saved one in the ConfigMap"]
    );
    // A ruling on an earlier trial changes nothing.
    world.handle(Event::TrialSeen(TrialStage::Open));
    world.handle(ended(Ruling::Unclear));
    assert_eq!(world.take_log(), ["settle Unclear", "one/h.sh beforeHelm", "one sync"]);
    assert_eq!(
        (world.data["one"].as_str(), world.status().waiting),
        ("a: 1\n", Vec::new())
    );
}

#[test]
fn sections_that_cannot_be_put_back_hold_up_nobody_and_are_tried_again() {
    let mut world = old_version(saving());
    // The first reading makes the chores retry at once that wait for the API server.
    world.failing.insert("settle Void".to_owned(), 2);
    world.handle(ended(Ruling::Void));
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        [
            "settle Void fails",
            "settle Void fails",
            "one/h.sh beforeHelm",
            "one sync"
        ]
    );
    world.sleep();
    assert_eq!(world.take_log(), ["settle Void", "one/h.sh beforeHelm", "one sync"]);
    assert_eq!(world.data["one"], "a: 1\n");
}

#[test]
fn after_a_trial_that_is_passed_its_sections_stay_and_the_note_goes_when_no_write_is_on_its_way() {
    let mut world = saving();
    world.take_log();
    world.open.insert("save one".to_owned());
    let wish = json!([{"op": "add", "path": "/one/wish", "value": 2}]);
    let mut world = world.patching("one/h.sh beforeHelm", &json!([]), &wish);
    world.edit(&[("global", Some("color: red"))]);
    world.handle(ended(Ruling::Passed));
    assert_eq!(world.take_log(), ["one/h.sh beforeHelm"]);
    world.close("save one");
    let log = world.take_log();
    assert!(log.contains(&"settle Passed".to_owned()), "{log:?}");
    assert!(world.trial_sections.is_empty());
    assert_eq!(world.data["one"], "a: 1\nwish: 2\n");
}
