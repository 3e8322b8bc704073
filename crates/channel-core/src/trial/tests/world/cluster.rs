//! The objects of the cluster, the controllers that make pods, and the actions that change objects.

use std::collections::BTreeSet;

use clock::Tick;

use super::super::{OLD, apply, deployment, digest, image};
use super::World;
use super::pod::{Pod, State};
use crate::leadership::lease;
use crate::reference::{ImageDigest, Reference};
use crate::trial::action::{Action, Outcome};
use crate::trial::record::{Remembered, Report, Ruling, Trial};
use crate::trial::replica::PodKind;
use crate::trial::sight::{Deployment, Known, LeaseSight, Replica, Sight, TrialPod, TrialSet};

/// The objects of the cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) deployment: Deployment,
    pub(super) replicas: usize,
    pub(super) set: Option<Set>,
    pub(super) lease: Option<lease::Record>,
    pub(super) lease_version: u64,
    pub(super) trial: Option<Trial>,
    pub(super) report: Option<Report>,
    pub(super) remembered: Remembered,
    /// The number of objects that were made.
    pub(super) made: u64,
    /// The versions that may be in the Deployment.
    pub(super) tried: BTreeSet<u8>,
    /// The longest time for which a pod of the trial has led without a break.
    pub(super) longest_lead: u64,
    /// The number of trials.
    pub(super) trials: u32,
}

/// The ReplicaSet of a trial.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) uid: String,
    pub(super) digest: ImageDigest,
    pub(super) is_going: bool,
}

impl Cluster {
    pub(super) fn new(replicas: usize, is_pinned: bool) -> Self {
        let deployment = if is_pinned {
            deployment(image(1))
        } else {
            Deployment {
                patched: None,
                former: None,
                ..deployment(OLD.to_owned())
            }
        };
        Self {
            deployment,
            replicas,
            set: None,
            lease: None,
            lease_version: 0,
            trial: None,
            report: None,
            remembered: Remembered::default(),
            made: 0,
            tried: [1].into(),
            longest_lead: 0,
            trials: 0,
        }
    }

    /// People change a part of the Deployment other than the image.
    pub(super) fn edit(&mut self) {
        self.deployment.template.push('+');
    }

    /// Other writers change the image, without an annotation.
    pub(super) fn put_image(&mut self, image: &str) {
        self.deployment.reference = Reference::parse(image).ok();
        self.deployment.image = image.to_owned();
        self.deployment.template = format!("hash of {image}");
    }

    /// Whether the image is not ours.
    pub(super) fn is_foreign(&self) -> bool {
        let image = Some(&self.deployment.image);
        self.deployment.patched.is_some() && image != self.deployment.patched.as_ref()
    }

    pub(super) fn mint(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Whether the cluster is as the action expects it.
    fn is_as_seen(&self, action: &Action) -> bool {
        match action {
            Action::Pin { from, to: _ } | Action::Promote { from, to: _ } => self.deployment.image == *from,
            Action::Entitle(_) => true,
            Action::Record { over, trial: _ } => over.as_deref() == self.trial.as_ref(),
            Action::Remember { over, remembered: _ } => **over == self.remembered,
            Action::MakeSet { trial, image: _ } => {
                self.set.is_none() && self.trial.as_ref() == Some(trial) && self.deployment.template == trial.template
            }
            Action::DropSet { over, uid } => {
                let is_it = self.set.as_ref().is_some_and(|set| set.uid == *uid);
                is_it && over.as_deref() == self.trial.as_ref()
            }
        }
    }
}

/// The version of an image.
fn version_of(image: &str) -> u8 {
    let reference = Reference::parse(image).unwrap();
    match reference.digest {
        Some(named) => (1..=3).find(|version| named == digest(*version)).unwrap(),
        // In this world a tag always points to the same version.
        None => reference.tag.unwrap().as_str().parse().unwrap(),
    }
}

impl World {
    /// Does an action, if the cluster is as the action expects it, and checks the promises.
    pub(super) fn carry_out(&mut self, action: &Action) -> Outcome {
        if !self.cluster.is_as_seen(action) {
            return Outcome::Changed;
        }
        self.hold_to_promises(action);
        let uid = format!("s{}", self.cluster.mint());
        let cluster = &mut self.cluster;
        match action {
            Action::Pin { .. } | Action::Promote { .. } => {
                let mut sight = nothing();
                sight.deployment = Some(cluster.deployment.clone());
                apply(&mut sight, action);
                cluster.deployment = sight.deployment.unwrap();
            }
            Action::Entitle(_) => {}
            Action::Record { over, trial } => {
                if over.is_none() {
                    (cluster.trials, cluster.longest_lead) = (cluster.trials + 1, 0);
                }
                cluster.trial = trial.as_deref().cloned();
            }
            Action::Remember { over: _, remembered } => cluster.remembered = (**remembered).clone(),
            Action::MakeSet { trial, image: _ } => {
                cluster.set = Some(Set {
                    uid,
                    digest: trial.to.digest.clone(),
                    is_going: false,
                });
            }
            Action::DropSet { over: _, uid: _ } => {
                if let Some(set) = &mut cluster.set {
                    set.is_going = true;
                }
                let pods = 0..self.pods.len();
                let of_trial: Vec<usize> = pods
                    .filter(|number| self.pods[*number].place == PodKind::Trial)
                    .collect();
                for number in of_trial {
                    self.end_gently(number);
                }
            }
        }
        Outcome::Done
    }

