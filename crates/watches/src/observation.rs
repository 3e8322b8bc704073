//! Reports of watches for metrics. The work of a watch must never depend on a report.

use std::sync::Arc;
use std::time::Duration;

use kube::core::ApiResource;
use names::HookId;

use super::trouble::WatchError;

/// The labels of a binding in metrics and logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    pub hook: HookId,
    /// The binding's name.
    pub binding: String,
    /// The binding's queue.
    pub queue: String,
    /// The kind of the binding's objects, as the binding names it.
    pub kind: String,
}

impl Labels {
    /// Whether the binding's kind is Secret, by any of its names.
    pub(super) fn are_of_secrets(&self) -> bool {
        ["secret", "secrets"]
            .iter()
            .any(|name| self.kind.eq_ignore_ascii_case(name))
    }
}

/// A measurable event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation<'a> {
    /// A filter was applied to an object.
    Filtered {
        /// The binding's labels.
        labels: &'a Labels,
        took: Duration,
    },
    /// An event was processed, from its last byte until its changes were sent.
    Handled {
        /// The binding's labels.
        labels: &'a Labels,
        took: Duration,
    },
    /// The size of a snapshot.
    Holds {
        /// The binding's labels.
        labels: &'a Labels,
        /// The number of objects in the snapshot.
        objects: usize,
    },
    /// A monitor was stopped: it no longer has a snapshot.
    Stopped {
        /// The binding's labels.
        labels: &'a Labels,
    },
    /// A watch or a list failed.
    WatchFailed(WatchError),
    /// A silent watch was replaced by another one.
    Replaced {
        /// The resource of the watch.
        resource: &'a ApiResource,
        /// The namespace; `None` for all.
        namespace: Option<&'a str>,
    },
}

/// Receives every measurable event; must not wait.
pub type Observe = Arc<dyn Fn(&Observation<'_>) + Send + Sync>;
