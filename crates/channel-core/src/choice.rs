//! The choice of the next step towards the wanted version: nothing, a wait with its reasons, or the beginning of a trial.
//!
//! Each choice is made anew from all known facts. Must never begin a trial because something is absent: a deleted tag, a
//! missing answer, a list that became shorter.

mod memory;
mod reason;
mod step;
mod subject;

use std::collections::BTreeSet;

use clock::Now;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::candidate::{Candidate, Seen, Signature};
use super::channel::Channel;
use super::platform::Platform;
use super::policy::Mode;
use super::reference::{ImageDigest, Tag};
use super::settings::Settings;
use super::version::Version;

pub use memory::{Memory, PATIENCE};
pub use reason::{Idle, Reason};
pub use step::VersionStep;
pub use subject::Subject;

/// The running version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Running {
    /// The version's digests: of its index, and of the manifests that our pods run.
    pub digests: BTreeSet<ImageDigest>,
    /// The tag in the Deployment's image.
    pub tag: Option<Tag>,
    /// The number of the running version.
    pub version: Option<Version>,
    /// The format in which the running version writes the state Secret.
    pub state_format: String,
}

/// The inputs of a choice of the next version, except its memory.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The thing whose version is chosen.
    pub subject: Subject,
    /// The running version.
    pub running: &'a Running,
    /// The settings of people.
    pub settings: &'a Settings,
    /// The known facts about the repository.
    pub seen: &'a Seen,
    /// The version of the chart that made our Deployment, if its label names one.
    pub chart: Option<&'a Version>,
    /// The platforms of the nodes on which our pods run.
    pub platforms: &'a BTreeSet<Platform>,
    /// Digests whose trials failed.
    pub failed: &'a BTreeSet<ImageDigest>,
    /// Failed digests that a person had approved before the trial. That approval is used up.
    pub spent: &'a BTreeSet<ImageDigest>,
    /// The digest of a trial without a result, and the time from which on it may be tried again.
    pub unclear: Option<(&'a ImageDigest, Timestamp)>,
    /// Whether work is under way that a trial would disturb.
    pub activity: Activity,
}

/// Whether work is under way that a trial would disturb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// No helm runs, and nothing is queued.
    Quiet,
    /// Helm runs, or a task is queued.
    Busy,
}

/// The version that the operator should change to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The tag that points to the version; `None` if the channel is a digest.
    pub tag: Option<Tag>,
    /// The version's digest.
    pub digest: ImageDigest,
    /// The number of the version, if known.
    pub version: Option<Version>,
}

/// The result of a choice of the next version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The version is not changed, for the given reason.
    Nothing(Idle),
    /// The wanted version has to wait before its trial begins.
    Waits {
        /// The version that waits for its trial.
        target: Target,
        /// The reasons for which the version waits, at least one.
        reasons: Vec<Reason>,
        /// The time at which the wait may end; `None` if the end does not depend on time alone.
        next: Option<Timestamp>,
    },
    /// The trial of the version may begin.
    Begin(Target),
}

/// The wanted version, before the reasons to wait are looked for.
struct Wanted<'a> {
    tag: Option<&'a Tag>,
    candidate: &'a Candidate,
    /// Whether the channel is the running digest. If so, the candidate is the version of the tag beside that digest,
    /// for information.
    held: bool,
    /// A higher version that the registry showed before and does not show any more.
    withdrawn: Option<Version>,
}

