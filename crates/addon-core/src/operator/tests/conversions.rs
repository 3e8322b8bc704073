//! Conversion webhooks of charts: they come before all other work of a converge, and a failure delays only its own module.

use values_schema::schema::Files;

use super::*;
use crate::operator::effect::Conversions;

fn with_conversions(order: u32, text: &str) -> Module {
    Module {
        has_conversions: true,
        ..module(order, text)
    }
}

impl World {
    /// The outcome for the conversion webhooks of these modules.
    pub(super) fn conversions(&mut self, of: &[Conversions]) -> BTreeMap<ModuleName, Result<(), Failure>> {
        let mut outcomes = BTreeMap::new();
        for Conversions { module, .. } in of {
            let left = self.failing.get_mut(&format!("conversion of {module}"));
            let outcome = match left.filter(|left| **left > 0) {
                Some(left) => {
                    *left -= 1;
                    Err(Failure::new(Class::Refused, format!("no conversion of {module}")))
                }
                None => Ok(()),
            };
            outcomes.insert(module.clone(), outcome);
        }
        outcomes
    }
}

#[test]
fn those_of_all_modules_come_after_crds_and_before_any_module_at_every_converge() {
    let two = Module {
        has_crds: true,
        ..with_conversions(20, "two")
    };
    let mut world = World::new(vec![module(10, "one"), two, with_conversions(30, "three")]);
    world.releases.push(ReleaseSummary {
        name: "off".to_owned(),
        ours: true,
        config: None,
    });
    world.inventory.modules.push(module(40, "off"));
    world.data.insert("offEnabled".to_owned(), "false".to_owned());
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        [
            "crds of two",
            "conversions of two, three",
            "off delete",
            "one sync",
            "two sync",
            "three sync"
        ]
    );
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(
        world.take_log(),
        ["conversions of two, three", "one sync", "two sync", "three sync"]
    );
    // A run of one module publishes only its own webhooks.
    world.edit(&[("two", Some("color: red"))]);
    assert_eq!(world.take_log(), ["two sync"]);
}

#[test]
fn those_that_fail_are_tried_again_right_before_the_release_of_their_own_module() {
    let mut world = World::new(vec![with_conversions(10, "bad"), with_conversions(20, "good")]).hook(
        "bad",
        "h.sh",
        "beforeHelm: 1",
    );
    world.failing.insert("conversion of bad".to_owned(), 2);
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        [
            "conversions of bad, good",
            "bad/h.sh beforeHelm",
            "conversions of bad",
            "good sync"
        ]
    );
    let failed = world.notices.iter().find_map(|notice| match notice {
        Notice::ModuleFailed { step, failure, .. } => Some((*step, failure.report.as_str())),
        _ => None,
    });
    assert_eq!(failed, Some(("ensure its conversion webhooks", "no conversion of bad")));
    world.sleep();
    assert_eq!(
        world.take_log(),
        ["bad/h.sh beforeHelm", "conversions of bad", "bad sync"]
    );
    assert_eq!(world.state("bad"), "Ready");
}

#[test]
fn a_module_in_the_hands_of_people_is_left_alone() {
    let mut world = World::new(vec![with_conversions(10, "one")]);
    let maintenance = ("oneMaintenance".to_owned(), "NoResourceReconciliation".to_owned());
    world.data.extend([maintenance]);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one sync"]);
    world.edit(&[("oneMaintenance", None)]);
    assert_eq!(world.take_log(), ["conversions of one", "one sync"]);
}

#[test]
fn values_that_lack_something_for_helm_wait_for_the_hooks_that_bring_it() {
    let mut files = Files::default();
    files.insert("v", "x-required-for-helm: secret\nproperties: {secret: {type: string}}");
    let one = Module {
        schemas: Schemas::load(&files, None, Some("v")).unwrap(),
        ..with_conversions(10, "one")
    };
    let secret = json!([{"op": "add", "path": "/one/secret", "value": "s"}]);
    let world =
        World::new(vec![one])
            .hook("one", "h.sh", "beforeHelm: 1")
            .patching("one/h.sh beforeHelm", &secret, &json!([]));
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        ["one/h.sh beforeHelm", "conversions of one", "one sync"]
    );
}

#[test]
fn a_converge_looks_after_them_with_the_global_values_of_now_also_for_a_module_that_failed_under_others() {
    let mut world = World::new(vec![with_conversions(10, "one")]);
    world.failing.insert("one sync".to_owned(), 1);
    let mut world = world.start();
    world.open.insert("conversions of one".to_owned());
    world.edit(&[("global", Some("color: red"))]);
    let given = world.pending.iter().find_map(|job| match job {
        Job::EnsureConversions(of, _) => Some(of[0].values.to_value()),
        _ => None,
    });
    assert_eq!(given.unwrap()["global"]["color"], json!("red"));
}
