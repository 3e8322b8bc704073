//! The time between two trials: changes of the Deployment by other writers, the pin, remains of earlier trials, and the
//! beginning of the next trial.
//!
//! Must never begin a trial while people hold an image. Must never delete an object that may belong to a trial whose
//! record was not seen yet.

use std::time::Duration;

use clock::Now;

use super::action::{Action, pinned};
use super::memory;
use super::record::{Remembered, Trial, Unclear};
use super::replica::{PodKind, Wanted};
use super::sight::Deployment;
use super::stage::{Hold, Stage};
use super::{Plan, Trials, View};
use crate::choice::{Activity, Memory, PATIENCE};
use crate::reference::ImageDigest;
use crate::settings::Settings;

/// The time for which parts of a trial must have been seen without a record before they are deleted.
const UNOWNED: Duration = Duration::from_secs(30);

/// The writer of the Deployment's image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hands<'a> {
    /// The operator, or the chart or a person whose image the operator continues with.
    Agreed,
    /// A writer as in `Agreed`, but the image has no digest.
    Unpinned,
    /// Another writer, who has put back the image that we had replaced. The text is the image that we had set.
    PutBack(&'a str),
    /// A person, who has set a digest that trials must not replace.
    Held,
}

impl Trials {
    /// The plan for this replica while no trial has a record.
    pub(super) fn between(&self, view: View<'_>, now: Now) -> Plan {
        match self.me.place {
            PodKind::Trial => return Plan::rest(Stage::Idle),
            PodKind::Deployment => {}
        }
        let plan = self.remains(view).unwrap_or_else(|| self.as_leader(view, now));
        match (&plan.action, self.leads()) {
            (None, _) | (Some(_), true) | (Some(Action::DropSet { over: _, uid: _ }), false) => plan,
            (Some(_), false) => Plan::rest(match plan.stage {
                Stage::Begins(target) => Stage::Waits(target, Hold::Lead),
                stage => stage,
            }),
        }
    }

    /// The step for parts of a trial whose record is gone or was not seen yet.
    fn remains(&self, view: View<'_>) -> Option<Plan> {
        let due = self.clocks.unowned? + UNOWNED;
        let stage = match &self.wish.wanted {
            Some(wanted) => Stage::Waits(wanted.target.clone(), Hold::Remains),
            None => Stage::Idle,
        };
        if view.heard < due {
            return Some(Plan::wait(stage, Some(due)));
        }
        Some(match view.set {
            Some(set) if set.is_going => Plan::rest(stage),
            Some(set) => {
                let (over, uid) = (None, set.uid.clone());
                Plan::act(stage, Action::DropSet { over, uid })
            }
            None => Plan::act(stage, Action::Entitle(None)),
        })
    }

    fn as_leader(&self, view: View<'_>, now: Now) -> Plan {
        let (deployment, remembered) = (view.deployment, view.remembered);
        let hands = hands(deployment, remembered);
        if self.wish.resumed.is_some() && self.wish.resumed != remembered.resumed {
            let stage = Stage::Pinning(Hold::Nothing);
            return Plan::act(stage, memory::remember(remembered, self.resumed(view, hands)));
        }
        if let Some(why) = &remembered.stopped {
            return Plan::rest(Stage::Stopped(why.clone()));
        }
        match hands {
            Hands::Held => Plan::rest(Stage::Held(deployment.image.clone())),
            Hands::PutBack(_) if !self.clocks.has_noted => {
                let after = memory::after_put_back(remembered, deployment, now.wall);
                Plan::act(Stage::PinningAgain, memory::remember(remembered, after))
            }
            Hands::PutBack(image) => {
                let pin = Action::Pin {
                    from: deployment.image.clone(),
                    to: image.to_owned(),
                };
                Plan::act(Stage::PinningAgain, pin)
            }
            Hands::Unpinned => self.pin(view, now),
            Hands::Agreed => self.begin(view, now),
        }
    }

    fn resumed(&self, view: View<'_>, hands: Hands<'_>) -> Remembered {
        let mut after = Remembered {
            resumed: self.wish.resumed.clone(),
            stopped: None,
            put_back: Vec::new(),
            ..view.remembered.clone()
        };
        match hands {
            Hands::Held => after.adopted = Some(view.deployment.image.clone()),
            Hands::Agreed | Hands::Unpinned | Hands::PutBack(_) => {}
        }
        after
    }

    /// Adds the running digest to an image with a tag alone: otherwise a restarted pod could pull an untried version.
    fn pin(&self, view: View<'_>, now: Now) -> Plan {
        if !view.deployment.is_rolled_out {
            return Plan::rest(Stage::Pinning(Hold::Rollout));
        }
        if view.deployment.reference.is_none() || !self.is_among(view) {
            return Plan::rest(Stage::Pinning(Hold::Image));
        }
        let patient = self.clocks.restless.map(|since| since + PATIENCE);
        match self.wish.activity {
            Activity::Busy if patient.is_none_or(|until| now.tick < until) => {
                Plan::wait(Stage::Pinning(Hold::Work), Some(patient.unwrap_or(now.tick + PATIENCE)))
            }
            Activity::Busy | Activity::Quiet => {
                let from = view.deployment.image.clone();
                let to = pinned(&from, &self.me.digest);
                Plan::act(Stage::Pinning(Hold::Nothing), Action::Pin { from, to })
            }
        }
    }

