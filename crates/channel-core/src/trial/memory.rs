//! The memory of trials: the entries that follow from a verdict, a decision of a person or a change by another writer.
//!
//! Must never forget a failed version, unless it has passed later, or many others have failed after it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::Trials;
use super::action::Action;
use super::news::TrialNews;
use super::record::{Failed, Remembered, Ruling, Trial, Unclear, Verdict};
use super::sight::Deployment;
use crate::reference::ImageDigest;
use crate::settings::Settings;

/// The pause after the first trial without a result.
const FIRST_PAUSE: Duration = Duration::from_mins(5);
/// The longest pause after several trials in a row without a result.
const LONGEST_PAUSE: Duration = Duration::from_hours(6);
/// If another writer undoes a change of the image for the third time within this time, trials stop.
const HOUR: Duration = Duration::from_hours(1);
/// The number of failed versions that are remembered. The memory is part of a Secret, whose size is limited.
const MOST_FAILED: usize = 100;
/// The number of undone changes within `HOUR` that stops the trials.
const TIMES: usize = 3;

pub(super) fn remember(over: &Remembered, remembered: Remembered) -> Action {
    Action::Remember {
        over: Box::new(over.clone()),
        remembered: Box::new(remembered),
    }
}

/// The memory after a verdict. A verdict that it contains already changes nothing.
pub(super) fn after(remembered: &Remembered, trial: &Trial, verdict: &Verdict) -> Remembered {
    let digest = &trial.to.digest;
    let mut after = remembered.clone();
    let before = after.unclear.take_if(|unclear| unclear.digest == *digest);
    match verdict.ruling {
        Ruling::Passed => {
            after.failed.remove(digest);
            after.spent.retain(|digest| !trial.to_digests.contains(digest));
        }
        Ruling::Failed => {
            after.failed.insert(digest.clone(), failed(verdict));
            forget_the_first(&mut after.failed);
            after.spent.extend(trial.to_digests.iter().cloned());
        }
        Ruling::Unclear => {
            after.unclear = match before {
                Some(known) if known.at == verdict.at => Some(known),
                Some(known) => Some(unclear(digest, known.times.saturating_add(1), verdict)),
                None => Some(unclear(digest, 1, verdict)),
            };
        }
        Ruling::Void => after.unclear = before.or(after.unclear),
    }
    after
}

fn failed(verdict: &Verdict) -> Failed {
    Failed {
        why: verdict.why.clone(),
        at: verdict.at,
    }
}

fn forget_the_first(failed: &mut BTreeMap<ImageDigest, Failed>) {
    while failed.len() > MOST_FAILED {
        let first = failed.iter().min_by_key(|(_, failed)| failed.at);
        let Some(digest) = first.map(|(digest, _)| digest.clone()) else {
            return;
        };
        failed.remove(&digest);
    }
}

fn unclear(digest: &ImageDigest, times: u32, verdict: &Verdict) -> Unclear {
    let doubled = 1_u32.checked_shl(times - 1).unwrap_or(u32::MAX);
    let pause = FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE);
    Unclear {
        digest: digest.clone(),
        times,
        at: verdict.at,
        again: verdict.at.saturating_add(pause).unwrap_or(Timestamp::MAX),
        why: verdict.why.clone(),
    }
}

/// The memory without the used approvals that people have taken back, so that a new approval counts.
pub(super) fn with_approvals(remembered: &Remembered, settings: &Settings) -> Remembered {
    let mut after = remembered.clone();
    after.spent.retain(|digest| settings.approved.contains(digest));
    after
}

/// The memory after another writer has put back the image that we had replaced.
pub(super) fn after_put_back(remembered: &Remembered, deployment: &Deployment, wall: Timestamp) -> Remembered {
    let mut after = remembered.clone();
    let is_recent = |at: &Timestamp| wall.duration_since(*at).unsigned_abs() < HOUR;
    after.put_back.retain(is_recent);
    after.put_back.push(wall);
    if after.put_back.len() >= TIMES {
        let manager = deployment.manager.as_ref().map_or("another program", |(name, _)| name);
        after.stopped = Some(format!(
            "'{manager}' has put the image {} back into the Deployment {TIMES} times within an hour",
            deployment.image
        ));
    }
    after
}

impl Trials {
    pub(super) fn memory_news(&self, over: &Remembered, remembered: &Remembered) -> Option<TrialNews> {
        if over.resumed != remembered.resumed && (over.stopped.is_some() || remembered.adopted.is_some()) {
            return Some(TrialNews::Resumed);
        }
        if over.stopped != remembered.stopped {
            return remembered.stopped.clone().map(TrialNews::Stopped);
        }
        if over.put_back.last() == remembered.put_back.last() || remembered.put_back.is_empty() {
            return None;
        }
        let deployment = self.sight.as_ref()?.deployment.as_ref()?;
        Some(TrialNews::PutBack {
            image: deployment.image.clone(),
            manager: deployment.manager.as_ref().map(|(name, _)| name.clone()),
        })
    }
}
