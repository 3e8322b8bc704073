//! The metrics of watches and of kubernetes bindings.
//!
//! The two programs label the same facts differently: with modules a series names the module, the hook and the binding.
//! Callers must not have to know the difference.

use std::time::Duration;

use names::{HookId, ModuleName};

use super::table::{alone, cluster};
use super::{Meters, count};

/// A kubernetes binding.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    pub hook: &'a HookId,
    /// The binding's name.
    pub binding: &'a str,
    /// The queue of the binding's tasks.
    pub queue: &'a str,
    /// The kind of the objects.
    pub kind: &'a str,
}

impl<'a> Bound<'a> {
    fn alone(&self) -> [&'a str; 3] {
        [self.hook.name.as_str(), self.binding, self.queue]
    }

    fn of_module(&self) -> [&'a str; 5] {
        let module = self.hook.owner.module().map_or("", ModuleName::as_str);
        [module, self.hook.name.as_str(), self.binding, self.queue, self.kind]
    }
}

/// The way in which a watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchError {
    /// The server no longer has the changes since our last event.
    Expired,
    /// The server closed the stream.
    Eof,
    /// The connection broke.
    UnexpectedEof,
    /// Anything else.
    Failed,
}

impl WatchError {
    fn label(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Eof => "eof",
            Self::UnexpectedEof => "unexpected-eof",
            Self::Failed => "fail",
        }
    }
}

/// The result of starting a hook's watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enabled {
    /// All watches run.
    Succeeded,
    /// The start failed and is tried again.
    Failed,
}

impl Meters {
    /// Sets the number of objects in the binding's snapshot, over all namespaces.
    pub fn snapshot_objects(&self, bound: &Bound<'_>, objects: usize) {
        self.set(&alone::KUBE_SNAPSHOT_OBJECTS, bound.alone(), count(objects));
        self.set(&cluster::KUBE_SNAPSHOT_OBJECTS, bound.of_module(), count(objects));
    }

    /// Removes the series of a binding that has ended.
    pub fn snapshot_gone(&self, bound: &Bound<'_>) {
        self.end(&alone::KUBE_SNAPSHOT_OBJECTS, bound.alone());
        self.end(&cluster::KUBE_SNAPSHOT_OBJECTS, bound.of_module());
    }

    /// Records the duration of the binding's filter for one object.
    pub fn jq_seconds(&self, bound: &Bound<'_>, took: Duration) {
        self.observe(&alone::KUBE_JQ_FILTER_SECONDS, bound.alone(), took);
        self.observe(&cluster::KUBE_JQ_FILTER_SECONDS, bound.of_module(), took);
    }

    /// Records the duration of processing one event of the binding.
    pub fn event_seconds(&self, bound: &Bound<'_>, took: Duration) {
        self.observe(&alone::KUBE_EVENT_SECONDS, bound.alone(), took);
        self.observe(&cluster::KUBE_EVENT_SECONDS, bound.of_module(), took);
    }

    /// Counts a snapshot that was requested from a binding without a watch.
    pub fn monitor_missing(&self, binding: &str) {
        self.add(&cluster::MONITOR_MISSING, [binding], 1.0);
    }

    /// Records the start of a hook's watches.
    pub fn bindings_enabled(&self, hook: &HookId, took: Duration, end: Enabled) {
        let labels = [hook.name.as_str()];
        let (succeeded, failed) = match end {
            Enabled::Succeeded => (1.0, 0.0),
            Enabled::Failed => (0.0, 1.0),
        };
        self.set(&alone::HOOK_ENABLE_SECONDS, labels, took.as_secs_f64());
        self.raise(&alone::HOOK_ENABLE_SUCCESS, labels, succeeded);
        self.add(&alone::HOOK_ENABLE_ERRORS, labels, failed);
    }

    /// Counts a watch that ended with an error.
    pub fn watch_error(&self, error: WatchError) {
        self.add(&cluster::WATCH_ERRORS, [error.label()], 1.0);
    }

    /// Counts a silent watch that was replaced. `gvr` has the form `apps/v1/deployments`.
    pub fn watch_replaced(&self, gvr: &str, namespace: &str) {
        self.add(&cluster::WATCH_REPLACED, [gvr, namespace], 1.0);
    }

    /// Sets the time since the last sign that a watch works. Called only when this time exceeds the bound.
    pub fn watch_stale(&self, kind: &str, namespace: &str, age: Duration) {
        self.set(&cluster::KUBE_WATCH_STALE, [kind, namespace], age.as_secs_f64());
    }

    /// Removes the series of [`Meters::watch_stale`], because the watch works or has ended.
    pub fn watch_fresh(&self, kind: &str, namespace: &str) {
        self.end(&cluster::KUBE_WATCH_STALE, [kind, namespace]);
    }
}
