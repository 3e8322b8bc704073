//! The return from an unhealthy revision: when it begins, that it happens once, and how it goes on after a restart.

use proptest::prelude::*;

use super::*;
use crate::release::returned::{Returned, Unhealthy};

fn unhealthy(revision: u32) -> Unhealthy {
    let sentence = "Deployment web: 0 of 1 pods are ready".to_owned();
    Unhealthy { revision, sentence }
}

/// Revision 3 made the module unhealthy, and revision 2 was healthy.
fn after_an_upgrade() -> Facts {
    Facts {
        unhealthy: Some(unhealthy(3)),
        ..facts(Some(Newest {
            good: Some(2),
            ..newest(Status::Deployed)
        }))
    }
}

fn note() -> Returned {
    match decide(&after_an_upgrade()) {
        ReleaseStep::Return { note, to: 2 } => note,
        step => panic!("{step:?} is no return"),
    }
}

fn noted(revision: u32, inputs: Option<&str>, note: Returned) -> Facts {
    Facts {
        unhealthy: Some(unhealthy(revision)),
        ..facts(Some(Newest {
            revision,
            inputs: inputs.map(str::to_owned),
            good: Some(2),
            returned: Some(note),
            ..newest(Status::Deployed)
        }))
    }
}

#[test]
fn an_unhealthy_upgrade_returns_to_the_last_healthy_revision() {
    let note = note();
    assert_eq!((note.revision, note.to, note.inputs.as_str()), (3, 2, "same"));
    let kept = |change: fn(&mut Facts)| {
        let mut facts = after_an_upgrade();
        change(&mut facts);
        assert!(!matches!(decide(&facts), ReleaseStep::Return { .. }), "{facts:?}");
    };
    kept(|facts| facts.unhealthy = Some(unhealthy(2)));
    kept(|facts| facts.unhealthy = None);
    kept(|facts| facts.inputs = "others".to_owned());
    kept(|facts| facts.newest.as_mut().unwrap().good = None);
    kept(|facts| facts.newest.as_mut().unwrap().inputs = None);
    kept(|facts| facts.unmanaged = true);
}

#[test]
fn a_return_that_was_begun_goes_on() {
    // Nothing was done yet; helm was killed and its revision marked as failed; helm had ended and nothing was marked.
    let mut failed = noted(4, None, note());
    failed.newest.as_mut().unwrap().status = Status::Failed;
    for facts in [noted(3, Some("same"), note()), failed, noted(4, None, note())] {
        let step = decide(&Facts {
            unhealthy: None,
            ..facts
        });
        assert_eq!(step, ReleaseStep::Return { note: note(), to: 2 });
    }
}

#[test]
fn what_was_taken_back_stays_back_until_inputs_change_or_a_person_asks() {
    let mut facts = noted(4, Some("same"), note());
    assert_eq!(decide(&facts), ReleaseStep::LookAtObjects);
    facts.objects = Objects::Present;
    assert_eq!(decide(&facts), ReleaseStep::StayBack(note()));
    let failure = note().failure("one");
    assert_eq!(failure.class, Class::Held);
    assert!(failure.report.contains("Deployment web") && failure.hints.concat().contains("module upgrade one --again"));

    facts.objects = Objects::Missing("ConfigMap/a".to_owned());
    assert_eq!(decide(&facts), ReleaseStep::Return { note: note(), to: 4 });

    let asked = Returned { again: true, ..note() };
    let mut facts = noted(4, Some("same"), asked);
    assert_eq!(decide(&facts), ReleaseStep::Render);
    facts.rendered = rendered("text", &["ConfigMap/a"]);
    assert_eq!(decide(&facts), ReleaseStep::Upgrade(Reason::Again));
    let facts = Facts {
        inputs: "others".to_owned(),
        ..noted(4, Some("same"), note())
    };
    assert_eq!(decide(&facts), ReleaseStep::Render);
}

#[test]
fn what_is_kept_stays_and_is_remarked() {
    let kept = Returned {
        kept: Some("the upgrade changed PersistentVolumeClaim disk".to_owned()),
        ..note()
    };
    let remark = kept.remark().unwrap();
    assert!(
        remark.contains("revision 3 is not healthy and stays, because the upgrade changed"),
        "{remark}"
    );
    let mut facts = noted(3, Some("same"), kept);
    facts.objects = Objects::Present;
    assert_eq!(decide(&facts), ReleaseStep::Keep { revision: 3 });
    assert_eq!(note().remark(), None);
}

