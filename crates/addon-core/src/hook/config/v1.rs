//! Configurations of version 1.

use std::collections::{BTreeMap, BTreeSet};

use names::BindingName;
use serde_json::Value;

use super::binding::{Condition, FieldRequirement, KubernetesBinding, NamespaceSelector, ScheduleBinding, WatchEvent};
use super::dialect::Dialect;
use super::fields::{Fields, Problems};
use super::reader::{Reader, is_domain, name_or, selector};
use super::webhook::{admission, conversion};
use super::{ConfigError, ConfigVersion, HookConfig, HookKind, settings};

const CONVERSION: &str = "kubernetesCustomResourceConversion";

pub(super) fn read(value: &Value, kind: HookKind, dialect: Dialect) -> Result<HookConfig, ConfigError> {
    let schema = Problems::default();
    let mut root = Fields::root(value, &schema);
    root.skip("configVersion");
    dialect.begin(&mut root);
    let mut reader = Reader::default();
    let mut config = HookConfig::empty(ConfigVersion::V1);
    config.stages = dialect.stages(&mut root, kind);
    let settings = dialect.settings(&mut root, &mut reader);
    config.rate_limit = settings.rate_limit;
    config.timeout = settings.timeout;
    config.dry_run = root.flag("dryRun", false);
    for (index, fields) in root.objects("schedule", 1).into_iter().enumerate() {
        config
            .schedules
            .extend(schedule(fields, reader.at_item("schedule", index), dialect));
    }
    for (index, fields) in root.objects("kubernetes", 1).into_iter().enumerate() {
        config
            .kubernetes
            .extend(kubernetes(fields, reader.at_item("kubernetes", index), dialect));
    }
    for (index, fields) in root.objects("kubernetesValidating", 1).into_iter().enumerate() {
        config
            .validating
            .extend(admission(fields, reader.at_item("kubernetesValidating", index)));
    }
    for (index, fields) in root.objects("kubernetesMutating", 1).into_iter().enumerate() {
        config
            .mutating
            .extend(admission(fields, reader.at_item("kubernetesMutating", index)));
    }
    for (index, fields) in root.objects(CONVERSION, 1).into_iter().enumerate() {
        config
            .conversions
            .extend(conversion(fields, reader.at_item(CONVERSION, index)));
    }
    dialect.finish(root);
    check_snapshots(&config, &mut reader);
    check_webhook_names(&config, &mut reader);
    add_group_snapshots(&mut config);
    settings::hand_down(&mut config);
    reader.finish(config, schema)
}

fn schedule(mut fields: Fields<'_>, reader: &mut Reader, dialect: Dialect) -> Option<ScheduleBinding> {
    let name = reader.name(name_or(&mut fields, "schedule"));
    let crontab = fields.required_text("crontab").to_owned();
    let queue = reader.queue(fields.text("queue"));
    let include_snapshots_from = snapshots(&mut fields, reader);
    let group = dialect.group(&mut fields);
    let allow_failure = fields.flag("allowFailure", false);
    let timeout = reader.timeout(&mut fields);
    let when = condition(&mut fields, reader);
    dialect.finish(fields);
    let crontab = reader.crontab(&crontab);
    Some(ScheduleBinding {
        name: name?,
        crontab: crontab?,
        allow_failure,
        include_snapshots_from,
        queue: queue?,
        group,
        timeout,
        when,
    })
}

