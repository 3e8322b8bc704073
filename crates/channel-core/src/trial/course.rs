//! The course of a trial while its record exists: its steps, the verdict, and the work after the verdict.
//!
//! The leader of the old version does the steps. All pods of the old version judge. Any pod of the Deployment does the
//! work after the verdict. Must never put a version into the Deployment that has not passed, nor judge by facts that do
//! not belong to the trial.

use std::time::Duration;

use clock::Now;
use names::{RELEASE_APPROVED, RELEASE_CHANNEL};

use super::action::{Action, image_of};
use super::record::{Ruling, Trial, Verdict};
use super::replica::PodKind;
use super::sight::{PodState, TrialPod, TrialSet};
use super::stage::{Remains, Stage};
use super::watch::{LOSSES, Watch};
use super::{Plan, Trials, View, memory};
use crate::reference::ImageDigest;

/// The time for which a passed version waits for a judge before it puts itself into the Deployment.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether the version has passed and the Deployment still has the old image, unchanged by other writers.
pub(super) fn is_to_be_promoted(view: View<'_>, trial: &Trial) -> bool {
    let ruling = trial.verdict.as_ref().map(|verdict| verdict.ruling);
    let deployment = view.deployment;
    ruling == Some(Ruling::Passed)
        && deployment.image == trial.image
        && deployment.patched.as_deref() != Some(&*image_of(&trial.image, &trial.to))
}

impl Trials {
    /// The plan for this replica while the trial has no verdict.
    pub(super) fn during(&self, view: View<'_>, trial: &Trial, now: Now) -> Plan {
        match self.me.place {
            PodKind::Trial => return self.as_candidate(view, trial),
            PodKind::Deployment => {}
        }
        if let Some(why) = self.void(view, trial) {
            return self.rule(trial, Ruling::Void, why, now);
        }
        let Some(watch) = self.clocks.watch.as_ref().filter(|_| self.is_of(&trial.from)) else {
            return Plan::rest(Stage::Elsewhere(trial.to.clone()));
        };
        if let Some((ruling, why)) = watch.ruling(trial) {
            return self.rule(trial, ruling, why, now);
        }
        let stage = self.stage_of(view, trial);
        if let Some(noted) = with_pod(view, trial) {
            return Plan::act(stage, record(trial, Some(noted)));
        }
        if is_charged(view, trial) && !leads_on_trial(view) {
            // The lease was handed over, but the new version has no pod that can take it, or its pod is alive and does
            // not take it.
            let leads = self.clocks.leads.filter(|_| self.leads());
            let has_spoken = leads.is_some_and(|since| watch.has_spoken_without_the_lease(since));
            if pod_of(view, trial).is_none() || has_spoken {
                return Plan::act(stage, Action::Entitle(Some(self.me.digest.clone())));
            }
        }
        let due = watch.due(trial.limit);
        let step = self.leads().then(|| self.go_on(view, trial, now));
        step.flatten().unwrap_or(Plan::wait(stage, due))
    }

    /// The plan for the leader, which runs the old version.
    fn go_on(&self, view: View<'_>, trial: &Trial, now: Now) -> Option<Plan> {
        if is_charged(view, trial) || leads_on_trial(view) {
            return None;
        }
        let stage = self.stage_of(view, trial);
        let is_ours = |digest: &ImageDigest| trial.from.contains(digest);
        if !view.lease.entitled.as_ref().is_some_and(is_ours) {
            return Some(Plan::act(stage, Action::Entitle(Some(self.me.digest.clone()))));
        }
        let Some(set) = view.set else {
            let make = Action::MakeSet {
                trial: Box::new(trial.clone()),
                image: image_of(&trial.image, &trial.to),
            };
            return Some(Plan::act(stage, make));
        };
        if set.is_going {
            return None;
        }
        if !trial.to_digests.contains(&set.digest) {
            return Some(Plan::act(stage, drop_set(trial, set)));
        }
        pod_of(view, trial)?;
        self.clocks.watch.as_ref().filter(|watch| watch.is_settled())?;
        if self.clocks.has_noted {
            let entitle = Action::Entitle(Some(trial.to.digest.clone()));
            return Some(Plan::act(Stage::HandsOver(trial.to.clone()), entitle));
        }
        if trial.handed >= LOSSES {
            let why = format!("it has lost the lease {LOSSES} times");
            return Some(self.rule(trial, Ruling::Unclear, why, now));
        }
        let noted = Trial {
            handed: trial.handed + 1,
            ..trial.clone()
        };
        Some(Plan::act(stage, record(trial, Some(noted))))
    }

