//! The facts of earlier choices that the next choice needs. Most of them are kept from life to life.
//!
//! A lost memory makes nothing begin earlier: the delay of a version starts again, and requests of people are forgotten.

use std::time::Duration;

use clock::{Now, Tick};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Activity;
use crate::channel::Channel;
use crate::reference::{ImageDigest, Tag};
use crate::version::Version;

/// The longest time for which a version waits for a quiet moment.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// The facts from earlier choices of a version that the next choice needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// The channel at the last choice of a version.
    channel: Option<Channel>,
    /// Whether a person has asked for a version by switching the channel to a tag, and for which version.
    asked: Asked,
    /// The version that was wanted last, and the time at which it was first seen.
    first_seen: Option<(ImageDigest, Timestamp)>,
    /// The highest version in the channel's range that the registry ever showed.
    highest: Option<Version>,
    /// The version that only waits for a quiet moment, and the start of that wait.
    #[serde(skip)]
    ready: Option<(ImageDigest, Tick)>,
}

/// Whether a person has asked for a version by switching the channel to a tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Asked {
    /// No.
    #[default]
    ForNothing,
    /// Yes, and the version of the tag is not known yet.
    ForItsMeaning,
    /// Yes, for the version that the tag pointed to at the switch.
    For(ImageDigest),
}

impl Memory {
    /// The part of the memory that is kept from life to life.
    #[must_use]
    pub fn lasting(&self) -> Self {
        Self {
            ready: None,
            ..self.clone()
        }
    }

    /// Notes the channel, and whether a person has switched it. The first channel is no switch, because it may be as old
    /// as the running version.
    pub(super) fn note_channel(&mut self, channel: &Channel) {
        if self.channel.as_ref() == Some(channel) {
            return;
        }
        self.asked = match (&self.channel, channel) {
            (Some(_), Channel::Tag(_)) => Asked::ForItsMeaning,
            (Some(_), Channel::Range(_) | Channel::Digest(_)) | (None, _) => Asked::ForNothing,
        };
        self.channel = Some(channel.clone());
        self.highest = None;
    }

    /// Notes the version that a tag points to. If a person switched the channel to this tag, the person asked for this
    /// version and not for later versions of the tag.
    pub(super) fn note_meaning(&mut self, tag: Option<&Tag>, channel: &Channel, digest: &ImageDigest) {
        let is_of_channel = matches!((tag, channel), (Some(tag), Channel::Tag(switched)) if tag == switched);
        if self.asked == Asked::ForItsMeaning && is_of_channel {
            self.asked = Asked::For(digest.clone());
        }
    }

    pub(super) fn is_asked_for(&self, digest: &ImageDigest) -> bool {
        matches!(&self.asked, Asked::For(asked) if asked == digest)
    }

    /// The time at which the wanted version was first seen. If the clock was set back, this is the present time.
    pub(super) fn note_sight(&mut self, digest: &ImageDigest, now: Timestamp) -> Timestamp {
        match &self.first_seen {
            Some((seen, at)) if seen == digest && *at <= now => *at,
            Some(_) | None => {
                self.first_seen = Some((digest.clone(), now));
                now
            }
        }
    }

    /// Notes the highest version that the registry shows now. Returns the former highest version if that was higher.
    pub(super) fn note_highest(&mut self, version: &Version) -> Option<Version> {
        let higher = self.highest.clone().filter(|highest| highest > version);
        if higher.is_none() {
            self.highest = Some(version.clone());
        }
        higher
    }

    /// The time until which a version waits for a quiet moment; `None` if the moment is quiet, or the version has waited
    /// long enough.
    pub(super) fn patience(&mut self, digest: &ImageDigest, activity: Activity, now: Now) -> Option<Timestamp> {
        let ready = self.ready.take().filter(|(ready, _)| ready == digest);
        let (_, since) = self.ready.insert(ready.unwrap_or_else(|| (digest.clone(), now.tick)));
        let left = PATIENCE.checked_sub(now.tick - *since).filter(|left| !left.is_zero())?;
        match activity {
            Activity::Quiet => None,
            Activity::Busy => Some(now.wall.saturating_add(left).unwrap_or(Timestamp::MAX)),
        }
    }

    /// Forgets the time since which the version has waited for a quiet moment, because another reason holds the version.
    pub(super) fn lose_patience(&mut self) {
        self.ready = None;
    }
}
