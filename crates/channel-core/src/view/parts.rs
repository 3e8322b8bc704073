//! The parts of the report.
//!
//! Must never leave out a reason why the wanted version does not run.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{Channel, Known, OnTrial, Policy, Running, Step, Unclear, Verdict, Wait, Warning, whole};
use crate::candidate::Signature;
use crate::channel;
use crate::choice::{Choice, Reason, Target};
use crate::policy;
use crate::reference::ImageDigest;
use crate::trial::record;
use crate::trial::record::Remembered;
use crate::trial::sight::{PodState, TrialPod};
use crate::trial::stage::STEPS;
use crate::window::{Day, Window};

/// The text that is shown if no keys are configured.
const NO_KEYS: &str = "no keys are set (verification.keys of the chart)";

pub(super) fn running(known: &Known) -> Running {
    let installed = known.installed.as_ref();
    let deployment = known.deployment.as_ref();
    let (verified, not_verified) = match &known.signature {
        None => (None, None),
        Some(Signature::Good) => (Some(true), None),
        Some(Signature::NotAsked) => (Some(false), Some(NO_KEYS.to_owned())),
        Some(Signature::Bad(why)) => (Some(false), Some(why.clone())),
    };
    Running {
        image: deployment.map(|deployment| deployment.image.clone()),
        former: deployment.and_then(|deployment| deployment.former.clone()),
        digests: installed
            .map(|installed| installed.running.digests.clone())
            .unwrap_or_default(),
        version: installed.and_then(|installed| Some(installed.running.version.as_ref()?.to_string())),
        verified,
        not_verified,
    }
}

pub(super) fn channel(known: &Known) -> Option<Channel> {
    let settings = known.settings.as_ref()?;
    let of_image = || Some(channel::Channel::Tag(known.installed.as_ref()?.running.tag.clone()?));
    let (channel, from) = match &settings.channel {
        Some(channel) => (channel.clone(), "configMap"),
        None => (of_image()?, "image"),
    };
    Some(Channel {
        name: channel.to_string(),
        kind: match channel {
            channel::Channel::Tag(_) => "tag",
            channel::Channel::Range(_) => "range",
            channel::Channel::Digest(_) => "digest",
        },
        from,
    })
}

pub(super) fn policy(policy: &policy::Policy) -> Policy {
    let policy::Policy {
        mode,
        windows,
        delay,
        trial_limit,
    } = policy;
    Policy {
        mode: mode.word(),
        delay: delay.as_secs(),
        trial_limit: trial_limit.as_secs(),
        windows: windows.0.iter().map(window).collect(),
    }
}

fn window(window: &Window) -> String {
    let Window { days, from, to, zone } = window;
    let zone = zone.iana_name().unwrap_or("UTC");
    if Day::ALL.iter().all(|day| days.contains(day)) {
        return format!("each day {from}-{to} {zone}");
    }
    let days: Vec<String> = days.iter().map(ToString::to_string).collect();
    format!("{} {from}-{to} {zone}", days.join(","))
}

pub(super) fn available(known: &Known) -> Option<&Target> {
    match known.following.choice.as_ref()? {
        Choice::Nothing(_) => None,
        Choice::Waits { target, .. } | Choice::Begin(target) => Some(target),
    }
}

pub(super) fn waits(known: &Known) -> Vec<Wait> {
    let has_trial = known.records.as_ref().is_some_and(|records| records.trial.is_some());
    let reasons = match &known.following.choice {
        // With a trial, the reasons are those of an earlier choice. The stage of the trial shows the current reason.
        Some(Choice::Waits { .. }) if has_trial => &[],
        Some(Choice::Waits { reasons, .. }) => reasons.as_slice(),
        Some(Choice::Nothing(_) | Choice::Begin(_)) | None => &[],
    };
    let wait = |reason: &Reason| Wait {
        reason: reason.label(),
        text: reason.to_string(),
        until: reason.ends().map(whole),
        hint: remedy(reason),
    };
    reasons.iter().map(wait).collect()
}

/// The action of a person that ends the wait.
fn remedy(reason: &Reason) -> Option<&'static str> {
    match reason {
        Reason::Held => Some("`addon-operator channel resume` follows the tag again"),
        Reason::Older { .. } | Reason::NoVersion | Reason::FailedBefore | Reason::Approval { .. } => {
            Some("`addon-operator channel approve` approves of it")
        }
        Reason::Delay { .. } => Some("`addon-operator channel approve` lifts the delay for it"),
        Reason::NotVerified { .. } => Some("sign it, or give the chart its key in verification.keys"),
        Reason::OldChart { .. } => Some("upgrade the chart first"),
        Reason::OtherPlatform { .. } => Some("build it for these platforms, too"),
        Reason::Unreadable(_) => Some("build the image again with that note mended"),
        Reason::StateFormat { .. } => Some("a version that knows both formats has to come before it"),
        Reason::Withdrawn { .. } => Some("`addon-operator channel resume --channel TAG` follows another channel"),
        Reason::Unclear { .. } | Reason::Window { .. } | Reason::Busy { .. } => None,
    }
}

