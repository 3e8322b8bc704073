//! Values files that existed when the releases were made and are missing now; and the second reading of the directories
//! before a removal by silence.

use super::*;
use crate::module::outline::ValuesFile;

const FILE: &str = "modules/values.yaml";

/// The outline of a common values file.
#[expect(clippy::unnecessary_wraps, reason = "it is handed on as it is")]
fn says(flags: &[(&str, bool)], sections: &[&str]) -> Option<ValuesFile> {
    Some(ValuesFile {
        flags: flags.iter().map(|(module, flag)| (name(module), *flag)).collect(),
        sections: sections.iter().map(ToString::to_string).collect(),
    })
}

fn ours(release: &str) -> ReleaseSummary {
    ReleaseSummary {
        name: release.to_owned(),
        ours: true,
        config: None,
    }
}

/// Three modules with releases. Their files have these flags; the values file is like this now, and was like that in the
/// state Secret.
#[expect(
    clippy::option_option,
    reason = "whether it is known, and whether the file was there"
)]
fn world(flag: Option<bool>, now: Option<ValuesFile>, before: Option<Option<ValuesFile>>) -> World {
    let found = |order, name| Module {
        enabled: flag,
        ..module(order, name)
    };
    let mut world = World::new(vec![found(10, "one"), found(20, "two"), found(30, "three")]);
    world.releases = ["one", "two", "three"].map(ours).into();
    world.inventory.values_files.insert(FILE.to_owned(), now);
    world.values_files = before.map(|said| [(FILE.to_owned(), said)].into());
    world
}

fn on(names: [&str; 3]) -> Vec<(&str, bool)> {
    names.map(|name| (name, true)).into()
}

const ALL: [&str; 3] = ["one", "two", "three"];

fn deletes(world: &World) -> Vec<&String> {
    world.log.iter().filter(|line| line.contains("delete")).collect()
}

#[test]
fn what_a_lost_values_file_switched_on_stays_on_and_is_told_by_name() {
    let mut world = world(None, None, Some(says(&on(ALL), &[]))).start();
    assert_eq!(world.take_log(), ["one sync", "two sync", "three sync"]);
    let told = |notice: &&Notice| matches!(notice, Notice::ValuesFileLost { file, modules } if file == FILE && modules.len() == 3);
    assert_eq!(world.notices.iter().filter(told).count(), 1);
    let status = world.operator.answer(&StatusQuery);
    assert!(
        status.waiting.iter().any(|wait| wait.contains(FILE)),
        "{:?}",
        status.waiting
    );
    // The next life still knows the outline.
    assert_eq!(world.values_files.as_ref().unwrap()[FILE], says(&on(ALL), &[]));
    // A person removes the module by an explicit flag.
    world.edit(&[("twoEnabled", Some("false"))]);
    assert_eq!(deletes(&world), ["two delete"]);
}

#[test]
fn what_a_lost_values_file_held_values_for_is_neither_run_nor_removed_without_them() {
    let mut world = world(None, None, Some(says(&on(ALL), &["two"]))).start();
    assert_eq!(world.take_log(), ["one sync", "three sync"]);
    let blocked = |notice: &&Notice| {
        matches!(notice, Notice::ModuleBlocked { module, failure }
            if module.as_str() == "two" && failure.report.contains(FILE))
    };
    assert_eq!(world.notices.iter().filter(blocked).count(), 1);
    world.edit(&[("twoEnabled", Some("false"))]);
    assert_eq!(deletes(&world), ["two delete"]);
}

#[test]
fn without_global_values_nothing_is_run() {
    let mut world = world(Some(true), None, Some(says(&[], &["global"]))).start();
    assert_eq!(world.take_log(), [""; 0]);
}

#[test]
fn a_missing_values_file_of_which_nothing_is_known_holds_what_nobody_names() {
    let mut world = world(None, None, None).start();
    assert_eq!(deletes(&world), [""; 0]);
    assert_eq!(world.values_files, None, "it may have been there");
    let modules = world.operator.answer(&ModulesQuery);
    assert!(modules[0].waits_for.contains(FILE), "{}", modules[0].waits_for);
    world.edit(&[
        ("oneEnabled", Some("false")),
        ("twoEnabled", Some("true")),
        ("threeEnabled", Some("true")),
    ]);
    assert_eq!(deletes(&world), ["one delete"]);
}