/// Reads the condition of a binding.
fn condition(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Condition> {
    let mut when = fields.object("when")?;
    when.require("snapshots");
    let names = when.texts("snapshots", 1).unwrap_or_default();
    let condition = Condition {
        snapshots: names.iter().filter_map(|name| reader.snapshot("when", name)).collect(),
        jq_filter: reader.jq_filter(when.text("jqFilter")),
    };
    when.finish();
    Some(condition)
}

pub(super) fn group(fields: &mut Fields<'_>) -> Option<String> {
    fields
        .text("group")
        .filter(|group| !group.is_empty())
        .map(str::to_owned)
}

pub(super) fn snapshots(fields: &mut Fields<'_>, reader: &mut Reader) -> Vec<BindingName> {
    let names = fields.texts("includeSnapshotsFrom", 1).unwrap_or_default();
    names
        .iter()
        .filter_map(|name| reader.snapshot("includeSnapshotsFrom", name))
        .collect()
}

pub(super) const EVENTS: [(&str, WatchEvent); 3] = [
    ("Added", WatchEvent::Added),
    ("Modified", WatchEvent::Modified),
    ("Deleted", WatchEvent::Deleted),
];

fn kubernetes(mut fields: Fields<'_>, reader: &mut Reader, dialect: Dialect) -> Option<KubernetesBinding> {
    let name = reader.name(name_or(&mut fields, "kubernetes"));
    let kind = fields.required_text("kind").to_owned();
    let api_version = fields
        .text("apiVersion")
        .filter(|version| !version.is_empty())
        .map(str::to_owned);
    if let Some(version) = api_version.as_deref().filter(|version| !is_group_version(version)) {
        reader.note(&format!(
            "apiVersion is invalid: '{version}' should be a version, or a group and a version: v1, apps/v1"
        ));
    }
    let events = dialect.events(&mut fields);
    // An empty text counts as absent.
    let queue = fields.text("queue").filter(|queue| !queue.is_empty());
    let wait = fields.flag("waitForSynchronization", true);
    fields.text("resynchronizationPeriod");
    let names = names(&mut fields, "nameSelector");
    let field_requirements = field_selector(&mut fields, dialect);
    if !names.is_empty()
        && field_requirements
            .iter()
            .any(|requirement| requirement.field == "metadata.name")
    {
        reader.note("fieldSelector 'metadata.name' and nameSelector.matchNames are mutually exclusive");
    }
    let queue_name = reader.queue(queue);
    let binding = KubernetesBinding {
        name: name?,
        api_version,
        kind,
        events: events.map_or_else(|| EVENTS.iter().map(|(_, event)| *event).collect(), BTreeSet::from_iter),
        run_on_synchronization: fields.flag("executeHookOnSynchronization", true),
        // A first run in the main queue always delays the tasks behind it, so there is always a wait.
        wait_for_synchronization: wait || queue.is_none(),
        keep_full_objects: fields.flag("keepFullObjectsInMemory", dialect.keeps_full_objects()),
        jq_filter: reader.jq_filter(fields.text("jqFilter")),
        allow_failure: fields.flag("allowFailure", false),
        names,
        labels: selector(&mut fields, "labelSelector", reader),
        fields: field_requirements,
        namespaces: namespaces(&mut fields, reader),
        include_snapshots_from: snapshots(&mut fields, reader),
        queue: queue_name?,
        group: dialect.group(&mut fields),
        timeout: reader.timeout(&mut fields),
        when: condition(&mut fields, reader),
    };
    dialect.finish(fields);
    Some(binding)
}

/// Whether a text has the form `v1` or `apps/v1`.
fn is_group_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    parts.len() <= 2 && parts.iter().all(|part| !part.is_empty())
}

fn names(fields: &mut Fields<'_>, key: &'static str) -> Vec<String> {
    let Some(mut selector) = fields.object(key) else {
        return Vec::new();
    };
    selector.require("matchNames");
    let names = selector.texts("matchNames", 0).unwrap_or_default();
    selector.finish();
    names
}

fn field_selector(fields: &mut Fields<'_>, dialect: Dialect) -> Vec<FieldRequirement> {
    const OPERATORS: [(&str, bool); 5] = [
        ("=", true),
        ("==", true),
        ("Equals", true),
        ("!=", false),
        ("NotEquals", false),
    ];
    let Some(mut selector) = fields.object("fieldSelector") else {
        return Vec::new();
    };
    selector.require("matchExpressions");
    let mut requirements = Vec::new();
    for mut fields in selector.objects("matchExpressions", 0) {
        fields.require("operator");
        let field = fields.required_text("field").to_owned();
        let equals = fields.word("operator", &OPERATORS);
        let value = dialect.compared(&mut fields).to_owned();
        fields.finish();
        requirements.extend(equals.map(|equals| FieldRequirement { field, equals, value }));
    }
    selector.finish();
    requirements
}

