//! The conditions of an object, by which people and programs wait for it.
//!
//! Must never have two conditions of one type.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The largest length of a message, in bytes.
const MESSAGE: usize = 1024;

/// A condition. Two of them are equal if they say the same; their times do not count.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Condition {
    /// The type: `Ready`, `Healthy`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` if the condition holds now.
    pub status: Status,
    /// The cause in one word.
    pub reason: String,
    /// The cause in a sentence; may be empty.
    pub message: String,
    /// The time of the last change of `status`. The ledger sets it.
    #[serde(rename = "lastTransitionTime", default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The status of a condition, in the words of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl Condition {
    /// A condition, whose message is cut to its limit.
    pub fn new(kind: &str, status: impl Into<Status>, reason: &str, message: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            status: status.into(),
            reason: reason.to_owned(),
            message: cut(message).to_owned(),
            since: None,
        }
    }

    /// The condition without texts for people.
    pub(crate) fn verdict(&self) -> (&str, Status, &str) {
        (&self.kind, self.status, &self.reason)
    }

    /// Sets the time: that of the earlier condition if its status was the same, and otherwise `now`.
    pub(crate) fn date(&mut self, earlier: &[Self], now: Timestamp) {
        let same = earlier
            .iter()
            .find(|other| other.kind == self.kind && other.status == self.status);
        self.since = same.and_then(|same| same.since).or(Some(now));
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.verdict() == other.verdict() && self.message == other.message
    }
}

/// The begin of a text, up to the limit of messages.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE)]
}