#[test]
fn where_there_never_was_a_values_file_silence_of_the_config_map_counts_as_before() {
    let mut world = world(None, None, Some(None));
    world.data.insert("threeEnabled".to_owned(), "true".to_owned());
    let mut world = world.start();
    assert_eq!(deletes(&world), ["two delete", "one delete"]);
    assert_eq!(world.values_files.take().unwrap()[FILE], None);
}

#[test]
fn a_file_that_is_there_is_remembered_once_and_counts_as_before() {
    let mut world = world(Some(true), says(&on(ALL), &[]), None).start();
    assert_eq!(world.values_files.as_ref().unwrap()[FILE], says(&on(ALL), &[]));
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(deletes(&world), ["one delete"]);
}

#[test]
fn a_file_whose_directory_is_not_looked_at_any_more_leaves_what_others_say() {
    let mut world = world(Some(true), says(&on(ALL), &["one"]), None);
    let old = says(&[("one", false)], &["one"]);
    world.values_files = Some([("old/values.yaml".to_owned(), old)].into());
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one sync", "two sync", "three sync"]);
    assert_eq!(world.values_files.take().unwrap().len(), 1);
}

#[test]
fn what_nobody_names_is_removed_once_the_directories_were_found_the_same_twice() {
    let mut world = world(None, says(&[], &[]), None);
    world.releases.push(ours("gone"));
    // With so many modules, three removals pass the brake.
    for other in ["a", "b", "c", "d", "e", "f"] {
        world.inventory.modules.push(module(40, other));
        world.releases.push(ours(other));
    }
    world.data.insert("threeEnabled".to_owned(), "true".to_owned());
    // As if a copy were under way: one module gets its flag, and the module of a release appears.
    let mut outline = world.inventory.outline();
    outline.modules.insert(name("one"), Some(true));
    outline.modules.insert(name("gone"), None);
    world.lies = Some(outline);
    let mut world = world.start();
    assert_eq!(deletes(&world), [""; 0]);
    let told = |notice: &&Notice| {
        matches!(notice, Notice::StepFailed { failure, .. }
            if failure.report.contains("changed since they were read last: the flag of module 'one'"))
    };
    assert_eq!(world.notices.iter().filter(told).count(), 1, "{:?}", world.notices);
    world.sleep();
    assert_eq!(deletes(&world), ["two delete"], "what has come, or speaks, stays");
    world.handle(Event::PurgeConfirmed(BTreeSet::from(["gone".to_owned()])));
    assert_eq!(
        deletes(&world),
        ["two delete", "gone delete"],
        "unless a person wants it gone"
    );
}

#[test]
fn a_second_look_that_failed_is_given_up_when_nothing_is_to_be_removed_any_more() {
    let mut world = world(None, says(&[], &[]), None);
    let outline = |world: &World, flag| {
        let mut outline = world.inventory.outline();
        outline.modules.insert(name("three"), Some(flag));
        Some(outline)
    };
    world.data = [("oneEnabled", "true"), ("twoEnabled", "true")]
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .into();
    world.lies = outline(&world, true);
    let mut world = world.start();
    let (_, waiting) = world.operator.poll_timeout().unwrap();
    assert!(
        matches!(&waiting, Waiting::Step(step) if step.contains("directories")),
        "{waiting:?}"
    );
    world.edit(&[("threeEnabled", Some("true"))]);
    assert_eq!(world.operator.poll_timeout(), None);
    // If a module is silent again, the directories are read again.
    world.lies = outline(&world, false);
    world.edit(&[("threeEnabled", None)]);
    let (_, waiting) = world.operator.poll_timeout().unwrap();
    assert!(matches!(&waiting, Waiting::Step(_)), "{waiting:?}");
    assert_eq!(deletes(&world), [""; 0]);
}
