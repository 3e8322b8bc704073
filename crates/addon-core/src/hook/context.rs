//! Binding contexts: why a hook runs, in the form in which the hook reads it.
//!
//! A context says which snapshots it wants, and not what is in them: they are read when the hook starts, once for all
//! contexts of a run. Must never drop a context that is not told by another one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::config::{ConfigVersion, HookConfig, KubernetesBinding, ScheduleBinding, Stage, WatchEvent};
use crate::name::BindingName;

/// Snapshots by binding; their items are objects as contexts show them.
pub type Snapshots = BTreeMap<BindingName, Vec<ObjectView>>;

/// An object as a binding shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectView {
    /// The object, unless the binding keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// What the filter found, if there is a filter.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub filter_result: Option<Value>,
}

/// Keeps a filter that found null apart from no filter.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
}

/// Why a hook runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BindingContext {
    /// A stage of the operator or of a module is reached.
    Stage {
        /// The stage.
        stage: Stage,
        /// Every snapshot of the hook, except at start-up.
        snapshots: Vec<BindingName>,
    },
    /// A time has come.
    Schedule(Told),
    /// The objects that are there at first.
    Synchronization(Told),
    /// Something happened to an object.
    Event {
        /// Binding, group and snapshots.
        told: Told,
        /// What happened.
        event: WatchEvent,
        /// To what.
        object: ObjectView,
    },
}

/// What contexts of bindings have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Name of the binding.
    pub binding: BindingName,
    /// Bindings that are told as one.
    pub group: Option<String>,
    /// Snapshots that are brought along.
    pub snapshots: Vec<BindingName>,
}

impl From<&ScheduleBinding> for Told {
    fn from(binding: &ScheduleBinding) -> Self {
        Self {
            binding: binding.name.clone(),
            group: binding.group.clone(),
            snapshots: binding.include_snapshots_from.clone(),
        }
    }
}

impl From<&KubernetesBinding> for Told {
    fn from(binding: &KubernetesBinding) -> Self {
        Self {
            binding: binding.name.clone(),
            group: binding.group.clone(),
            snapshots: binding.include_snapshots_from.clone(),
        }
    }
}

impl BindingContext {
    /// The context of a stage for a hook.
    pub fn stage(stage: Stage, config: &HookConfig) -> Self {
        let snapshots = match stage {
            Stage::OnStartup => Vec::new(),
            Stage::BeforeAll
            | Stage::AfterAll
            | Stage::BeforeHelm
            | Stage::AfterHelm
            | Stage::BeforeDeleteHelm
            | Stage::AfterDeleteHelm => config.kubernetes.iter().map(|binding| binding.name.clone()).collect(),
        };
        Self::Stage { stage, snapshots }
    }

    /// The context of a time for a binding.
    pub fn schedule(binding: &ScheduleBinding) -> Self {
        Self::Schedule(binding.into())
    }

    /// Name of the binding.
    pub fn binding(&self) -> &str {
        match self {
            Self::Stage { stage, .. } => stage.key(),
            Self::Schedule(told) | Self::Synchronization(told) | Self::Event { told, .. } => told.binding.as_str(),
        }
    }