    fn hold_to_promises(&mut self, action: &Action) {
        let breach = match action {
            Action::Pin { from: _, to } | Action::Promote { from: _, to } => {
                let untried = !self.cluster.tried.contains(&version_of(to));
                untried.then(|| format!("the Deployment is to name {to}, which has not passed"))
            }
            Action::Record {
                over,
                trial: Some(trial),
            } => {
                let old = over.as_ref().and_then(|over| over.verdict.as_ref());
                let passed = trial
                    .verdict
                    .as_ref()
                    .is_some_and(|verdict| verdict.ruling == Ruling::Passed);
                let version = version_of(&format!("x@{}", trial.to.digest));
                if passed {
                    self.cluster.tried.insert(version);
                }
                if old.is_some() && old != trial.verdict.as_ref() {
                    Some("a verdict is written over".to_owned())
                } else if passed && self.cluster.longest_lead < 59 {
                    Some(format!(
                        "{version} passes and has led for {} s",
                        self.cluster.longest_lead
                    ))
                } else {
                    (passed && !self.kinds[&version].may_pass()).then(|| format!("{version} passes"))
                }
            }
            Action::MakeSet { trial, image: _ } => {
                let remembered = &self.cluster.remembered;
                let has_failed = remembered.failed.contains_key(&trial.to.digest);
                let is_lifted = self.approved.is_some() && remembered.spent.is_empty();
                (has_failed && !is_lifted).then(|| "a version is tried again that has failed".to_owned())
            }
            Action::DropSet { over: _, uid: _ } => {
                let open = self.cluster.trial.as_ref().filter(|trial| trial.verdict.is_none());
                let dropped = self.cluster.set.as_ref().zip(open);
                let is_on_trial = dropped.is_some_and(|(set, trial)| trial.to_digests.contains(&set.digest));
                is_on_trial.then(|| "the pod of a trial that goes on is taken away".to_owned())
            }
            Action::Entitle(_) | Action::Record { over: _, trial: None } | Action::Remember { .. } => None,
        };
        if self.breach.is_none() {
            self.breach = breach;
        }
    }

    /// The controllers of the Deployment and of the ReplicaSet.
    pub(super) fn keep_pods(&mut self) {
        let template = self.cluster.deployment.template.clone();
        let of_deployment = |pod: &&Pod| pod.place == PodKind::Deployment;
        let total = self.pods.iter().filter(of_deployment).count();
        let is_fresh = |pod: &&Pod| pod.template == template;
        let fresh = self.pods.iter().filter(of_deployment).filter(is_fresh).count();
        let ready = self
            .pods
            .iter()
            .filter(of_deployment)
            .filter(|pod| pod.is_ready())
            .count();
        let wanted = self.cluster.replicas;
        if fresh < wanted && total <= wanted {
            let version = version_of(&self.cluster.deployment.image);
            self.make_pod(PodKind::Deployment, version);
        } else if total > wanted && ready > wanted {
            let stale = |pod: &Pod| pod.place == PodKind::Deployment && pod.template != template && pod.ends.is_none();
            if let Some(number) = self.pods.iter().position(stale) {
                self.end_gently(number);
            }
        }
        let pod = self.pods.iter().any(|pod| pod.place == PodKind::Trial);
        match &self.cluster.set {
            Some(set) if set.is_going && !pod => self.cluster.set = None,
            Some(set) if !set.is_going && !pod => {
                let version = version_of(&format!("x@{}", set.digest));
                self.make_pod(PodKind::Trial, version);
            }
            Some(_) | None => {}
        }
    }

    pub(super) fn is_rolled_out(&self) -> bool {
        let is_right = |pod: &Pod| pod.template == self.cluster.deployment.template && pod.is_ready();
        let mut pods = self.pods.iter().filter(|pod| pod.place == PodKind::Deployment);
        pods.clone().count() == self.cluster.replicas && pods.all(is_right)
    }

    /// The sight of the cluster, without the lease.
    pub(super) fn sight(&self) -> Sight {
        let of = |place: PodKind| self.pods.iter().filter(move |pod| pod.place == place);
        let cluster = &self.cluster;
        let known = |set: &Set| {
            let pod = of(PodKind::Trial).find(|pod| pod.ends.is_none()).map(|pod| TrialPod {
                name: pod.name.clone(),
                uid: pod.name.clone(),
                state: pod.shown(),
                restarts: pod.restarts,
                was_overdue: pod.was_overdue,
            });
            Known::There(TrialSet {
                uid: set.uid.clone(),
                digest: set.digest.clone(),
                is_going: set.is_going,
                pod,
            })
        };
        Sight {
            heard: Tick::ZERO,
            deployment: Some(Deployment {
                is_rolled_out: self.is_rolled_out(),
                ..cluster.deployment.clone()
            }),
            replicas: Some(of(PodKind::Deployment).map(replica).collect()),
            set: cluster.set.as_ref().map_or(Known::Absent, known),
            lease: Some(LeaseSight::default()),
            trial: cluster.trial.clone().map_or(Known::Absent, Known::There),
            report: cluster.report.clone().map_or(Known::Absent, Known::There),
            remembered: Some(cluster.remembered.clone()),
        }
    }
}

fn replica(pod: &Pod) -> Replica {
    Replica {
        pod: pod.name.clone(),
        digests: [digest(pod.version)].into(),
        platform: None,
        is_ready: pod.state == State::Ready,
    }
}

fn nothing() -> Sight {
    Sight {
        heard: Tick::ZERO,
        deployment: None,
        replicas: None,
        set: Known::Unknown,
        lease: None,
        trial: Known::Unknown,
        report: Known::Unknown,
        remembered: None,
    }
}
