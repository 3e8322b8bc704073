//! A lost ConfigMap, a ConfigMap that a program made in its place, and the decisions of people about both.

use super::*;
use crate::module::{Edition, Module, Origin};

/// Ends this life of the operator and begins the next. The cluster stays as it is; the caller may remove more of it before.
fn next_life(world: &mut World) {
    world.releases = world
        .traces
        .iter()
        .map(|(name, trace)| ReleaseSummary {
            name: name.to_string(),
            ours: true,
            config: Some(*trace),
        })
        .collect();
    world.operator = Operator::new(2, Policy::default());
    world.pending.clear();
    world.notices.clear();
    world.take_log();
}

fn start_without(world: &mut World) {
    world.data.clear();
    world.provenance = Provenance::default();
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
}

fn silent(order: u32, text: &str) -> Module {
    Module {
        enabled: None,
        ..module(order, text)
    }
}

/// Four modules with releases: two are switched on by files, one of these has a section, and two are switched on by the
/// ConfigMap.
fn released() -> World {
    let modules = vec![
        module(10, "plain"),
        module(20, "sized"),
        silent(30, "flagged"),
        silent(40, "both"),
    ];
    let mut world = World::new(modules);
    world.data = [
        ("sized", "size: 2"),
        ("flaggedEnabled", "true"),
        ("both", "size: 3"),
        ("bothEnabled", "true"),
    ]
    .map(|(key, text)| (key.to_owned(), text.to_owned()))
    .into();
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        ["plain sync", "sized sync", "flagged sync", "both sync"]
    );
    world
}

fn told(world: &World, wanted: impl Fn(&Notice) -> bool) -> usize {
    world.notices.iter().filter(|notice| wanted(notice)).count()
}

#[test]
fn with_the_config_map_and_the_last_good_sections_lost_nothing_is_upgraded_or_removed() {
    let mut world = released();
    next_life(&mut world);
    world.last_good = None;
    start_without(&mut world);
    assert_eq!(
        world.take_log(),
        ["plain sync"],
        "whose release was made without a section"
    );
    assert_eq!(world.status().config_lost, ["both", "flagged", "sized"]);
    assert!(world.waits_for("sized").contains("its configuration is lost"));
    assert!(world.waits_for("flagged").contains("its configuration is lost"));
    assert_eq!(
        told(
            &world,
            |notice| matches!(notice, Notice::ConfigLost { releases } if releases.len() == 3)
        ),
        1
    );
    assert_eq!(
        world.last_good, None,
        "or the next life would take nothing for what was good"
    );

    // The modules stay held in the next life, too, and a ConfigMap that a program makes does not free them.
    next_life(&mut world);
    start_without(&mut world);
    world.data = BTreeMap::from([("global".to_owned(), "{}".to_owned())]);
    world.provenance.made_with = Some(digest(&world.data));
    world.edit(&[]);
    assert_eq!(world.take_log(), ["plain sync"]);

    // A ConfigMap that people make frees them, even an empty one.
    world.data.clear();
    world.provenance = Provenance::default();
    world.edit(&[
        ("sized", Some("size: 2")),
        ("flaggedEnabled", Some("true")),
        ("bothEnabled", Some("false")),
    ]);
    assert_eq!(
        world.take_log(),
        ["both delete", "plain sync", "sized sync", "flagged sync"]
    );
    assert_eq!(world.status().config_lost, [""; 0]);
    assert_eq!(told(&world, |notice| matches!(notice, Notice::ConfigLossAnswered)), 1);
}

#[test]
fn a_lost_module_does_not_run_because_what_it_needs_has() {
    let mut needy = module(20, "needy");
    needy.depends_on = vec![name("plain")];
    let mut world = World::new(vec![module(10, "plain"), needy]);
    world.data.insert("needy".to_owned(), "size: 2".to_owned());
    let mut world = world.start();
    next_life(&mut world);
    world.last_good = None;
    world.failing.insert("plain sync".to_owned(), 1);
    start_without(&mut world);
    world.sleep();
    assert_eq!(world.take_log(), ["plain sync fails", "plain sync"]);
    world.handle(Event::LossConfirmed);
    assert_eq!(world.take_log(), ["plain sync", "needy sync"]);
}