pub(super) fn failed(remembered: &Remembered) -> BTreeMap<ImageDigest, String> {
    let failed = remembered.failed.iter();
    failed
        .map(|(digest, failed)| (digest.clone(), failed.why.clone()))
        .collect()
}

pub(super) fn trial(known: &Known) -> Option<OnTrial> {
    let records = known.records.as_ref()?;
    let trial = records.trial.as_ref()?;
    let of_it = |report: &&record::Report| trial.to_digests.contains(&report.of) || trial.to.digest == report.of;
    let report = records.report.as_ref().filter(of_it);
    let pod = known.trial_set.as_ref().and_then(|set| set.pod.as_ref());
    let failing = report.map(|report| report.failing.clone()).unwrap_or_default();
    let is_old = |subject: &&String| failing.contains_key(*subject);
    let converged = report.and_then(|report| report.converged);
    let done = known
        .trial_stage
        .as_ref()
        .and_then(|stage| stage.steps_done(converged.is_some()));
    Some(OnTrial {
        of: trial.to.clone(),
        begun: whole(trial.begun),
        limit: trial.limit.as_secs(),
        pod: pod.map(|pod| pod.name.clone()),
        pod_is: pod.map(pod_is),
        converged: converged.map(whole),
        failed_before: trial.failing.iter().filter(is_old).cloned().collect(),
        failing,
        verdict: trial.verdict.as_ref().map(|verdict| Verdict {
            ruling: verdict.ruling,
            why: verdict.why.clone(),
            at: whole(verdict.at),
            judge: verdict.judge.clone(),
        }),
        steps: done.map(steps).unwrap_or_default(),
    })
}

fn steps(done: usize) -> Vec<Step> {
    let step = |(at, text): (usize, &&'static str)| Step {
        text,
        is: match at.cmp(&done) {
            Ordering::Less => "done",
            Ordering::Equal => "now",
            Ordering::Greater => "later",
        },
    };
    STEPS.iter().enumerate().map(step).collect()
}

fn pod_is(pod: &TrialPod) -> String {
    let state = match &pod.state {
        PodState::Unscheduled(why) => format!("no node takes it: {why}"),
        PodState::NotPulled(why) => format!("its image cannot be pulled: {why}"),
        PodState::Starting => "starting".to_owned(),
        PodState::Ready => "ready".to_owned(),
        PodState::Crashed(why) => format!("crashed: {why}"),
        PodState::Lost(why) => format!("lost: {why}"),
    };
    match pod.restarts {
        0 => state,
        1 => format!("{state}, started again once"),
        times => format!("{state}, started again {times} times"),
    }
}

pub(super) fn unclear(remembered: &Remembered) -> Option<Unclear> {
    let record::Unclear {
        digest,
        times,
        at: _,
        again,
        why,
    } = remembered.unclear.clone()?;
    Some(Unclear {
        digest,
        times,
        again: whole(again),
        why,
    })
}

pub(super) fn warnings(known: &Known, available: Option<&Target>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |warning, text: String| warnings.push(Warning { warning, text });
    if !known.following.missing.is_empty() {
        let missing: Vec<String> = known.following.missing.iter().map(ToString::to_string).collect();
        warn(
            "missing",
            format!(
                "the registry has lost what runs: a pod on another machine cannot pull it; push it again ({})",
                missing.join(", ")
            ),
        );
    }
    if let Some(deployment) = &known.deployment {
        if deployment.pulls_always {
            warn(
                "pull_always",
                "imagePullPolicy is Always: no pod starts while the registry is away; IfNotPresent is enough for an image with a \
                 digest"
                    .to_owned(),
            );
        }
        if deployment
            .reference
            .as_ref()
            .is_some_and(|image| image.digest.is_none())
        {
            warn(
                "not_pinned",
                "the Deployment names its image by tag alone: until it is pinned, in a quiet moment, a pod that starts anew may \
                 pull an untried version"
                    .to_owned(),
            );
        }
        if let Some(stuck) = &deployment.stuck {
            warn(
                "stuck",
                format!("the rollout of the Deployment does not get on: {stuck}"),
            );
        }
    }
    if known.records.is_none() {
        warn(
            "records_unknown",
            "the records of trials have not been read yet, so that nothing is known of one that goes on".to_owned(),
        );
    }
    if let (Some(trouble), Some(target)) = (&known.following.trouble, available) {
        warn(
            "not_confirmed",
            format!(
                "{} is not taken while the registry does not answer: {trouble}",
                super::text::name(target)
            ),
        );
    }
    warnings
}
