//! All that one choice has to know of those before it. Most of it is kept from life to life.
//!
//! Losing the memory makes nothing begin earlier: a delay is counted anew, and requests of people are forgotten.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Activity;
use crate::artifact::channel::Channel;
use crate::artifact::reference::{ImageDigest, Tag};
use crate::artifact::version::Version;
use crate::time::{Now, Tick};

/// So long a busy moment is waited for.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// The facts of earlier choices that a choice needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// The channel of the last choice.
    channel: Option<Channel>,
    /// Whether a person has asked for the version that the channel names, and for which one.
    asked: Asked,
    /// The version that was wanted last, and since when.
    first_seen: Option<(ImageDigest, Timestamp)>,
    /// The highest version in the range of the channel that was ever shown.
    highest: Option<Version>,
    /// Since when nothing holds the version that is wanted, apart from work that is under way.
    #[serde(skip)]
    ready: Option<(ImageDigest, Tick)>,
}

/// Whether a person has asked for the version that the channel names, which is so after a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Asked {
    /// No.
    #[default]
    ForNothing,
    /// Yes, and its version is not known yet.
    ForItsMeaning,
    /// For this version, which it meant then.
    For(ImageDigest),
}

impl Memory {
    /// The part of it that is kept from life to life.
    #[must_use]
    pub fn lasting(&self) -> Self {
        Self {
            ready: None,
            ..self.clone()
        }
    }

    /// The channel may have been switched. The very first channel is no switch: it may be as old as the running
    /// version.
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

    /// It is known which version the tag stands for: if the channel was switched to it, that one was asked for, and none that the
    /// tag may stand for later.
    pub(super) fn note_meaning(&mut self, tag: Option<&Tag>, channel: &Channel, digest: &ImageDigest) {
        let is_of_channel = matches!((tag, channel), (Some(tag), Channel::Tag(switched)) if tag == switched);
        if self.asked == Asked::ForItsMeaning && is_of_channel {
            self.asked = Asked::For(digest.clone());
        }
    }

    pub(super) fn is_asked_for(&self, digest: &ImageDigest) -> bool {
        matches!(&self.asked, Asked::For(asked) if asked == digest)
    }

    /// When the version that is wanted was first seen. A clock that was set back counts from then on.
    pub(super) fn note_sight(&mut self, digest: &ImageDigest, now: Timestamp) -> Timestamp {
        match &self.first_seen {
            Some((seen, at)) if seen == digest && *at <= now => *at,
            Some(_) | None => {
                self.first_seen = Some((digest.clone(), now));
                now
            }
        }
    }

    /// The highest version that is shown now. Returns the one that was shown before if it is higher.
    pub(super) fn note_highest(&mut self, version: &Version) -> Option<Version> {
        let higher = self.highest.clone().filter(|highest| highest > version);
        if higher.is_none() {
            self.highest = Some(version.clone());
        }
        higher
    }

    /// Until when a version waits for a quiet moment; nothing if there is one, or if it has waited long enough.
    pub(super) fn patience(&mut self, digest: &ImageDigest, activity: Activity, now: Now) -> Option<Timestamp> {
        let ready = self.ready.take().filter(|(ready, _)| ready == digest);
        let (_, since) = self.ready.insert(ready.unwrap_or_else(|| (digest.clone(), now.tick)));
        let left = PATIENCE.checked_sub(now.tick - *since).filter(|left| !left.is_zero())?;
        match activity {
            Activity::Quiet => None,
            Activity::Busy => Some(now.wall.saturating_add(left).unwrap_or(Timestamp::MAX)),
        }
    }

    /// Something else holds it.
    pub(super) fn lose_patience(&mut self) {
        self.ready = None;
    }
}
