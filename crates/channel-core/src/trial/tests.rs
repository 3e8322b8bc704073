//! One replica, step by step, in a cluster that the test writes down; then whole worlds of replicas.

mod course;
mod health;
mod rulings;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::Timestamp;

use super::record::{Failed, Failures, Verdict};
use super::replica::{PodKind, Wanted};
use super::sight::{PodState, TrialPod};
use super::*;
use crate::choice::{Activity, Target};
use crate::reference::Tag;
use crate::settings::Settings;

pub(super) const OLD: &str = "host/operator:1";

pub(super) fn digest(name: u8) -> ImageDigest {
    // The digests are parsed once, because the worlds need them a million times.
    static READ: LazyLock<Vec<ImageDigest>> = LazyLock::new(|| {
        let read = (0..10_u8).map(|name| ImageDigest::parse(&format!("sha256:{name:064x}")).unwrap());
        read.collect()
    });
    READ[usize::from(name)].clone()
}

pub(super) fn at(seconds: u64) -> Now {
    Now {
        tick: Tick::from_micros(seconds * 1_000_000),
        wall: Timestamp::from_second(1_700_000_000 + i64::try_from(seconds).unwrap()).unwrap(),
    }
}

pub(super) fn deployment(image: String) -> Deployment {
    Deployment {
        reference: Reference::parse(&image).ok(),
        template: format!("hash of {image}"),
        patched: Some(image.clone()),
        image,
        chart: None,
        former: Some(OLD.to_owned()),
        chart_image: Some(OLD.to_owned()),
        chart_image_then: Some(OLD.to_owned()),
        resumed: None,
        manager: None,
        pulls_always: false,
        is_rolled_out: true,
        stuck: None,
    }
}

/// The image of a version, by tag and digest.
pub(super) fn image(version: u8) -> String {
    format!("host/operator:{version}@{}", digest(version))
}

pub(super) fn wanted(version: u8) -> Wanted {
    Wanted {
        target: Target {
            tag: Some(Tag::parse(&version.to_string()).unwrap()),
            digest: digest(version),
            version: None,
        },
        digests: [digest(version)].into(),
    }
}

pub(super) fn replica(pod: &str, version: u8) -> Replica {
    Replica {
        pod: pod.to_owned(),
        digests: [digest(version)].into(),
        platform: None,
        is_ready: true,
    }
}

/// One machine, and the cluster that it sees.
pub(super) struct Bench {
    pub(super) trials: Trials,
    pub(super) sight: Sight,
    pub(super) wish: Wish,
    pub(super) seconds: u64,
    /// The actions that were done, as texts.
    pub(super) deeds: Vec<String>,
}

impl Bench {
    /// A pod of this version. Version 1 runs in two pods, and version 2 is wanted.
    pub(super) fn new(pod: &str, version: u8, place: PodKind) -> Self {
        let me = Me {
            pod: pod.to_owned(),
            digest: digest(version),
            digests: [digest(version)].into(),
            place,
        };
        let sight = Sight {
            heard: Tick::ZERO,
            deployment: Some(deployment(image(1))),
            replicas: Some(vec![replica("r0", 1), replica("r1", 1)]),
            set: Known::Absent,
            lease: Some(LeaseSight {
                holder: Some("r0".to_owned()),
                entitled: None,
            }),
            trial: Known::Absent,
            report: Known::Absent,
            remembered: Some(Remembered::default()),
        };
        let wish = Wish {
            wanted: Some(wanted(2)),
            settings: Some(Settings::default()),
            activity: Activity::Quiet,
            ..Wish::nothing()
        };
        Self {
            trials: Trials::new(me),
            sight,
            wish,
            seconds: 100,
            deeds: Vec::new(),
        }
    }

    pub(super) fn leader() -> Self {
        let mut bench = Self::new("r0", 1, PodKind::Deployment);
        bench.wish.lead = Lead::Leads;
        bench
    }

    /// A standby of the old version, while the new version leads.
    pub(super) fn judge() -> Self {
        let mut bench = Self::new("r1", 1, PodKind::Deployment);
        let mut trial = trial();
        trial.pod = Some("u1".to_owned());
        trial.handed = 1;
        bench.sight.trial = Known::There(trial);
        bench.put_pod(PodState::Ready, 0);
        bench.sight.lease = Some(LeaseSight {
            holder: Some("trial-1".to_owned()),
            entitled: Some(digest(2)),
        });
        bench
    }

    pub(super) fn put_pod(&mut self, state: PodState, restarts: u32) {
        self.sight.set = Known::There(TrialSet {
            uid: "s1".to_owned(),
            digest: digest(2),
            is_going: false,
            pod: Some(TrialPod {
                name: "trial-1".to_owned(),
                uid: "u1".to_owned(),
                state,
                restarts,
                was_overdue: false,
            }),
        });
    }

    pub(super) fn put_overdue(&mut self, was_overdue: bool) {
        if let Known::There(TrialSet { pod: Some(pod), .. }) = &mut self.sight.set {
            pod.was_overdue = was_overdue;
        }
    }

