//! An absent fact never makes a trial begin.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[test]
fn a_registry_or_a_tag_that_is_gone_changes_nothing() {
    let mut world = World::new();
    world.seen.tags.remove(&tag("stable"));
    assert_eq!(world.choose(), Choice::Nothing(Idle::NoTag(tag("stable"))));
    world.seen = Seen::default();
    assert_eq!(world.choose(), Choice::Nothing(Idle::NoTag(tag("stable"))));
    world.seen.tags.insert(tag("stable"), None);
    assert_eq!(world.choose(), Choice::Nothing(Idle::NotLookedAt("stable".to_owned())));
    world.show("stable", "1.4.3");
    world.platforms.clear();
    assert_eq!(world.choose(), Choice::Nothing(Idle::PlatformsUnknown));
}

#[test]
fn a_lower_version_is_not_taken_because_a_higher_one_is_gone() {
    let mut world = World::new();
    world.follow("1.4.x");
    for name in ["1.4.3", "1.4.4"] {
        world.show(name, name);
    }
    world.failed.insert(digest("1.4.4"));
    assert_eq!(world.waits(), ["failed_before"]);
    world.seen.tags.remove(&tag("1.4.4"));
    assert_eq!(world.waits(), ["withdrawn"]);
    world.approve("1.4.3");
    assert_eq!(world.waits(), ["withdrawn"]);
    world.memory = serde_json::from_str(&serde_json::to_string(&world.memory).unwrap()).unwrap();
    assert_eq!(world.waits(), ["withdrawn"]);
    let mut narrowed = world.clone();
    narrowed.follow("1.4.x !=1.4.4");
    assert_eq!(narrowed.begins().as_deref(), Some("1.4.3"));
    world.show("1.4.5", "1.4.5");
    assert_eq!(world.begins().as_deref(), Some("1.4.5"));
}

#[test]
fn a_tag_whose_meaning_is_not_known_is_not_passed_over() {
    let mut world = World::new();
    world.follow("1.4.x");
    world.show("1.4.3", "1.4.3");
    world.seen.tags.insert(tag("1.4.4"), None);
    assert_eq!(world.choose(), Choice::Nothing(Idle::NotLookedAt("1.4.4".to_owned())));
}

const NAMES: [&str; 8] = [
    "1.3.9",
    "1.4.1",
    "1.4.2",
    "1.4.3",
    "1.4.4",
    "1.5.0-rc.1",
    "1.5.0",
    "2.0.0",
];

fn any_world() -> impl Strategy<Value = World> {
    let some = || prop::collection::btree_set(prop::sample::select(NAMES.to_vec()), 0..5);
    let channel = prop::sample::select(vec!["", "stable", "edge", "1.4.x", ">=1.3 <2", "*", "1.4.1", "1.5.0"]);
    let policy = prop::sample::select(vec!["{}", "mode: patch", "mode: manual", "delay: 1h"]);
    let busy = any::<bool>();
    let tags = prop::collection::btree_map(
        prop::sample::select(vec!["stable", "edge", "1.4.1", "1.4.3", "1.4.4", "1.5.0"]),
        prop::sample::select(NAMES.to_vec()),
        0..6,
    );
    (tags, channel, policy, some(), some(), busy).prop_map(|(tags, channel, policy, failed, approved, busy)| {
        let mut world = World::new();
        world.seen = Seen::default();
        for (name, version) in tags {
            world.show(name, version);
        }
        if !channel.is_empty() {
            world.follow(channel);
        }
        world.policy(policy);
        world.failed = failed.into_iter().map(digest).collect();
        for name in approved {
            world.approve(name);
        }
        world.activity = if busy { Activity::Busy } else { Activity::Quiet };
        world
    })
}

/// Removes one of the known facts.
fn take_away(world: &mut World, (what, which): (u8, usize)) {
    match what {
        0 => {
            let name = world
                .seen
                .tags
                .keys()
                .nth(which % world.seen.tags.len().max(1))
                .cloned();
            name.map(|name| world.seen.tags.remove(&name));
        }
        1 => {
            let count = world.seen.tags.len().max(1);
            world.seen.tags.values_mut().nth(which % count).map(Option::take);
        }
        2 => {
            let digest = world
                .seen
                .candidates
                .keys()
                .nth(which % world.seen.candidates.len().max(1))
                .cloned();
            digest.map(|digest| world.seen.candidates.remove(&digest));
        }
        3 => {
            let count = world.seen.candidates.len().max(1);
            if let Some(candidate) = world.seen.candidates.values_mut().nth(which % count) {
                candidate.notes = Notes::default();
                candidate.manifests = BTreeMap::new();
            }
        }
        4 => world.chart = None,
        5 => world.platforms.clear(),
        6 => world.running.version = None,
        _ => world.running.tag = None,
    }
}

proptest! {
    #[test]
    fn fewer_answers_never_start_anything(
        world in any_world(),
        losses in prop::collection::vec((0_u8..8, 0_usize..8), 1..5),
    ) {
        let mut world = world;
        let before = world.choose();
        prop_assume!(!matches!(before, Choice::Begin(_)));
        for loss in losses {
            take_away(&mut world, loss);
            let after = world.choose();
            prop_assert!(!matches!(after, Choice::Begin(_)), "{before:?}\n{after:?}\n{world:?}");
        }
    }

    #[test]
    fn a_memory_that_is_lost_starts_nothing(world in any_world()) {
        let mut world = world;
        let before = world.choose();
        prop_assume!(!matches!(before, Choice::Begin(_)));
        world.memory = Memory::default();
        let after = world.choose();
        prop_assert!(!matches!(after, Choice::Begin(_)), "{before:?}\n{after:?}");
    }

    #[test]
    fn whatever_waits_has_a_name_and_whatever_begins_was_wanted(world in any_world()) {
        let mut world = world;
        match world.choose() {
            Choice::Nothing(idle) => prop_assert!(!idle.to_string().is_empty()),
            Choice::Waits { reasons, .. } => prop_assert!(!reasons.is_empty()),
            Choice::Begin(target) => {
                let is_shown = target.tag.is_none_or(|tag| world.seen.tags[&tag].as_ref() == Some(&target.digest));
                prop_assert!(is_shown);
                prop_assert!(world.seen.candidates.contains_key(&target.digest));
                prop_assert!(!world.running.digests.contains(&target.digest));
            }
        }
    }
}