    /// The reason why the trial is void; `None` if it counts.
    fn void(&self, view: View<'_>, trial: &Trial) -> Option<String> {
        if view.deployment.template != trial.template {
            return Some("the Deployment was changed meanwhile".to_owned());
        }
        let remembered = view.remembered;
        let digest = &trial.to.digest;
        if remembered.failed.contains_key(digest)
            && !(trial.is_approved && remembered.spent.is_disjoint(&trial.to_digests))
        {
            return Some("this version failed on trial meanwhile".to_owned());
        }
        let settings = self.wish.settings.as_ref()?;
        if settings.channel != trial.channel {
            return Some(format!("{RELEASE_CHANNEL} was changed meanwhile"));
        }
        (trial.is_approved && settings.approved.is_disjoint(&trial.to_digests))
            .then(|| format!("it was taken out of {RELEASE_APPROVED} meanwhile"))
    }

    fn rule(&self, trial: &Trial, ruling: Ruling, why: String, now: Now) -> Plan {
        let verdict = Verdict {
            ruling,
            why,
            at: now.wall,
            judge: self.me.pod.clone(),
        };
        let ruled = Trial {
            verdict: Some(verdict),
            ..trial.clone()
        };
        let stage = Stage::WindsUp(trial.to.clone(), ruling, Remains::Memory);
        Plan::act(stage, record(trial, Some(ruled)))
    }

    fn stage_of(&self, view: View<'_>, trial: &Trial) -> Stage {
        let target = trial.to.clone();
        if leads_on_trial(view) {
            let watch = self.clocks.watch.as_ref();
            let trouble = watch.and_then(Watch::trouble);
            return match (watch.and_then(Watch::left), trouble) {
                (Some(left), _) => Stage::Proves(target, left),
                (None, Some(trouble)) => Stage::Fails(target, trouble),
                (None, None) => Stage::Converges(target),
            };
        }
        match (is_charged(view, trial), self.leads()) {
            (true, true) => Stage::Doubts(target),
            (true, false) => Stage::HandsOver(target),
            (false, _) => Stage::Starts(target, pod_shown(view)),
        }
    }

    /// The plan for a replica that runs in the pod of the trial.
    fn as_candidate(&self, view: View<'_>, trial: &Trial) -> Plan {
        if !self.is_of(&trial.to_digests) {
            return Plan::rest(Stage::Elsewhere(trial.to.clone()));
        }
        let mut judges = view.replicas.iter();
        if !judges.any(|replica| !replica.digests.is_disjoint(&trial.from)) {
            return Plan::rest(Stage::Unjudged(trial.to.clone()));
        }
        let due = self.clocks.watch.as_ref().and_then(|watch| watch.due(trial.limit));
        Plan::wait(self.stage_of(view, trial), due)
    }

    /// The plan for this replica after the trial's verdict.
    pub(super) fn after(&self, view: View<'_>, trial: &Trial, verdict: &Verdict) -> Plan {
        let image = image_of(&trial.image, &trial.to);
        let promote = || Action::Promote {
            from: trial.image.clone(),
            to: image.clone(),
        };
        let target = || trial.to.clone();
        if is_to_be_promoted(view, trial) {
            let stage = Stage::Promotes(target());
            let due = self.clocks.passed.map(|since| since + PATIENCE);
            let may = match self.me.place {
                PodKind::Deployment => self.is_of(&trial.from),
                PodKind::Trial => {
                    self.is_of(&trial.to_digests) && self.leads() && due.is_some_and(|due| due <= view.heard)
                }
            };
            return if may {
                Plan::act(stage, promote())
            } else {
                Plan::wait(stage, due)
            };
        }
        match self.me.place {
            PodKind::Trial => return Plan::rest(farewell(view, trial, verdict)),
            PodKind::Deployment => {}
        }
        let rightful = self.rightful(view, trial);
        if is_wrong(view, trial, rightful.as_ref()) {
            let stage = Stage::WindsUp(target(), verdict.ruling, Remains::Lease);
            return Plan::act(stage, Action::Entitle(rightful));
        }
        if verdict.ruling == Ruling::Passed && view.deployment.image == image && !view.deployment.is_rolled_out {
            return Plan::rest(Stage::RollsOut(target(), view.deployment.stuck.clone()));
        }
        self.wind_up(view, trial, verdict)
    }

    fn wind_up(&self, view: View<'_>, trial: &Trial, verdict: &Verdict) -> Plan {
        let at = |remains| Stage::WindsUp(trial.to.clone(), verdict.ruling, remains);
        let remembered = memory::after(view.remembered, trial, verdict);
        if remembered != *view.remembered {
            return Plan::act(at(Remains::Memory), memory::remember(view.remembered, remembered));
        }
        match view.set {
            Some(set) if set.is_going => Plan::rest(at(Remains::Pod)),
            Some(set) => Plan::act(at(Remains::Pod), drop_set(trial, set)),
            None if !self.leads() => Plan::rest(at(Remains::Record)),
            None if view.lease.entitled.is_some() => Plan::act(at(Remains::Lease), Action::Entitle(None)),
            None => Plan::act(at(Remains::Record), record(trial, None)),
        }
    }

