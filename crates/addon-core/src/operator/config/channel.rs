//! The settings of the channel that are in force. They concern no module, so that an edit of them runs none.

use super::Config;
use crate::artifact::settings::Settings;
use crate::name::SETTINGS;
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::values::section::ChannelKeys;

impl Config {
    /// The word of people about which version of us is wanted. Nothing as long as that is not known: the `ConfigMap` was not
    /// looked for yet, it is missing and no last good key is there, or a key of these is broken and was never good.
    pub(in crate::operator) fn channel_settings(&self) -> Option<Settings> {
        let is_there = self.sight.is_present() || self.kept.is_some() || !self.good.is_empty();
        let is_unknown = |key: &&str| self.problems.contains_key(*key) && !self.good.contains_key(*key);
        let is_known = self.sight.is_known() && is_there && !SETTINGS.iter().any(is_unknown);
        is_known.then(|| self.document.channel.settings())
    }
}

/// Tells which settings of the channel are new.
pub(in crate::operator) fn tell(cx: &mut Cx, before: &ChannelKeys, now: &ChannelKeys) {
    let keys = now.changes(before);
    if !keys.is_empty() {
        cx.tell(Notice::ConfigApplied { keys });
    }
}