/// An event in the life of a release whose module returns.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Inputs(u8),
    Unhealthy,
    Healthy,
    /// Helm is killed while it rolls back.
    Killed,
    Deleted,
    Again,
    Run,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        1 => (0..3_u8).prop_map(Turn::Inputs),
        1 => Just(Turn::Unhealthy),
        1 => Just(Turn::Healthy),
        1 => Just(Turn::Killed),
        1 => Just(Turn::Deleted),
        1 => Just(Turn::Again),
        4 => Just(Turn::Run),
    ];
    prop::collection::vec(turn, 1..60)
}

/// A release as the notes on its revisions tell it, with a helm that does each step.
struct Life {
    inputs: u8,
    newest: Newest,
    is_healthy: bool,
    is_missing: bool,
    dies: bool,
    /// The inputs whose upgrade was taken back, until they change or a person asks.
    spoilt: Option<u8>,
    upgrades_of_spoilt: u32,
}

impl Life {
    fn facts(&self) -> Facts {
        Facts {
            inputs: self.inputs.to_string(),
            unhealthy: (!self.is_healthy).then(|| unhealthy(self.newest.revision)),
            objects: if self.is_missing {
                Objects::Missing("a".to_owned())
            } else {
                Objects::Present
            },
            rendered: Some(Rendered {
                checksum: self.inputs.to_string(),
                parts: parts(&["ConfigMap/a"]),
            }),
            likeness: Some(Likeness::Other),
            ..facts(Some(self.newest.clone()))
        }
    }

    fn upgrade(&mut self) {
        self.upgrades_of_spoilt += u32::from(self.spoilt == Some(self.inputs));
        let good = if self.is_healthy {
            Some(self.newest.revision)
        } else {
            self.newest.good
        };
        self.newest = Newest {
            revision: self.newest.revision + 1,
            inputs: Some(self.inputs.to_string()),
            checksum: Some(self.inputs.to_string()),
            good,
            ..newest(Status::Deployed)
        };
        (self.is_healthy, self.is_missing) = (false, false);
    }

    fn roll_back(&mut self, note: Returned, to: u32) {
        self.spoilt = Some(self.inputs);
        self.newest.revision += 1;
        self.newest.good = Some(to);
        self.newest.returned = Some(note.clone());
        if std::mem::take(&mut self.dies) {
            (self.newest.status, self.newest.inputs) = (Status::Failed, None);
            return;
        }
        (self.newest.status, self.newest.inputs) = (Status::Deployed, Some(note.inputs));
        (self.is_healthy, self.is_missing) = (true, false);
    }

    fn run(&mut self) {
        for _ in 0..10 {
            match decide(&self.facts()) {
                ReleaseStep::Upgrade(_) => self.upgrade(),
                ReleaseStep::Return { note, to } => self.roll_back(note, to),
                ReleaseStep::Keep { .. } | ReleaseStep::StayBack(_) => return,
                step => panic!("{step:?} for {:?}", self.newest),
            }
        }
        panic!("it goes to and fro: {:?}", self.newest);
    }
}

proptest! {
    #[test]
    fn a_return_happens_once(turns in turns()) {
        let first = Newest { revision: 1, inputs: Some("0".to_owned()), ..newest(Status::Deployed) };
        let mut life = Life {
            inputs: 0, newest: first, is_healthy: true, is_missing: false, dies: false, spoilt: None, upgrades_of_spoilt: 0,
        };
        for turn in turns {
            match turn {
                Turn::Inputs(inputs) => {
                    if inputs != life.inputs {
                        life.spoilt = None;
                    }
                    life.inputs = inputs;
                }
                Turn::Unhealthy => life.is_healthy = false,
                Turn::Healthy => life.is_healthy = true,
                Turn::Killed => life.dies = true,
                Turn::Deleted => life.is_missing = true,
                Turn::Again => {
                    if let Some(note) = &mut life.newest.returned {
                        note.again = true;
                        life.spoilt = None;
                    }
                }
                Turn::Run => life.run(),
            }
        }
        life.run();
        prop_assert_eq!(life.upgrades_of_spoilt, 0);
    }
}
