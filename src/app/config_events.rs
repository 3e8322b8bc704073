//! The parameter `log.configmap.events`: while it is on, the log has a record for every reading of the ConfigMap and
//! every write to it. A record names keys and never shows their contents.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use addon_core::operator::effect::Job;
use addon_core::operator::event::ConfigRead;
use tracing::info;

/// Whether the parameter is on. Clones share the value.
#[derive(Debug, Clone, Default)]
pub(super) struct ConfigEvents(Arc<AtomicBool>);

impl ConfigEvents {
    pub(super) fn set(&self, told: bool) {
        self.0.store(told, Ordering::Relaxed);
    }

    /// Logs a reading of the ConfigMap.
    pub(super) fn read(&self, config_map: &str, read: &ConfigRead) {
        if !self.0.load(Ordering::Relaxed) {
            return;
        }
        match read {
            ConfigRead::Missing => info!(config_map, "ConfigMap is not there"),
            ConfigRead::Present {
                version,
                data,
                provenance: _,
            } => {
                let keys: Vec<&str> = data.keys().map(String::as_str).collect();
                info!(config_map, version, keys = keys.join(", "), "ConfigMap is read");
            }
        }
    }

    /// Logs the write that a job is about to make.
    pub(super) fn wanted(&self, job: &Job) {
        if let Job::SaveConfig { key, text, .. } = job
            && self.0.load(Ordering::Relaxed)
        {
            info!(key, bytes = text.len(), "Writing a key of the ConfigMap");
        }
    }
}