    /// Whether this replica's own pod belongs to the Deployment.
    fn is_among(&self, view: View<'_>) -> bool {
        view.replicas.iter().any(|replica| replica.pod == self.me.pod)
    }

    fn begin(&self, view: View<'_>, now: Now) -> Plan {
        let (deployment, remembered) = (view.deployment, view.remembered);
        if deployment
            .patched
            .as_ref()
            .is_some_and(|patched| *patched != deployment.image)
        {
            // From now on the image counts as ours. Otherwise an earlier image that is put there again would look like
            // one that we had replaced.
            let (from, to) = (deployment.image.clone(), deployment.image.clone());
            return Plan::act(Stage::Pinning(Hold::Nothing), Action::Pin { from, to });
        }
        if remembered.adopted.is_some() {
            let after = Remembered {
                adopted: None,
                ..remembered.clone()
            };
            return Plan::act(Stage::Idle, memory::remember(remembered, after));
        }
        if let Some(settings) = &self.wish.settings {
            let after = memory::with_approvals(remembered, settings);
            if after != *remembered {
                return Plan::act(Stage::Idle, memory::remember(remembered, after));
            }
        }
        let choice = self.wish.choice.as_ref().map(Memory::lasting);
        if let Some(choice) = choice.filter(|choice| *choice != remembered.choice) {
            let after = Remembered {
                choice,
                ..remembered.clone()
            };
            return Plan::act(Stage::Idle, memory::remember(remembered, after));
        }
        let (Some(wanted), Some(settings)) = (&self.wish.wanted, &self.wish.settings) else {
            return Plan::rest(Stage::Idle);
        };
        if self.is_of(&wanted.digests) {
            return Plan::rest(Stage::Idle);
        }
        if let Some(hold) = self.hold(view, wanted, settings, now) {
            return Plan::rest(Stage::Waits(wanted.target.clone(), hold));
        }
        let begin = Action::Record {
            over: None,
            trial: Some(Box::new(self.trial(view, wanted, settings, now))),
        };
        Plan::act(Stage::Begins(wanted.target.clone()), begin)
    }

    /// The reason why the trial does not begin although the choice allows it: the choice may be older than the memory of
    /// trials.
    fn hold(&self, view: View<'_>, wanted: &Wanted, settings: &Settings, now: Now) -> Option<Hold> {
        let (digest, remembered) = (&wanted.target.digest, view.remembered);
        let has_failed = |digest: &ImageDigest| remembered.failed.contains_key(digest);
        let is_lifted =
            !settings.approved.is_disjoint(&wanted.digests) && remembered.spent.is_disjoint(&wanted.digests);
        let is_unclear = |unclear: &Unclear| unclear.digest == *digest && now.wall < unclear.again;
        if wanted.digests.iter().any(has_failed) && !is_lifted {
            Some(Hold::FailedBefore)
        } else if remembered.unclear.as_ref().is_some_and(is_unclear) {
            Some(Hold::Unclear)
        } else if !view.deployment.is_rolled_out {
            Some(Hold::Rollout)
        } else if !self.is_among(view) {
            Some(Hold::Image)
        } else {
            None
        }
    }

    fn trial(&self, view: View<'_>, wanted: &Wanted, settings: &Settings, now: Now) -> Trial {
        let run = view.replicas.iter().flat_map(|replica| &replica.digests);
        Trial {
            from: run.chain(&self.me.digests).cloned().collect(),
            image: view.deployment.image.clone(),
            to: wanted.target.clone(),
            to_digests: wanted.digests.clone(),
            template: view.deployment.template.clone(),
            failing: self.wish.failing.clone(),
            unwell: self.wish.unwell.clone(),
            revisions: self.wish.revisions.clone(),
            begun: now.wall,
            by: self.me.pod.clone(),
            channel: settings.channel.clone(),
            is_approved: !settings.approved.is_disjoint(&wanted.digests),
            limit: settings.policy.trial_limit,
            pod: None,
            lost: 0,
            handed: 0,
            verdict: None,
        }
    }
}

/// Whether another writer has put back an image that we had replaced.
pub(super) fn is_put_back(view: View<'_>) -> bool {
    match hands(view.deployment, view.remembered) {
        Hands::PutBack(_) => true,
        Hands::Agreed | Hands::Unpinned | Hands::Held => false,
    }
}

/// Finds the writer of the Deployment's image.
fn hands<'a>(deployment: &'a Deployment, remembered: &Remembered) -> Hands<'a> {
    let image = Some(&deployment.image);
    let reference = deployment.reference.as_ref();
    let has_digest = reference.is_some_and(|reference| reference.digest.is_some());
    let accepted = if has_digest { Hands::Agreed } else { Hands::Unpinned };
    let Some(patched) = &deployment.patched else {
        return accepted;
    };
    if image == Some(patched) || image == remembered.adopted.as_ref() {
        return accepted;
    }
    let is_of_chart = image == deployment.chart_image.as_ref();
    let are_same_values = deployment.chart_image == deployment.chart_image_then;
    let is_former = !has_digest && image == deployment.former.as_ref();
    let is_put_back = if is_of_chart { are_same_values } else { is_former };
    if is_put_back {
        Hands::PutBack(patched)
    } else if is_of_chart || !has_digest {
        // The values of the chart changed, or people set another tag.
        accepted
    } else {
        Hands::Held
    }
}

#[cfg(test)]
mod tests;