#[test]
fn an_empty_config_map_that_people_make_is_an_answer() {
    let mut world = released();
    next_life(&mut world);
    world.last_good = None;
    start_without(&mut world);
    world.take_log();
    world.edit(&[]);
    assert_eq!(
        world.take_log(),
        [
            "plain sync",
            "sized sync",
            "both delete",
            "flagged delete",
            "plain sync",
            "sized sync",
        ]
    );
    assert_eq!(
        world.last_good,
        Some(BTreeMap::new()),
        "that was said, and is known in the next life"
    );
}

#[test]
fn a_person_who_confirms_the_loss_lets_everything_go_on_and_removes_nothing() {
    let mut world = released();
    next_life(&mut world);
    world.last_good = None;
    start_without(&mut world);
    world.take_log();
    world.handle(Event::LossConfirmed);
    assert_eq!(world.take_log(), ["plain sync", "sized sync"]);
    assert_eq!(world.status().config_lost, [""; 0]);
    assert!(world.waits_for("flagged").contains("a ConfigMap that people made"));
    // A confirmation holds in later lives, too.
    next_life(&mut world);
    start_without(&mut world);
    assert_eq!(world.take_log(), ["plain sync", "sized sync"]);
    world.handle(Event::LossConfirmed);
    assert_eq!(world.take_log(), [""; 0], "there is nothing to be confirmed");
}

#[test]
fn what_was_read_of_a_config_map_that_is_gone_before_all_is_known_is_not_lost() {
    let mut world = released();
    next_life(&mut world);
    world.last_good = None;
    world.edit(&[("sized", Some("size: 4"))]);
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    assert_eq!(
        world.take_log(),
        ["plain sync", "sized sync", "flagged sync", "both sync"]
    );
    assert_eq!(world.status().config_lost, [""; 0]);
}

#[test]
fn nothing_is_lost_while_either_of_the_two_is_there() {
    // The last good sections replace a missing ConfigMap.
    let mut world = released();
    next_life(&mut world);
    start_without(&mut world);
    assert_eq!(
        world.take_log(),
        ["plain sync", "sized sync", "flagged sync", "both sync"]
    );
    // A ConfigMap replaces missing last good sections.
    let mut world = released();
    next_life(&mut world);
    world.last_good = None;
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.edit(&[]);
    assert_eq!(
        world.take_log(),
        ["plain sync", "sized sync", "flagged sync", "both sync"]
    );
}

#[test]
fn releases_without_a_mark_and_those_made_without_a_configuration_are_not_held() {
    let mut world = released();
    next_life(&mut world);
    for release in &mut world.releases {
        release.config = None;
    }
    world.last_good = None;
    start_without(&mut world);
    assert_eq!(
        world.take_log(),
        ["plain sync", "sized sync"],
        "as it was before releases were marked"
    );
    assert_eq!(world.status().config_lost, [""; 0]);
}

#[test]
fn a_lost_global_section_holds_every_module_and_a_release_without_one() {
    let mut world = World::new(vec![module(10, "one"), module(20, "gone")]);
    world.data = BTreeMap::from([("global".to_owned(), "project: blue".to_owned())]);
    let mut world = world.start();
    world.take_log();
    next_life(&mut world);
    world.last_good = None;
    world.inventory.modules.pop();
    start_without(&mut world);
    assert_eq!(world.take_log(), [""; 0]);
    assert_eq!(world.status().config_lost, ["gone", "one"]);
    world.edit(&[("global", Some("project: blue"))]);
    // The directories are read a second time before the first removal by silence or absence.
    assert_eq!(world.take_log(), ["one sync", "gone delete"]);
}

