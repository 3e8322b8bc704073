//! Reports of watches for the metrics. Must never be needed by a watch to do its work.

use std::sync::Arc;
use std::time::Duration;

use addon_core::name::HookId;
use kube::core::ApiResource;

use super::trouble::WatchError;

/// How a binding is labelled in metrics and logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// The hook.
    pub hook: HookId,
    /// The binding's name.
    pub binding: String,
    /// The binding's queue.
    pub queue: String,
    /// The kind of its objects, as the binding names it.
    pub kind: String,
}

impl Labels {
    /// By any of the names that a binding may give to them.
    pub(super) fn are_of_secrets(&self) -> bool {
        ["secret", "secrets"]
            .iter()
            .any(|name| self.kind.eq_ignore_ascii_case(name))
    }
}

/// One thing that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation<'a> {
    /// A filter was applied to an object.
    Filtered {
        /// Its labels: module, hook and binding.
        labels: &'a Labels,
        /// How long it took.
        took: Duration,
    },
    /// An event was processed, from its last byte until the changes were sent.
    Handled {
        /// Its labels: module, hook and binding.
        labels: &'a Labels,
        /// How long it took.
        took: Duration,
    },
    /// The number of objects of a snapshot.
    Holds {
        /// Its labels: module, hook and binding.
        labels: &'a Labels,
        /// How many.
        objects: usize,
    },
    /// A monitor was stopped: it no longer has a snapshot.
    Stopped {
        /// Its labels: module, hook and binding.
        labels: &'a Labels,
    },
    /// A watch or a list failed.
    WatchFailed(WatchError),
    /// A watch was silent for too long, and another one takes its place.
    Replaced {
        /// Its selection.
        resource: &'a ApiResource,
        /// Where, `None` for everywhere.
        namespace: Option<&'a str>,
    },
}

/// Hears of everything that can be measured; must not wait for anything.
pub type Observe = Arc<dyn Fn(&Observation<'_>) + Send + Sync>;