    /// The version that has to lead from now on: that of the Deployment, if it is the old or the new one.
    fn rightful(&self, view: View<'_>, trial: &Trial) -> Option<ImageDigest> {
        if view.deployment.image == image_of(&trial.image, &trial.to) {
            return Some(trial.to.digest.clone());
        }
        let ours = self.is_of(&trial.from).then(|| self.me.digest.clone());
        let any = ours.or_else(|| trial.from.first().cloned());
        any.filter(|_| view.deployment.image == trial.image)
    }
}

/// The stage that the version on trial shows after the verdict. That version does nothing itself.
fn farewell(view: View<'_>, trial: &Trial, verdict: &Verdict) -> Stage {
    let is_named = view.deployment.image == image_of(&trial.image, &trial.to);
    if verdict.ruling == Ruling::Passed && is_named {
        return Stage::RollsOut(trial.to.clone(), view.deployment.stuck.clone());
    }
    Stage::WindsUp(trial.to.clone(), verdict.ruling, Remains::Pod)
}

/// Whether the lease entitles a version other than the one that has to lead.
fn is_wrong(view: View<'_>, trial: &Trial, rightful: Option<&ImageDigest>) -> bool {
    let Some(entitled) = &view.lease.entitled else {
        return false;
    };
    let of = |digest: &ImageDigest| (trial.from.contains(digest), trial.to_digests.contains(digest));
    rightful.is_none_or(|rightful| of(entitled) != of(rightful))
}

/// Whether the version on trial is entitled to the lease.
pub(super) fn is_charged(view: View<'_>, trial: &Trial) -> bool {
    let entitled = view.lease.entitled.as_ref();
    entitled.is_some_and(|digest| trial.to_digests.contains(digest))
}

/// Whether the pod of the trial holds the lease.
fn leads_on_trial(view: View<'_>) -> bool {
    live_pod(view).is_some_and(|pod| view.lease.holder.as_ref() == Some(&pod.name))
}

/// The pod of the trial, unless it is lost.
fn live_pod(view: View<'_>) -> Option<&TrialPod> {
    let pod = view.set?.pod.as_ref()?;
    match pod.state {
        PodState::Lost(_) => None,
        PodState::Unscheduled(_)
        | PodState::NotPulled(_)
        | PodState::Starting
        | PodState::Ready
        | PodState::Crashed(_) => Some(pod),
    }
}

/// The pod of the trial, if it is not lost and the record names it.
fn pod_of<'a>(view: View<'a>, trial: &Trial) -> Option<&'a TrialPod> {
    live_pod(view).filter(|pod| trial.pod.as_ref() == Some(&pod.uid))
}

/// The record after a change of the pod; `None` without a change. A record without a pod gets the current pod. A record
/// whose pod was lost loses that pod, and counts the loss.
fn with_pod(view: View<'_>, trial: &Trial) -> Option<Trial> {
    match (&trial.pod, live_pod(view)) {
        (None, None) => None,
        (Some(noted), Some(pod)) if *noted == pod.uid => None,
        (None, Some(pod)) => Some(Trial {
            pod: Some(pod.uid.clone()),
            ..trial.clone()
        }),
        (Some(_), _) => Some(Trial {
            pod: None,
            lost: trial.lost + 1,
            ..trial.clone()
        }),
    }
}

fn pod_shown(view: View<'_>) -> String {
    let Some(pod) = view.set.and_then(|set| set.pod.as_ref()) else {
        return "it is not there yet".to_owned();
    };
    match &pod.state {
        PodState::Unscheduled(reason) => format!("no machine was found for it: {reason}"),
        PodState::NotPulled(reason) => format!("its image cannot be pulled: {reason}"),
        PodState::Starting => "it starts".to_owned(),
        PodState::Ready => "it is ready, for a short time so far".to_owned(),
        PodState::Crashed(reason) => format!("its container has ended: {reason}"),
        PodState::Lost(reason) => format!("it was lost: {reason}"),
    }
}

fn drop_set(over: &Trial, set: &TrialSet) -> Action {
    Action::DropSet {
        over: Some(Box::new(over.clone())),
        uid: set.uid.clone(),
    }
}

fn record(over: &Trial, trial: Option<Trial>) -> Action {
    Action::Record {
        over: Some(Box::new(over.clone())),
        trial: trial.map(Box::new),
    }
}