fn namespaces(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<NamespaceSelector> {
    let mut namespace = fields.object("namespace")?;
    namespace.require_count(1);
    let found = NamespaceSelector {
        names: names(&mut namespace, "nameSelector"),
        labels: selector(&mut namespace, "labelSelector", reader),
    };
    namespace.finish();
    Some(found)
}

/// Checks that each included snapshot belongs to exactly one binding.
fn check_snapshots(config: &HookConfig, reader: &mut Reader) {
    let mut bindings: BTreeMap<&BindingName, usize> = BTreeMap::new();
    for binding in &config.kubernetes {
        *bindings.entry(&binding.name).or_default() += 1;
    }
    let HookConfig {
        schedules,
        kubernetes,
        validating,
        mutating,
        conversions,
        ..
    } = config;
    let lists = [
        (
            "schedule",
            schedules
                .iter()
                .map(|binding| &binding.include_snapshots_from)
                .collect::<Vec<_>>(),
        ),
        (
            "kubernetes",
            kubernetes
                .iter()
                .map(|binding| &binding.include_snapshots_from)
                .collect(),
        ),
        (
            "kubernetesValidating",
            validating
                .iter()
                .map(|binding| &binding.include_snapshots_from)
                .collect(),
        ),
        (
            "kubernetesMutating",
            mutating.iter().map(|binding| &binding.include_snapshots_from).collect(),
        ),
        (
            CONVERSION,
            conversions.iter().map(|b| &b.include_snapshots_from).collect(),
        ),
    ];
    for (list, includes) in lists {
        for (index, names) in includes.into_iter().enumerate() {
            note_unknown(&bindings, names, reader.at_item(list, index), "includeSnapshotsFrom");
        }
    }
    let of_schedules = schedules.iter().map(|binding| &binding.when).enumerate();
    let of_objects = kubernetes.iter().map(|binding| &binding.when).enumerate();
    let conditions = of_schedules.map(|one| ("schedule", one));
    for (list, (index, when)) in conditions.chain(of_objects.map(|one| ("kubernetes", one))) {
        let names = when.as_ref().map(|when| when.snapshots.as_slice()).unwrap_or_default();
        note_unknown(&bindings, names, reader.at_item(list, index), "when");
    }
}

/// Notes the names that do not belong to exactly one binding.
fn note_unknown(bindings: &BTreeMap<&BindingName, usize>, names: &[BindingName], reader: &mut Reader, field: &str) {
    for name in names {
        let problem = match bindings.get(name) {
            Some(1) => continue,
            None => format!("'{name}' binding name not found among the kubernetes bindings of this hook"),
            Some(several) => format!("there are {several} '{name}' binding names: which one is meant?"),
        };
        reader.note(&format!("{field} is invalid: {problem}"));
    }
}

fn check_webhook_names(config: &HookConfig, reader: &mut Reader) {
    // The names of mutating bindings are checked by the API server only, as in the original.
    for (index, binding) in config.validating.iter().enumerate() {
        if !is_domain(binding.name.as_str()) {
            let problem = format!(
                "name is invalid: '{}' should be a domain in small letters",
                binding.name
            );
            reader.at_item("kubernetesValidating", index).note(&problem);
        }
    }
    for (list, bindings) in [
        ("kubernetesValidating", &config.validating),
        ("kubernetesMutating", &config.mutating),
    ] {
        let mut seen = BTreeSet::new();
        for (index, binding) in bindings.iter().enumerate() {
            if !seen.insert(&binding.name) {
                let problem = format!("name is invalid: '{}' is not unique", binding.name);
                reader.at_item(list, index).note(&problem);
            }
        }
    }
}

/// Adds the snapshots of all bindings of a group to each binding of the group, behind the binding's own list.
fn add_group_snapshots(config: &mut HookConfig) {
    let mut groups: BTreeMap<String, Vec<BindingName>> = BTreeMap::new();
    for binding in &config.kubernetes {
        if let Some(group) = &binding.group {
            groups.entry(group.clone()).or_default().push(binding.name.clone());
        }
    }
    let extend = |group: &Option<String>, snapshots: &mut Vec<BindingName>| {
        for name in group.iter().filter_map(|group| groups.get(group)).flatten() {
            if !snapshots.contains(name) {
                snapshots.push(name.clone());
            }
        }
    };
    config
        .schedules
        .iter_mut()
        .for_each(|binding| extend(&binding.group, &mut binding.include_snapshots_from));
    config
        .kubernetes
        .iter_mut()
        .for_each(|binding| extend(&binding.group, &mut binding.include_snapshots_from));
    config
        .validating
        .iter_mut()
        .for_each(|binding| extend(&binding.group, &mut binding.include_snapshots_from));
    config
        .mutating
        .iter_mut()
        .for_each(|binding| extend(&binding.group, &mut binding.include_snapshots_from));
    config
        .conversions
        .iter_mut()
        .for_each(|binding| extend(&binding.group, &mut binding.include_snapshots_from));
}