impl Situation<'_> {
    /// The effective channel: the setting of people, else the tag of our own image.
    pub fn channel(&self) -> Option<Channel> {
        let of_image = || self.running.tag.clone().map(Channel::Tag);
        self.settings.channel.clone().or_else(of_image)
    }

    /// Makes the choice, and stores in the memory the facts that the next choice needs.
    pub fn choose(&self, memory: &mut Memory, now: Now) -> Choice {
        let Some(channel) = self.channel() else {
            return Choice::Nothing(Idle::Pinned);
        };
        memory.note_channel(&channel);
        let wanted = match self.wanted(&channel, memory) {
            Ok(wanted) => wanted,
            Err(idle) => return Choice::Nothing(idle),
        };
        memory.note_meaning(wanted.tag, &channel, &wanted.candidate.digest);
        if wanted.candidate.is(&self.running.digests, self.platforms) {
            return Choice::Nothing(Idle::UpToDate);
        }
        let first_seen = memory.note_sight(&wanted.candidate.digest, now.wall);
        let mut reasons = self.obstacles(&wanted, memory);
        reasons.extend(self.waits(&wanted, first_seen, now.wall));
        let target = wanted.target();
        if reasons.is_empty() {
            match memory.patience(&target.digest, self.activity, now) {
                Some(until) => reasons.push(Reason::Busy { until }),
                None => return Choice::Begin(target),
            }
        } else {
            memory.lose_patience();
        }
        Choice::Waits {
            target,
            next: self.next(&reasons, now.wall),
            reasons,
        }
    }

    fn wanted<'s>(&'s self, channel: &Channel, memory: &mut Memory) -> Result<Wanted<'s>, Idle> {
        if self.platforms.is_empty() {
            return Err(Idle::PlatformsUnknown);
        }
        match channel {
            Channel::Tag(tag) => self.of_tag(tag, false, None),
            Channel::Range(range) => {
                let (tag, version) = range
                    .highest(self.seen.tags.keys())
                    .ok_or_else(|| Idle::NoMatch(range.clone()))?;
                let withdrawn = memory.note_highest(&version);
                self.of_tag(tag, false, withdrawn)
            }
            Channel::Digest(digest) if self.runs(digest) => {
                let tag = self.running.tag.as_ref().ok_or(Idle::UpToDate)?;
                self.of_tag(tag, true, None).map_err(|_| Idle::UpToDate)
            }
            Channel::Digest(digest) => {
                let candidate = self.seen.candidates.get(digest);
                Ok(Wanted {
                    tag: None,
                    candidate: candidate.ok_or_else(|| Idle::NotLookedAt(digest.to_string()))?,
                    held: false,
                    withdrawn: None,
                })
            }
        }
    }

    /// Whether a digest is running: a pod reports it, or it is an index whose manifests are running.
    fn runs(&self, digest: &ImageDigest) -> bool {
        let candidate = self.seen.candidates.get(digest);
        let is_run = |candidate: &Candidate| candidate.is(&self.running.digests, self.platforms);
        self.running.digests.contains(digest) || candidate.is_some_and(is_run)
    }

    fn of_tag<'s>(&'s self, tag: &Tag, held: bool, withdrawn: Option<Version>) -> Result<Wanted<'s>, Idle> {
        let known = self.seen.tags.get_key_value(tag);
        let (tag, digest) = known.ok_or_else(|| Idle::NoTag(tag.clone()))?;
        let candidate = digest.as_ref().and_then(|digest| self.seen.candidates.get(digest));
        Ok(Wanted {
            tag: Some(tag),
            candidate: candidate.ok_or_else(|| Idle::NotLookedAt(tag.to_string()))?,
            held,
            withdrawn,
        })
    }

    fn is_any_of(&self, candidate: &Candidate, digests: &BTreeSet<ImageDigest>) -> bool {
        candidate.digests(self.platforms).any(|digest| digests.contains(digest))
    }

    /// The reasons for a wait that the passing of time does not end.
    fn obstacles(&self, wanted: &Wanted<'_>, memory: &Memory) -> Vec<Reason> {
        let (candidate, notes) = (wanted.candidate, &wanted.candidate.notes);
        let is_approved = self.is_any_of(candidate, &self.settings.approved);
        let mut reasons = Vec::new();
        if wanted.held {
            reasons.push(Reason::Held);
        }
        reasons.extend(notes.mistakes.iter().cloned().map(Reason::Unreadable));
        let lacks = |platform: &&Platform| candidate.manifest_for(platform).is_none();
        let missing: BTreeSet<Platform> = self.platforms.iter().filter(lacks).cloned().collect();
        if !missing.is_empty() {
            reasons.push(Reason::OtherPlatform { missing });
        }
        if let Signature::Bad(why) = &candidate.signature {
            reasons.push(Reason::NotVerified { why: why.clone() });
        }
        let lowest = notes.lowest_chart.as_ref();
        if let Some(lowest) = lowest.filter(|lowest| self.chart.is_none_or(|chart| chart < *lowest)) {
            reasons.push(Reason::OldChart {
                lowest: lowest.clone(),
                ours: self.chart.cloned(),
            });
        }
        let ours = &self.running.state_format;
        if self.subject == Subject::Operator && !notes.state_formats.contains(ours) {
            reasons.push(Reason::StateFormat { ours: ours.clone() });
        }
        if let Some(higher) = wanted.withdrawn.clone() {
            reasons.push(Reason::Withdrawn { higher });
        }
        if !(is_approved || wanted.tag.is_none() || memory.is_asked_for(&candidate.digest)) {
            reasons.extend(match self.step(wanted) {
                // The tag of a module may move to any version that is not known to be lower.
                VersionStep::Unknown if self.subject == Subject::Module => None,
                VersionStep::Older => Some(Reason::Older {
                    running: self.running.version.clone(),
                }),
                VersionStep::Unknown => Some(Reason::NoVersion),
                VersionStep::Same | VersionStep::Patch | VersionStep::Minor | VersionStep::Major => None,
            });
        }
        let is_lifted = is_approved && !self.is_any_of(candidate, self.spent);
        if self.is_any_of(candidate, self.failed) && !is_lifted {
            reasons.push(Reason::FailedBefore);
        }
        reasons
    }

    fn step(&self, wanted: &Wanted<'_>) -> VersionStep {
        VersionStep::between(self.running.version.as_ref(), wanted.version().as_ref())
    }

    /// The reasons that end with time, or when other work ends.
    fn waits(&self, wanted: &Wanted<'_>, first_seen: Timestamp, now: Timestamp) -> Vec<Reason> {
        if self.subject == Subject::Module && self.running.digests.is_empty() {
            // A module whose source was named a moment ago. Its first version replaces nothing.
            return Vec::new();
        }
        let policy = &self.settings.policy;
        let candidate = wanted.candidate;
        let mut reasons = Vec::new();
        if !self.is_any_of(candidate, &self.settings.approved) {
            let step = self.step(wanted);
            let goes_alone = match policy.mode {
                Mode::Auto => true,
                Mode::Patch => step == VersionStep::Patch,
                Mode::Manual => false,
            };
            if !goes_alone {
                let mode = policy.mode;
                reasons.push(Reason::Approval { mode, step });
            }
            let until = first_seen.saturating_add(policy.delay).unwrap_or(Timestamp::MAX);
            if now < until {
                reasons.push(Reason::Delay { until });
            }
        }
        let unclear = self.unclear.filter(|(digest, _)| **digest == candidate.digest);
        if let Some((_, again)) = unclear.filter(|(_, again)| now < *again) {
            reasons.push(Reason::Unclear { again });
        }
        if !policy.windows.are_open(now) {
            let opens = policy.windows.next_opening(now);
            reasons.push(Reason::Window { opens });
        }
        reasons
    }

    /// The time at which all reasons may have ended by time alone, moved to the next open window.
    fn next(&self, reasons: &[Reason], now: Timestamp) -> Option<Timestamp> {
        let ends = reasons.iter().map(Reason::ends);
        let last = ends.collect::<Option<Vec<Timestamp>>>()?.into_iter().max()?;
        self.settings.policy.windows.next_opening(last.max(now))
    }
}

impl Wanted<'_> {
    fn target(&self) -> Target {
        Target {
            tag: self.tag.cloned(),
            digest: self.candidate.digest.clone(),
            version: self.version(),
        }
    }

    /// The version in the image's annotation. Without the annotation, the tag counts if it is a full version.
    fn version(&self) -> Option<Version> {
        let of_tag = || Version::parse_full(self.tag?.as_str());
        self.candidate.notes.version.clone().or_else(of_tag)
    }
}

#[cfg(test)]
mod tests;
