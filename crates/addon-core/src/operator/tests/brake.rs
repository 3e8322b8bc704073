//! The brake: removals by silence, whose modules no source names any more or whose directories are gone, are held if
//! there are too many at once, until the sources are back or a person confirms them.

use super::super::effect::HeldFor;
use super::*;

const MINUTE: Duration = Duration::from_mins(1);

/// A world with `modules` modules that only the ConfigMap switches on and that have releases, and with `orphans` releases
/// without a module.
fn world(modules: usize, orphans: usize) -> World {
    let names = |letter: &'static str, count| (0..count).map(move |number| format!("{letter}{number}"));
    let units = names("m", modules).map(|name| Module {
        enabled: None,
        ..module(10, &name)
    });
    let mut world = World::new(units.collect());
    let releases = names("m", modules).chain(names("gone", orphans));
    world.releases = releases
        .map(|name| ReleaseSummary {
            name,
            ours: true,
            config: None,
        })
        .collect();
    world.data = names("m", modules)
        .map(|name| (format!("{name}Enabled"), "true".to_owned()))
        .collect();
    world
}

impl World {
    /// Sets the flags of these modules in the ConfigMap; `None` removes them.
    fn say(&mut self, modules: impl IntoIterator<Item = usize>, flag: Option<&str>) {
        let keys: Vec<String> = modules.into_iter().map(|number| format!("m{number}Enabled")).collect();
        let edits: Vec<(&str, Option<&str>)> = keys.iter().map(|key| (key.as_str(), flag)).collect();
        self.edit(&edits);
    }

    fn confirm(&mut self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.handle(Event::PurgeConfirmed(names));
    }

    fn held(&self) -> Vec<String> {
        self.status().held.into_iter().map(|held| held.release).collect()
    }

    /// The releases that were uninstalled since the last look.
    fn deleted(&mut self) -> Vec<String> {
        let log = self.take_log().into_iter();
        let mut deleted: Vec<String> = log
            .filter_map(|line| line.strip_suffix(" delete").map(str::to_owned))
            .collect();
        deleted.sort();
        deleted
    }

    /// The notices of held removals: how many releases each had, and the reason.
    fn told_held(&self) -> Vec<(usize, HeldFor)> {
        let held = self.notices.iter().filter_map(|notice| match notice {
            Notice::PurgeHeld { releases, reason } => Some((releases.len(), *reason)),
            _ => None,
        });
        held.collect()
    }
}

#[test]
fn too_much_that_nobody_names_any_more_is_held_until_a_person_names_it() {
    let mut world = world(8, 0).start();
    world.say(0..8, None);
    assert_eq!(world.deleted(), Vec::<String>::new());
    assert_eq!(world.held().len(), 8);
    assert_eq!(world.told_held(), [(8, HeldFor::Confirmation { goes: 8, of: 8 })]);
    assert_eq!(world.state("m3"), "Held");
    assert_eq!(
        world.waits_for("m3"),
        "a source that names it, or a person who confirms its removal: 8 of our 8 releases would go within ten minutes, \
         and nobody said so"
    );
    assert!(
        world.status().ready && world.status().converge_tasks == 0,
        "{:?}",
        world.status()
    );

    world.confirm(&["m9", "m1", "m2"]);
    assert_eq!(world.deleted(), ["m1", "m2"], "these and no others");
    assert_eq!(world.held().len(), 6);
    world.confirm(&["m1"]);
    assert_eq!(world.deleted(), Vec::<String>::new());
    world.confirm(&["m0", "m3", "m4", "m5", "m6", "m7"]);
    assert_eq!(world.deleted().len(), 6);
    assert_eq!(world.held(), Vec::<String>::new());
    assert_eq!(world.told_held().len(), 1, "once");
}

#[test]
fn what_is_held_is_on_again_when_its_sources_are_back_and_may_go_when_somebody_says_so() {
    let mut world = world(8, 0).start();
    world.say(0..8, None);
    world.take_log();
    // Even if the modules come back piece by piece, the missing ones stay held.
    for number in 0..6 {
        world.say([number], Some("true"));
        assert_eq!(world.deleted(), Vec::<String>::new(), "after {number} came back");
    }
    assert_eq!(world.held(), ["m6", "m7"]);
    assert_eq!(world.state("m5"), "Ready");
    world.say([6], Some("false"));
    assert_eq!(world.deleted(), ["m6"]);
    world.say([7], Some("true"));
    assert_eq!((world.held(), world.state("m7")), (Vec::new(), "Ready".to_owned()));
    // Nothing is held any more, so that the next removals are counted anew.
    world.say([7], None);
    assert_eq!(world.deleted(), ["m7"]);
}

#[test]
fn what_somebody_switches_off_never_passes_the_brake() {
    let mut world = world(8, 0).start();
    world.take_log();
    world.say(0..8, Some("false"));
    assert_eq!(world.deleted().len(), 8);
    assert_eq!(world.told_held(), []);
}

