//! The keys of the `ConfigMap` that say which version of the operator is wanted.
//!
//! These keys are no sections of modules. A mistake in one of these keys must never affect another key.

use std::collections::BTreeSet;

use channel_core::channel::Channel;
use channel_core::policy::Policy;
use channel_core::reference::ImageDigest;
use channel_core::settings;
use channel_core::settings::Settings;
use names::{RELEASE_APPROVED, RELEASE_CHANNEL, RELEASE_POLICY};
use serde::{Deserialize, Serialize};

use super::Entry;

/// The valid contents of the keys `releaseChannel`, `releasePolicy` and `releaseApproved` of the ConfigMap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelKeys {
    /// The channel.
    pub channel: Entry<Channel>,
    /// The policy by which a version is taken.
    pub policy: Entry<Policy>,
    /// Digests that a person has approved.
    pub approved: Entry<BTreeSet<ImageDigest>>,
}

impl ChannelKeys {
    /// Reads one of these keys, and returns its mistake; `None` for any other key.
    pub(super) fn take(&mut self, key: &str, text: &str) -> Option<Result<(), String>> {
        match key {
            RELEASE_CHANNEL => Some(put(&mut self.channel, Channel::parse(text))),
            RELEASE_POLICY => Some(put(&mut self.policy, Policy::parse(text))),
            RELEASE_APPROVED => Some(put(&mut self.approved, settings::approved(text))),
            _ => None,
        }
    }

    /// The settings of all keys. An absent or broken key sets nothing.
    pub fn settings(&self) -> Settings {
        Settings {
            channel: self.channel.good().cloned(),
            policy: self.policy.good().cloned().unwrap_or_default(),
            approved: self.approved.good().cloned().unwrap_or_default(),
        }
    }

    /// The names of the changed keys.
    pub fn changes(&self, before: &Self) -> Vec<String> {
        let differ = [
            (RELEASE_CHANNEL, self.channel != before.channel),
            (RELEASE_POLICY, self.policy != before.policy),
            (RELEASE_APPROVED, self.approved != before.approved),
        ];
        let keys = differ.into_iter().filter(|(_, differs)| *differs);
        keys.map(|(key, _)| key.to_owned()).collect()
    }
}

fn put<T, E: ToString>(entry: &mut Entry<T>, read: Result<T, E>) -> Result<(), String> {
    let (value, told) = match read {
        Ok(value) => (Entry::Good(value), Ok(())),
        Err(error) => (Entry::Bad, Err(error.to_string())),
    };
    *entry = value;
    told
}
