//! CRDs: they come before all other work of a converge, and a failure delays only its own module.

use super::event::CrdObstacle;
use super::policy::OnTrial;
use super::*;

fn with_crds(order: u32, text: &str) -> Module {
    Module {
        has_crds: true,
        ..module(order, text)
    }
}

impl World {
    /// The outcome for the CRDs of these modules.
    pub(super) fn crds(&mut self, modules: &[ModuleName], on_trial: OnTrial) -> BTreeMap<ModuleName, CrdObstacle> {
        let mut failed = BTreeMap::new();
        for name in modules {
            if let Some(left) = self
                .failing
                .get_mut(&format!("crd of {name}"))
                .filter(|left| **left > 0)
            {
                *left -= 1;
                let failure = Failure::new(Class::Refused, format!("no crd of {name}"));
                failed.insert(name.clone(), CrdObstacle::Failed(failure));
            } else if on_trial == OnTrial::Yes && self.other_crds.contains(name) {
                failed.insert(name.clone(), CrdObstacle::Held(vec![format!("CRD of {name}")]));
            } else {
                self.other_crds.remove(name);
            }
        }
        failed
    }
}

#[test]
fn crds_of_all_modules_come_before_any_module_and_once_in_its_life() {
    let gone = ReleaseSummary {
        name: "off".to_owned(),
        ours: true,
        config: None,
    };
    let mut world = World::new(vec![
        module(10, "off"),
        module(10, "one"),
        with_crds(20, "two"),
        with_crds(30, "three"),
    ])
    .hook("two", "h.sh", "onStartup: 1");
    world.releases.push(gone);
    world.data.insert("offEnabled".to_owned(), "false".to_owned());
    let mut world = world.start();
    assert_eq!(
        world.take_log(),
        [
            "crds of two, three",
            "off delete",
            "one sync",
            "two/h.sh onStartup",
            "two sync",
            "three sync"
        ]
    );
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["one sync", "two sync", "three sync"]);
    world.edit(&[("twoEnabled", Some("false"))]);
    assert_eq!(world.take_log(), ["two delete", "one sync", "three sync"]);
    world.edit(&[("twoEnabled", None)]);
    assert_eq!(
        world.take_log(),
        [
            "crds of two",
            "one sync",
            "two/h.sh onStartup",
            "two sync",
            "three sync"
        ]
    );
}

#[test]
fn crds_that_fail_hold_up_their_own_module_which_says_so_and_tries_again() {
    let mut world = World::new(vec![with_crds(10, "bad"), with_crds(20, "good")]);
    world.failing.insert("crd of bad".to_owned(), 2);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["crds of bad, good", "crds of bad", "good sync"]);
    let told: Vec<_> = world.notices.iter().filter_map(failure_of).collect();
    assert_eq!(told, [("bad", "ensure its CRDs", "no crd of bad")]);
    assert_eq!(world.state("bad"), "Ensuring");
    world.sleep();
    assert_eq!(world.take_log(), ["crds of bad", "bad sync"]);
    assert_eq!(world.state("bad"), "Ready");
}

fn failure_of(notice: &Notice) -> Option<(&str, &str, &str)> {
    let Notice::ModuleFailed {
        module, step, failure, ..
    } = notice
    else {
        return None;
    };
    Some((module.as_str(), step, &failure.report))
}

#[test]
fn a_job_that_says_nothing_of_any_module_leaves_it_to_their_runs() {
    let mut world = World::new(vec![with_crds(10, "one")]);
    world.failing.insert("crds of one".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["crds of one fails"]);
    world.sleep();
    assert_eq!(world.take_log(), ["crds of one", "one sync"]);
}
