//! Modules whose objects people maintain.

use super::*;
use crate::values::section::Maintenance;

const KEY: &str = "oneMaintenance";
const ON: Option<&str> = Some("NoResourceReconciliation");

/// The maintenance that the open release jobs were started with.
fn told(world: &World) -> Vec<Maintenance> {
    let told = world.pending.iter().filter_map(|job| match job {
        Job::SyncRelease { maintenance, .. } => Some(*maintenance),
        _ => None,
    });
    told.collect()
}

#[test]
fn the_key_runs_the_module_which_tells_its_release() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")])
        .hook("one", "h.sh", "beforeHelm: 1\nafterHelm: 1")
        .start();
    world.take_log();
    let run = ["one/h.sh beforeHelm", "one sync", "one/h.sh afterHelm"];
    for (text, expected) in [
        (ON, Maintenance::NoResourceReconciliation),
        (Some(""), Maintenance::Managed),
        (ON, Maintenance::NoResourceReconciliation),
        (None, Maintenance::Managed),
    ] {
        world.open.insert("one sync".to_owned());
        world.edit(&[(KEY, text)]);
        assert_eq!(told(&world), [expected], "{text:?}");
        world.close("one sync");
        assert_eq!(world.take_log(), run);
    }
    let applied = |notice: &&Notice| matches!(notice, Notice::ConfigApplied { keys } if *keys == [KEY]);
    assert_eq!(world.notices.iter().filter(applied).count(), 4);
}

#[test]
fn a_key_that_is_broken_changes_nothing_and_a_section_that_goes_with_it_counts() {
    let mut world = World::new(vec![module(10, "one")]).start();
    world.edit(&[(KEY, ON), ("one", Some("size: 1"))]);
    world.take_log();
    world.edit(&[(KEY, Some("Sometimes"))]);
    assert_eq!(world.take_log(), [""; 0]);
    assert!(world.status().config_problems.contains_key(KEY));
    world.open.insert("one sync".to_owned());
    world.edit(&[(KEY, None), ("one", None)]);
    assert_eq!(told(&world), [Maintenance::Managed]);
}

#[test]
fn it_stays_while_the_module_is_off_and_when_the_config_map_is_gone() {
    let mut world = World::new(vec![module(10, "one")]).start();
    world.edit(&[(KEY, ON)]);
    world.edit(&[("oneEnabled", Some("false"))]);
    world.open.insert("one sync".to_owned());
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(told(&world), [Maintenance::NoResourceReconciliation]);
    world.close("one sync");
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    let modules = world.operator.answer(&ModulesQuery);
    assert!(modules[0].in_maintenance);
}
