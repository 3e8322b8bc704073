//! Monitors in a namespace of the real control plane, started as the core would start them, and their reports.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::hook::config::{HookConfig, HookKind, WatchEvent};
use addon_core::object::ObjectView;
use addon_core::operator::effect::MonitorStart;
use addon_core::operator::event::{Event, ObjectChange};
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use kube_access::kubeconfig::Address;
use names::{HookId, HookName, MonitorId, Owner};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::plane::{ControlPlane, User};
use testbed::wait::wait_until;
use tokio::sync::mpsc;
use watches::lens::Sieve;
use watches::observation::Observation;
use watches::{Monitors, Reading, Settings};

use super::world::PATIENCE;

/// The channel holds as many changes as in the program.
const ROOM: usize = 256;

pub(crate) struct Stage {
    pub(crate) namespace: Namespace<'static>,
    pub(crate) monitors: Monitors,
    pub(crate) changes: mpsc::Receiver<Event>,
    pub(crate) watch_errors: Arc<Mutex<Vec<&'static str>>>,
    /// Watches that were replaced by other ones, each with its namespace.
    pub(crate) replaced: Arc<Mutex<Vec<(String, String)>>>,
    _dir: TempDir,
}

impl Stage {
    pub(crate) async fn new(prefix: &str) -> Self {
        Self::at(testbed::shared::plane(), prefix, None, Settings::BOUND).await
    }

    /// A stage with another URL of the API server.
    pub(crate) async fn at(
        plane: &'static ControlPlane,
        prefix: &str,
        server: Option<String>,
        bound: Duration,
    ) -> Self {
        let namespace = plane.namespace(prefix).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let address = Address {
            kube_config: vec![namespace.kubeconfig(User::Operator)],
            server,
            ..Address::default()
        };
        let cluster = Cluster::connect(
            &address,
            namespace.name(),
            Some(dir.path()),
            super::hook_tools::meters(),
        )
        .await
        .unwrap();
        let (door, changes) = mpsc::channel(ROOM);
        let settings = Settings {
            bound,
            patience: bound.min(Duration::from_secs(30)),
            compile: pointer,
        };
        let watch_errors = Arc::new(Mutex::new(Vec::new()));
        let replaced = Arc::new(Mutex::new(Vec::new()));
        let (errors, dead) = (Arc::clone(&watch_errors), Arc::clone(&replaced));
        let observe = Arc::new(move |observation: &Observation<'_>| match observation {
            Observation::WatchFailed(kind) => errors.lock().unwrap().push(kind.label()),
            Observation::Replaced { resource, namespace } => {
                let namespace = namespace.unwrap_or_default().to_owned();
                dead.lock().unwrap().push((resource.plural.clone(), namespace));
            }
            _ => {}
        });
        let kinds = Kinds::new(cluster.clone());
        let monitors = Monitors::new(&cluster, &kinds, door, settings, observe);
        Self {
            namespace,
            monitors,
            changes,
            watch_errors,
            replaced,
            _dir: dir,
        }
    }

    /// Starts the monitors of one hook. `bindings` is the hook's configuration; `NS` in it stands for the test's
    /// namespace.
    pub(crate) async fn start(&self, first: u64, bindings: Value) -> Result<Vec<MonitorId>, Failure> {
        let starts = self.starts(first, &bindings);
        let ids = starts.iter().map(|start| start.id).collect();
        self.monitors.start(&hook(), starts).await?;
        Ok(ids)
    }

    pub(crate) fn starts(&self, first: u64, bindings: &Value) -> Vec<MonitorStart> {
        let config = json!({"configVersion": "v1", "kubernetes": bindings}).to_string();
        let config = config.replace("NS", self.namespace.name());
        let config = HookConfig::parse(&config, HookKind::Global).unwrap();
        let bindings = config.kubernetes.into_iter().zip(first..);
        bindings
            .map(|(binding, id)| MonitorStart {
                id: MonitorId(id),
                binding,
            })
            .collect()
    }

    pub(crate) fn kubectl(&self, arguments: &str) -> String {
        let arguments = arguments.replace("NS", self.namespace.name());
        self.namespace.kubectl(arguments.split(' ')).unwrap()
    }

    /// Creates or replaces a `ConfigMap` with one key.
    pub(crate) fn put(&self, name: &str, x: &str) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": x}});
        let kubectl = self.namespace.kubectl_as(User::Admin);
        kubectl.apply(&object.to_string()).unwrap();
    }

    pub(crate) fn read(&self, id: MonitorId) -> Reading {
        self.monitors.snapshot(&[id]).remove(0).unwrap()
    }

    /// The contents of a snapshot on one line: filter results, or names where there is no filter.
    pub(crate) fn shown(&self, id: MonitorId) -> String {
        self.read(id).objects.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    pub(crate) async fn next(&mut self) -> ObjectChange {
        let change = tokio::time::timeout(PATIENCE, self.changes.recv()).await;
        let event = change.expect("no change is told");
        match event.expect("the door of the monitors is closed") {
            Event::ObjectChanged(change) => change,
            other => unreachable!("a monitor tells changes of objects: {other:?}"),
        }
    }

    /// The next changes, one line each: monitor, event, name, and filter result.
    pub(crate) async fn told(&mut self, count: usize) -> String {
        let mut lines = String::new();
        for _ in 0..count {
            let change = self.next().await;
            let event = match change.event {
                WatchEvent::Added => '+',
                WatchEvent::Modified => '~',
                WatchEvent::Deleted => '-',
            };
            let id = change.monitor.0;
            write!(lines, "{id}{event}{}={} ", change.name.name, show(&change.view)).unwrap();
        }
        lines.trim_end().to_owned()
    }

    /// Waits until a snapshot has these contents.
    pub(crate) fn until_shown(&self, id: MonitorId, expected: &str) {
        until(&format!("snapshot '{expected}'"), || {
            let shown = self.shown(id);
            if shown == expected { Ok(()) } else { Err(shown) }
        });
    }

    /// Checks that no other change is waiting: the next one is about an object that is written here.
    pub(crate) async fn nothing_but(&mut self, name: &str) {
        self.put(name, "last");
        let change = self.next().await;
        assert_eq!(change.name.name, name, "{change:?}");
    }
}

