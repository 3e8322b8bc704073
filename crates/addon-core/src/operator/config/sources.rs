//! The registries from which modules come, as the applied ConfigMap names them.

use channel_core::source::ModuleSources;
use names::MODULE_SOURCES;

use super::Config;
use crate::values::section::ConfigDocument;

impl Config {
    /// The applied sources of modules. `None` while they are not known.
    pub(in crate::operator) fn module_sources(&self) -> Option<ModuleSources> {
        let is_known = self.sight.is_known() && !self.are_sources_unknown();
        is_known.then(|| self.document.module_sources.good().cloned().unwrap_or_default())
    }

    /// Whether the key with the sources is broken and was never good, so that any module may have a source.
    pub(in crate::operator) fn are_sources_unknown(&self) -> bool {
        self.problems.contains_key(MODULE_SOURCES) && !self.good.contains_key(MODULE_SOURCES)
    }

    /// The sources that were applied in the life before.
    pub(in crate::operator) fn sources_before(&self) -> ModuleSources {
        let kept = self.kept.as_ref().map(|kept| ConfigDocument::parse(&kept.good));
        let sources = kept.and_then(|kept| kept.module_sources.good().cloned());
        sources.unwrap_or_default()
    }
}
