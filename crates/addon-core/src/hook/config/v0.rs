//! Configurations without a version.
//!
//! Their lists are read less strictly: unknown fields of an item are ignored, as in the original.

use std::collections::BTreeSet;

use names::QueueName;
use serde_json::Value;

use super::fields::{Fields, Problems};
use super::reader::{Reader, name_or, selector};
use super::{ConfigError, ConfigVersion, HookConfig, HookKind, KubernetesBinding, NamespaceSelector, ScheduleBinding};
use super::{WatchEvent, stages};

const EVENTS: [(&str, WatchEvent); 3] = [
    ("add", WatchEvent::Added),
    ("update", WatchEvent::Modified),
    ("delete", WatchEvent::Deleted),
];

/// Keys that only versioned configurations have. If one of them is there, `configVersion` is missing.
const NEWER: [&str; 5] = [
    "kubernetes",
    "kubernetesValidating",
    "kubernetesMutating",
    "kubernetesCustomResourceConversion",
    "settings",
];

pub(super) fn read(value: &Value, kind: HookKind) -> Result<HookConfig, ConfigError> {
    if let Some(key) = NEWER.into_iter().find(|key| value.get(key).is_some()) {
        return Err(ConfigError::NoVersion(key));
    }
    let schema = Problems::default();
    let mut root = Fields::root(value, &schema);
    // Marked as known, so that the error about a misspelled key suggests it.
    root.skip("configVersion");
    root.require_count(1);
    let mut config = HookConfig::empty(ConfigVersion::V0);
    config.stages = stages(&mut root, kind);

    let mut reader = Reader::default();
    for (index, fields) in root.objects("schedule", 0).into_iter().enumerate() {
        config
            .schedules
            .extend(schedule(fields, reader.at_item("schedule", index)));
    }
    for (index, fields) in root.objects("onKubernetesEvent", 0).into_iter().enumerate() {
        config
            .kubernetes
            .extend(on_kubernetes_event(fields, reader.at_item("onKubernetesEvent", index)));
    }
    root.finish();
    reader.finish(config, schema)
}

fn schedule(mut fields: Fields<'_>, reader: &mut Reader) -> Option<ScheduleBinding> {
    let name = reader.name(name_or(&mut fields, "schedule"));
    let crontab = reader.crontab(fields.required_text("crontab"));
    Some(ScheduleBinding {
        allow_failure: fields.flag("allowFailure", false),
        name: name?,
        crontab: crontab?,
        include_snapshots_from: Vec::new(),
        queue: QueueName::main(),
        group: None,
        timeout: None,
        when: None,
    })
}

/// Reads a binding to objects, which has no first run. The context has the object's name and kind, so the whole object
/// is needed.
fn on_kubernetes_event(mut fields: Fields<'_>, reader: &mut Reader) -> Option<KubernetesBinding> {
    let name = reader.name(name_or(&mut fields, "onKubernetesEvent"));
    let kind = fields.required_text("kind").to_owned();
    let events = fields.words("event", 0, &EVENTS).unwrap_or_default();
    let all_events = || EVENTS.iter().map(|(_, event)| *event).collect();
    let namespaces = fields.object("namespaceSelector").map(|mut selector| {
        let any = selector.flag("any", false);
        let names = selector.texts("matchNames", 0).unwrap_or_default();
        NamespaceSelector {
            names: if any { Vec::new() } else { names },
            labels: None,
        }
    });
    Some(KubernetesBinding {
        api_version: None,
        kind,
        events: if events.is_empty() {
            all_events()
        } else {
            BTreeSet::from_iter(events)
        },
        run_on_synchronization: false,
        wait_for_synchronization: true,
        keep_full_objects: true,
        jq_filter: reader.jq_filter(fields.text("jqFilter")),
        allow_failure: fields.flag("allowFailure", false),
        names: fields
            .text("objectName")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .into_iter()
            .collect(),
        labels: selector(&mut fields, "selector", reader),
        fields: Vec::new(),
        namespaces: namespaces.filter(|selector| !selector.names.is_empty()),
        include_snapshots_from: Vec::new(),
        queue: QueueName::main(),
        group: None,
        timeout: None,
        when: None,
        name: name?,
    })
}