pub(crate) fn hook() -> HookId {
    HookId {
        owner: Owner::Global,
        name: HookName::parse("hooks/watcher.sh").unwrap(),
    }
}

/// Waits for a condition without blocking the async runtime.
pub(crate) fn until(what: &str, mut check: impl FnMut() -> Result<(), String>) {
    let outcome = tokio::task::block_in_place(|| wait_until(PATIENCE, what, || check().map(Some)));
    outcome.unwrap();
}

fn show(view: &ObjectView) -> String {
    match (&view.filter_result, &view.object) {
        (Some(result), _) => match result.to_value() {
            Value::String(text) => text,
            other => other.to_string(),
        },
        (None, Some(object)) => {
            let object = object.to_value();
            let text = |path| {
                object
                    .pointer(path)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            format!("{}:{}", text("/metadata/name"), text("/data/x"))
        }
        (None, None) => "()".to_owned(),
    }
}

/// A filter language in the place of jq, which can fail and panic on request: paths into the object, `.data.x`,
/// separated by commas.
pub(crate) fn pointer(text: &str) -> Result<Sieve, String> {
    if !text.starts_with('.') {
        return Err(format!("'{text}' is no path"));
    }
    let paths: Vec<String> = text.split(',').map(|path| path.replace('.', "/")).collect();
    Ok(Arc::new(move |object| {
        assert!(paths[0] != "/panic", "asked to");
        let found = paths.iter().map(|path| {
            let value = object.pointer(path);
            value.cloned().ok_or_else(|| format!("there is no {path}"))
        });
        let found: Vec<Value> = found.collect::<Result<_, _>>()?;
        Ok(if found.len() == 1 {
            found[0].clone()
        } else {
            Value::from(found)
        })
    }))
}
