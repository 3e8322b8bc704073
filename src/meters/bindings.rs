//! The metrics of watches and of bindings to cluster objects.
//!
//! The two programs label the same facts differently: with modules a series names the module, the hook and the binding.
//! Must hide the difference from the parts that report facts.

use std::time::Duration;

use addon_core::name::{HookId, ModuleName};

use super::table::{alone, cluster};
use super::{Meters, count};

/// One binding to cluster objects.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// The hook.
    pub hook: &'a HookId,
    /// Its name.
    pub binding: &'a str,
    /// The queue that its tasks go to.
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

/// How a watch ended.
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

/// How an attempt to start a hook's watches ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enabled {
    /// All of them run.
    Succeeded,
    /// It is tried again.
    Failed,
}

impl Meters {
    /// How many objects the binding's snapshot has, those of all namespaces together.
    pub fn snapshot_objects(&self, bound: &Bound<'_>, objects: usize) {
        self.set(&alone::KUBE_SNAPSHOT_OBJECTS, bound.alone(), count(objects));
        self.set(&cluster::KUBE_SNAPSHOT_OBJECTS, bound.of_module(), count(objects));
    }

    /// The binding has ended, and its snapshot with it.
    pub fn snapshot_gone(&self, bound: &Bound<'_>) {
        self.end(&alone::KUBE_SNAPSHOT_OBJECTS, bound.alone());
        self.end(&cluster::KUBE_SNAPSHOT_OBJECTS, bound.of_module());
    }

    /// The binding's filter has seen one object.
    pub fn jq_seconds(&self, bound: &Bound<'_>, took: Duration) {
        self.observe(&alone::KUBE_JQ_FILTER_SECONDS, bound.alone(), took);
        self.observe(&cluster::KUBE_JQ_FILTER_SECONDS, bound.of_module(), took);
    }

    /// One event of the binding is through: filtered, compared, handed on.
    pub fn event_seconds(&self, bound: &Bound<'_>, took: Duration) {
        self.observe(&alone::KUBE_EVENT_SECONDS, bound.alone(), took);
        self.observe(&cluster::KUBE_EVENT_SECONDS, bound.of_module(), took);
    }

    /// A snapshot was wanted from a binding that has no watch.
    pub fn monitor_missing(&self, binding: &str) {
        self.add(&cluster::MONITOR_MISSING, [binding], 1.0);
    }

    /// The watches of a hook were started, or could not be.
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

    /// A watch ended with an error and is established anew.
    pub fn watch_error(&self, error: WatchError) {
        self.add(&cluster::WATCH_ERRORS, [error.label()], 1.0);
    }

    /// A watch was replaced because nothing was heard of it any more. `gvr` as in `apps/v1/deployments`.
    pub fn watch_replaced(&self, gvr: &str, namespace: &str) {
        self.add(&cluster::WATCH_REPLACED, [gvr, namespace], 1.0);
    }

    /// Nothing has proved for this long that the watch is alive, which is longer than it may be.
    pub fn watch_stale(&self, kind: &str, namespace: &str, age: Duration) {
        self.set(&cluster::KUBE_WATCH_STALE, [kind, namespace], age.as_secs_f64());
    }

    /// The watch is alive, or ended.
    pub fn watch_fresh(&self, kind: &str, namespace: &str) {
        self.end(&cluster::KUBE_WATCH_STALE, [kind, namespace]);
    }
}
