//! Which reading of the ConfigMap is older than what is known.
//!
//! Must never take two versions for comparable that were told before and after the store went back to a backup.

use super::Config;

impl Config {
    /// The store went back: no version that was seen before says which reading is older. What was good stays in force until
    /// the next reading.
    pub(in crate::operator) fn begin_anew(&mut self) {
        self.readings.forget();
        self.version = 0;
        self.floor = 0;
        self.written.clear();
    }

    /// Older than what is known. After the ConfigMap was missing, the last version that was seen is news again.
    pub(super) fn is_stale(&self, version: u64) -> bool {
        let is_older = version < self.version.max(self.floor);
        version != 0 && (is_older || version == self.version && self.sight.is_present())
    }
}