    pub(super) fn report(&mut self, number: u64, converged: bool, failing: &[(&str, Failures)]) {
        let failing = failing.iter().map(|(name, failures)| ((*name).to_owned(), *failures));
        self.sight.report = Known::There(Report {
            of: digest(2),
            pod: "trial-1".to_owned(),
            number,
            converged: converged.then_some(Timestamp::UNIX_EPOCH),
            failing: failing.collect::<BTreeMap<_, _>>(),
            hindered: BTreeSet::new(),
            unhealthy: BTreeMap::new(),
        });
    }

    /// Looks at the cluster and does actions until none is left in this second.
    pub(super) fn settle(&mut self) -> Move {
        let now = at(self.seconds);
        self.sight.heard = now.tick;
        self.trials.see(self.sight.clone());
        self.trials.wish(self.wish.clone(), now);
        for _ in 0..20 {
            let Move::Do(action) = self.trials.next(now) else {
                return self.trials.next(now);
            };
            self.deeds.push(word(&action));
            apply(&mut self.sight, &action);
            self.trials.did(action, Outcome::Done, now);
            self.trials.see(self.sight.clone());
        }
        panic!("there is no end to it: {:?}", self.deeds)
    }

    /// Lets time pass, with an observation each second.
    pub(super) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.seconds += 1;
            self.settle();
        }
    }

    /// Lets time pass, with an observation and a report of the new version each second.
    pub(super) fn pass_with_reports(&mut self, seconds: u64, converged: bool, failing: &[(&str, Failures)]) {
        for _ in 0..seconds {
            self.report(self.seconds, converged, failing);
            self.pass(1);
        }
    }

    pub(super) fn done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.deeds)
    }

    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.sight.trial.there()?.verdict.as_ref()
    }

    pub(super) fn remembered(&mut self) -> &mut Remembered {
        self.sight.remembered.as_mut().unwrap()
    }
}

/// The record of a trial of version 2 that has just begun.
pub(super) fn trial() -> Trial {
    Trial {
        from: [digest(1)].into(),
        image: image(1),
        to: wanted(2).target,
        to_digests: [digest(2)].into(),
        template: format!("hash of {}", image(1)),
        failing: BTreeSet::new(),
        unwell: BTreeSet::new(),
        revisions: [("a".to_owned(), 3), ("b".to_owned(), 3)].into(),
        begun: at(90).wall,
        by: "r0".to_owned(),
        channel: None,
        is_approved: false,
        limit: Duration::from_mins(15),
        pod: None,
        lost: 0,
        handed: 0,
        verdict: None,
    }
}

/// The text for an action.
pub(super) fn word(action: &Action) -> String {
    match action {
        Action::Pin { from: _, to } => format!("pin {to}"),
        Action::Promote { from: _, to } => format!("promote {to}"),
        Action::Entitle(None) => "entitle none".to_owned(),
        Action::Entitle(Some(whom)) => format!(
            "entitle {}",
            whom.as_str().trim_start_matches("sha256:0").trim_start_matches('0')
        ),
        Action::Record { over: None, .. } => "begin".to_owned(),
        Action::Record { trial: None, .. } => "close".to_owned(),
        Action::Record {
            over: Some(over),
            trial: Some(trial),
        } => match (&trial.verdict, over.handed < trial.handed, over.lost < trial.lost) {
            (Some(verdict), _, _) => format!("{:?}", verdict.ruling).to_lowercase(),
            (None, true, _) => "note hand-over".to_owned(),
            (None, false, true) => "note loss".to_owned(),
            (None, false, false) => "note pod".to_owned(),
        },
        Action::Remember { .. } => "remember".to_owned(),
        Action::MakeSet { .. } => "make".to_owned(),
        Action::DropSet { .. } => "drop".to_owned(),
    }
}

/// Applies an action to the cluster, without the effects that follow from it.
pub(super) fn apply(sight: &mut Sight, action: &Action) {
    match action {
        Action::Pin { from: _, to } | Action::Promote { from: _, to } => {
            let deployment = sight.deployment.as_mut().unwrap();
            deployment.patch(to);
            deployment.template = format!("hash of {to}");
        }
        Action::Entitle(whom) => sight.lease.as_mut().unwrap().entitled.clone_from(whom),
        Action::Record { over: _, trial } => {
            sight.trial = trial
                .as_ref()
                .map_or(Known::Absent, |trial| Known::There((**trial).clone()));
        }
        Action::Remember { over: _, remembered } => sight.remembered = Some((**remembered).clone()),
        Action::MakeSet { trial, .. } => {
            sight.set = Known::There(TrialSet {
                uid: "s1".to_owned(),
                digest: trial.to.digest.clone(),
                is_going: false,
                pod: None,
            });
        }
        Action::DropSet { .. } => {
            if let Known::There(set) = &mut sight.set {
                set.is_going = true;
            }
        }
    }
}
