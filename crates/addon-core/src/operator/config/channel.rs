//! The settings of the channel that are in force. They concern no module, so that an edit of them runs none.

use crate::artifact::settings::Settings;
use crate::name::SETTINGS;
use crate::operator::Operator;
use crate::operator::effect::Notice;
use crate::values::section::ChannelKeys;

impl Operator {
    /// The word of people about which version of us is wanted. Nothing as long as that is not known: the `ConfigMap` was not
    /// looked for yet, it is missing and no last good key is there, or a key of these is broken and was never good.
    pub fn channel_settings(&self) -> Option<Settings> {
        let config = &self.config;
        let is_there = config.present || config.kept.is_some() || !config.good.is_empty();
        let is_unknown = |key: &&str| config.problems.contains_key(*key) && !config.good.contains_key(*key);
        let is_known = config.seen && is_there && !SETTINGS.iter().any(is_unknown);
        is_known.then(|| config.document.channel.settings())
    }

    pub(super) fn tell_channel(&mut self, before: &ChannelKeys, now: &ChannelKeys) {
        let keys = now.changes(before);
        if !keys.is_empty() {
            self.cx.tell(Notice::ConfigApplied { keys });
        }
    }
}
