//! The applied settings of the channel. They concern no module, so that an edit of them runs no module.

use channel_core::settings::Settings;
use names::CHANNEL_SETTINGS;

use super::Config;
use crate::operator::cx::Cx;
use crate::operator::effect::Notice;
use crate::values::section::ChannelKeys;

impl Config {
    /// The settings by which people say which version of the operator they want. `None` as long as these are not known:
    /// the `ConfigMap` was not read yet, or it is missing and no last good text is known, or one of these keys is broken
    /// and was never good.
    pub(in crate::operator) fn channel_settings(&self) -> Option<Settings> {
        let is_there = self.sight.is_present() || self.kept.is_some() || !self.good.is_empty();
        let is_unknown = |key: &&str| self.problems.contains_key(*key) && !self.good.contains_key(*key);
        let is_known = self.sight.is_known() && is_there && !CHANNEL_SETTINGS.iter().any(is_unknown);
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