    /// The group under which it is told.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Stage { .. } => None,
            Self::Schedule(told) | Self::Synchronization(told) | Self::Event { told, .. } => told.group.as_deref(),
        }
    }

    /// The snapshots that must be read for it, its own objects included.
    pub fn wanted_snapshots(&self) -> impl Iterator<Item = &BindingName> {
        let (snapshots, own) = match self {
            Self::Stage { snapshots, .. } => (snapshots, None),
            Self::Schedule(told) | Self::Event { told, .. } => (&told.snapshots, None),
            Self::Synchronization(told) => (&told.snapshots, Some(&told.binding)),
        };
        snapshots.iter().chain(own)
    }

    /// The context as the hook reads it.
    pub fn to_value(&self, version: ConfigVersion, snapshots: &Snapshots) -> Value {
        let mut fields = Map::new();
        fields.insert("binding".to_owned(), self.binding().into());
        match version {
            ConfigVersion::V0 => self.add_resource(&mut fields),
            ConfigVersion::V1 => self.add_fields(&mut fields, snapshots),
        }
        Value::Object(fields)
    }

    fn add_fields(&self, fields: &mut Map<String, Value>, snapshots: &Snapshots) {
        let told = match self {
            Self::Stage {
                stage: Stage::OnStartup,
                ..
            } => return,
            Self::Stage { snapshots: names, .. } => {
                fields.insert("snapshots".to_owned(), views(names, snapshots));
                return;
            }
            Self::Schedule(told) | Self::Synchronization(told) | Self::Event { told, .. } => told,
        };
        if !told.snapshots.is_empty() {
            fields.insert("snapshots".to_owned(), views(&told.snapshots, snapshots));
        }
        if let Some(group) = &told.group {
            fields.insert("type".to_owned(), "Group".into());
            fields.insert("groupName".to_owned(), group.as_str().into());
            return;
        }
        match self {
            Self::Stage { .. } => {}
            Self::Schedule(_) => drop(fields.insert("type".to_owned(), "Schedule".into())),
            Self::Synchronization(_) => {
                fields.insert("type".to_owned(), "Synchronization".into());
                fields.insert("objects".to_owned(), view_list(snapshots.get(&told.binding)));
            }
            Self::Event { event, object, .. } => {
                fields.insert("type".to_owned(), "Event".into());
                fields.insert("watchEvent".to_owned(), json!(event));
                fields.extend(view_fields(object));
            }
        }
    }

    /// The form without a version knows one object by its names, and nothing else.
    fn add_resource(&self, fields: &mut Map<String, Value>) {
        let Self::Event { event, object, .. } = self else {
            return;
        };
        let event = match event {
            WatchEvent::Added => "add",
            WatchEvent::Modified => "update",
            WatchEvent::Deleted => "delete",
        };
        let text = |pointer| {
            object
                .object
                .as_ref()
                .and_then(|object| object.pointer(pointer))
                .and_then(Value::as_str)
        };
        fields.insert("resourceEvent".to_owned(), event.into());
        for (field, pointer) in [
            ("resourceNamespace", "/metadata/namespace"),
            ("resourceKind", "/kind"),
            ("resourceName", "/metadata/name"),
        ] {
            fields.insert(field.to_owned(), text(pointer).unwrap_or_default().into());
        }
    }
}

/// Every named snapshot, an empty one too.
fn views(names: &[BindingName], snapshots: &Snapshots) -> Value {
    names
        .iter()
        .map(|name| (name.to_string(), view_list(snapshots.get(name))))
        .collect::<Map<_, _>>()
        .into()
}

fn view_list(views: Option<&Vec<ObjectView>>) -> Value {
    views
        .into_iter()
        .flatten()
        .map(|view| Value::Object(view_fields(view).collect()))
        .collect()
}

fn view_fields(view: &ObjectView) -> impl Iterator<Item = (String, Value)> {
    let object = view.object.iter().map(|object| ("object".to_owned(), object.clone()));
    object.chain(
        view.filter_result
            .iter()
            .map(|result| ("filterResult".to_owned(), result.clone())),
    )
}

/// The content of the file that a hook reads: a list on one line.
///
/// Characters that mean something in HTML are escaped; they can only be inside of strings.
pub fn to_file(contexts: &[BindingContext], version: ConfigVersion, snapshots: &Snapshots) -> String {
    let list: Value = contexts
        .iter()
        .map(|context| context.to_value(version, snapshots))
        .collect();
    let mut text = String::new();
    for c in list.to_string().chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            _ => text.push(c),
        }
    }
    text.push('\n');
    text
}

/// Contexts that one run is told at once: of neighbours in one group only the last is kept.
pub fn combined(contexts: impl IntoIterator<Item = BindingContext>) -> Vec<BindingContext> {
    let mut kept: Vec<BindingContext> = Vec::new();
    for context in contexts {
        let told_again = kept
            .last()
            .is_some_and(|last| last.group().is_some() && last.group() == context.group());
        if told_again {
            kept.pop();
        }
        kept.push(context);
    }
    kept
}

/// Contexts of a queue that has grown too long: those without a group, then the last one of each group, in the order in
/// which the groups came.
pub fn compacted(contexts: impl IntoIterator<Item = BindingContext>) -> Vec<BindingContext> {
    let mut kept = Vec::new();
    let mut last_of_group: Vec<BindingContext> = Vec::new();
    for context in contexts {
        if context.group().is_none() {
            kept.push(context);
        } else if let Some(earlier) = last_of_group
            .iter_mut()
            .find(|earlier| earlier.group() == context.group())
        {
            *earlier = context;
        } else {
            last_of_group.push(context);
        }
    }
    kept.extend(last_of_group);
    kept
}

#[cfg(test)]
mod tests;