#[test]
fn the_brake_counts_what_went_within_ten_minutes() {
    let mut world = world(9, 0).start();
    world.take_log();
    world.say([0, 1], None);
    assert_eq!(world.deleted(), ["m0", "m1"]);
    world.tick = world.tick + 9 * MINUTE;
    world.say([2], None);
    assert_eq!(world.deleted(), Vec::<String>::new());
    assert_eq!(world.told_held(), [(1, HeldFor::Confirmation { goes: 3, of: 9 })]);
    world.tick = world.tick + 9 * MINUTE;
    world.say([3], None);
    assert_eq!(world.deleted(), ["m3"], "the two are long gone, and two are few");
    assert_eq!(world.held(), ["m2"], "what is held is not let go by time");
}

#[test]
fn less_than_a_third_goes() {
    let mut world = world(10, 0).start();
    world.take_log();
    world.say([0, 1, 2], None);
    assert_eq!(world.deleted(), ["m0", "m1", "m2"]);
    world.say([3], None);
    assert_eq!((world.deleted(), world.held()), (Vec::new(), vec!["m3".to_owned()]));
}

#[test]
fn a_confirmed_removal_does_not_count() {
    let mut world = world(12, 0).start();
    world.say(0..6, None);
    world.take_log();
    world.confirm(&["m0", "m1", "m2", "m3", "m4", "m5"]);
    assert_eq!(world.deleted().len(), 6);
    world.say([6], None);
    assert_eq!(world.deleted(), ["m6"]);
}

#[test]
fn a_confirmation_ends_when_its_module_is_named_again() {
    let mut world = world(4, 0).start();
    world.say(0..4, None);
    world.failing.insert("m0 delete".to_owned(), 1);
    world.confirm(&["m0"]);
    world.say(0..4, Some("true"));
    assert_eq!(world.state("m0"), "Ready");
    world.take_log();
    world.say(0..4, None);
    assert_eq!((world.deleted(), world.held().len()), (Vec::new(), 4));
}

#[test]
fn a_start_without_the_source_holds_what_it_had_switched_on_and_runs_the_others() {
    let mut world = world(8, 0);
    world.data.clear();
    world.inventory.modules.push(module(20, "fixed"));
    let mut world = world.start();
    assert_eq!(world.take_log(), ["fixed sync"]);
    assert_eq!(world.held().len(), 8);
    assert_eq!(world.told_held(), [(8, HeldFor::Confirmation { goes: 8, of: 8 })]);
    assert!(world.status().ready);
    world.say(0..8, Some("true"));
    assert_eq!((world.deleted(), world.held()), (Vec::new(), Vec::new()));
    assert_eq!(world.state("m0"), "Ready");
}

#[test]
fn half_of_the_directories_missing_is_held_until_it_is_confirmed() {
    let mut world = world(4, 4).start();
    assert_eq!(world.deleted(), Vec::<String>::new());
    assert_eq!(world.held(), ["gone0", "gone1", "gone2", "gone3"]);
    assert_eq!(world.told_held(), [(4, HeldFor::Confirmation { goes: 4, of: 8 })]);
    world.confirm(&["gone1", "gone3"]);
    assert_eq!(world.deleted(), ["gone1", "gone3"]);
    assert_eq!(world.held(), ["gone0", "gone2"]);
}

#[test]
fn silence_and_absence_share_one_brake() {
    let mut world = world(6, 2);
    world
        .data
        .retain(|key, _| !["m0Enabled", "m1Enabled"].contains(&key.as_str()));
    let mut world = world.start();
    assert_eq!(world.deleted(), Vec::<String>::new());
    assert_eq!(world.held(), ["gone0", "gone1", "m0", "m1"]);
    world.confirm(&["gone0", "gone1", "m0", "m1"]);
    assert_eq!(world.deleted(), ["gone0", "gone1", "m0", "m1"]);
}

#[test]
fn what_was_confirmed_before_the_first_converge_ended_goes_after_it() {
    let mut world = world(2, 3);
    world.open.insert("m0 sync".to_owned());
    let mut world = world.start();
    world.confirm(&["gone0", "gone1", "gone2"]);
    assert_eq!((world.deleted(), world.held()), (Vec::new(), Vec::new()));
    world.close("m0 sync");
    assert_eq!(world.deleted(), ["gone0", "gone1", "gone2"]);
}

#[test]
fn what_is_in_no_directory_that_could_be_read_is_held_for_that() {
    let mut world = world(2, 1);
    world.inventory.complete = false;
    let world = world.start();
    assert_eq!(world.held(), ["gone0"]);
    assert_eq!(world.told_held(), [(1, HeldFor::Directories)]);
}

#[test]
fn those_that_a_hook_may_still_want_are_not_counted() {
    let mut world = world(6, 1).hook("", "g.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: side");
    world.data.clear();
    let mut world = world.start();
    assert_eq!(
        (world.deleted(), world.held()),
        (vec!["gone0".to_owned()], Vec::new()),
        "one is few"
    );
    world.sleep();
    assert_eq!(world.deleted(), Vec::<String>::new(), "the hook wants none of them");
    assert_eq!(world.told_held(), [(6, HeldFor::Confirmation { goes: 7, of: 7 })]);
}
