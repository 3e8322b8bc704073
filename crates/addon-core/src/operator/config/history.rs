//! Decides which reading of the ConfigMap is older than the known state.
//!
//! Must never compare a version from before a restore of the API server's store with a version from after it.

use super::Config;

impl Config {
    /// Forgets the known versions, because the API server's store was restored from a backup: they no longer tell which
    /// reading is older. The applied texts stay until the next reading.
    pub(in crate::operator) fn begin_anew(&mut self) {
        self.readings.forget();
        self.version = 0;
        self.floor = 0;
        self.written.clear();
    }

    /// Whether a reading with this version is older than the known state. After the ConfigMap was missing, the last seen
    /// version counts as new again.
    pub(super) fn is_stale(&self, version: u64) -> bool {
        let is_older = version < self.version.max(self.floor);
        version != 0 && (is_older || version == self.version && self.sight.is_present())
    }
}