#[test]
fn what_a_program_made_says_nothing_by_what_it_leaves_out() {
    let mut world = released();
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    world.take_log();
    world.data = BTreeMap::from([("global".to_owned(), "# say something\n{}".to_owned())]);
    world.provenance.uid = "second".to_owned();
    world.provenance.made_with = Some(digest(&world.data));
    world.edit(&[]);
    assert_eq!(world.take_log(), [""; 0], "neither flags nor values are taken back");
    // The next life does not remove them either.
    next_life(&mut world);
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.edit(&[]);
    assert_eq!(
        world.take_log(),
        ["plain sync", "sized sync", "flagged sync", "both sync"]
    );
    // The keys that the ConfigMap of a program does hold are applied.
    world.data.insert("sized".to_owned(), "size: 7".to_owned());
    world.provenance.made_with = Some(digest(&world.data));
    world.edit(&[]);
    assert_eq!(world.take_log(), ["sized sync"]);
    // People edit it: their keys are applied, and keys that it has never held stay as they were.
    world.edit(&[("flaggedEnabled", Some("false"))]);
    assert_eq!(
        world.take_log(),
        ["flagged delete", "plain sync", "sized sync", "both sync"]
    );
    world.edit(&[("flaggedEnabled", Some("true"))]);
    world.take_log();
    // A key that people have written and deleted again counts as left out, also in the next life, and even if the other
    // keys are as the program made them.
    next_life(&mut world);
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.edit(&[("flaggedEnabled", None)]);
    assert_eq!(
        world.take_log(),
        [
            "plain sync",
            "sized sync",
            "both sync",
            "flagged delete",
            "plain sync",
            "sized sync",
            "both sync",
        ],
        "before the first that goes for silence the directories are read again"
    );
    // Without the annotation the ConfigMap is one of people, and leaving keys out counts.
    world.provenance.made_with = None;
    world.edit(&[]);
    assert_eq!(world.take_log(), ["both delete", "plain sync", "sized sync"]);
}

#[test]
fn a_confirmation_in_the_config_map_counts_for_what_its_edit_removes_and_for_nothing_later() {
    let mut world = released();
    let is_confirmed = |world: &World, module: &str| world.operator.config.is_removal_confirmed(&name(module));
    world.open.insert("both delete".to_owned());
    world.provenance.confirms = Some("2".to_owned());
    world.edit(&[("flaggedEnabled", None), ("bothEnabled", None)]);
    assert!(is_confirmed(&world, "both") && is_confirmed(&world, "flagged"));
    world.close("both delete");
    assert!(!is_confirmed(&world, "both") && !is_confirmed(&world, "flagged"));
    // Repeating an annotation confirms nothing, nor does a wrong number.
    world.edit(&[("flaggedEnabled", Some("true")), ("bothEnabled", Some("true"))]);
    world.open.insert("both delete".to_owned());
    world.edit(&[("flaggedEnabled", None), ("bothEnabled", None)]);
    assert!(!is_confirmed(&world, "both") && !is_confirmed(&world, "flagged"));
    world.close("both delete");
    world.edit(&[("flaggedEnabled", Some("true")), ("bothEnabled", Some("true"))]);
    world.open.insert("both delete".to_owned());
    world.provenance.confirms = Some("3".to_owned());
    world.edit(&[("flaggedEnabled", None), ("bothEnabled", None)]);
    assert!(!is_confirmed(&world, "both") && !is_confirmed(&world, "flagged"));
}

#[test]
fn the_release_of_a_module_whose_source_is_lost_stays() {
    let mut world = World::new(vec![module(10, "plain")]);
    let sources = "fetched: {repository: r.example.com/fetched, version: stable}";
    world.data.insert("moduleSources".to_owned(), sources.to_owned());
    let mut world = world.start();
    world.handle(Event::CopiesRead);
    let origin = Origin::Source { has_former: false };
    world.handle(Event::ModuleRead(Edition(1), origin, Box::new(silent(20, "fetched"))));
    assert!(world.take_log().contains(&"fetched sync".to_owned()));
    next_life(&mut world);
    world.last_good = None;
    start_without(&mut world);
    for _ in 0..5 {
        if world.operator.poll_timeout().is_some() {
            world.sleep();
        }
    }
    assert_eq!(world.take_log(), ["plain sync"]);
    assert_eq!(world.status().config_lost, ["fetched"]);
}
