//! Binding contexts: why a hook runs, in the form in which the hook reads it.
//!
//! A context names its snapshots and does not hold them: they are read when the hook starts, once for all contexts of a
//! run. Must never drop a context whose news no other context holds.

mod file;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::{
    AdmissionBinding, ConversionBinding, HookConfig, KubernetesBinding, ScheduleBinding, Stage, WatchEvent,
};
use crate::name::BindingName;
use crate::object::json::Json;
use crate::object::{ObjectName, ObjectView};

pub use self::file::write_file;

/// Snapshots by binding; their items are objects as contexts show them.
pub type Snapshots = BTreeMap<BindingName, Vec<ObjectView>>;

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
        /// The change.
        event: WatchEvent,
        /// The changed object.
        name: ObjectName,
        /// How the binding shows it.
        object: ObjectView,
    },
    /// The API server asks.
    Review {
        /// Binding, group and snapshots.
        told: Told,
        /// The requested review.
        ask: Ask,
        /// `{"request": …}` as the API server sent it.
        review: Json,
    },
}

/// The kinds of answers that the API server requests from a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ask {
    /// Whether a request is allowed.
    Validating,
    /// Whether the request is allowed, and a patch of its object.
    Mutating,
    /// Objects in another version.
    Conversion {
        /// They are in this one.
        from: String,
        /// The hook makes this one of them.
        to: String,
    },
}

/// The fields that contexts of all bindings share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Name of the binding.
    pub binding: BindingName,
    /// The group, whose bindings share one context.
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

impl From<&AdmissionBinding> for Told {
    fn from(binding: &AdmissionBinding) -> Self {
        Self {
            binding: binding.name.clone(),
            group: binding.group.clone(),
            snapshots: binding.include_snapshots_from.clone(),
        }
    }
}

impl From<&ConversionBinding> for Told {
    fn from(binding: &ConversionBinding) -> Self {
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
            Self::Schedule(told)
            | Self::Synchronization(told)
            | Self::Event { told, .. }
            | Self::Review { told, .. } => told.binding.as_str(),
        }
    }

    /// Its group.
    pub fn group(&self) -> Option<&str> {
        match self {
            // A review has a context of its own, also if its snapshots come from a group.
            Self::Stage { .. } | Self::Review { .. } => None,
            Self::Schedule(told) | Self::Synchronization(told) | Self::Event { told, .. } => told.group.as_deref(),
        }
    }

    /// The snapshots that must be read for it, its own objects included.
    pub fn wanted_snapshots(&self) -> impl Iterator<Item = &BindingName> {
        let (snapshots, own) = match self {
            Self::Stage { snapshots, .. } => (snapshots, None),
            Self::Schedule(told) | Self::Event { told, .. } | Self::Review { told, .. } => (&told.snapshots, None),
            Self::Synchronization(told) => (&told.snapshots, Some(&told.binding)),
        };
        snapshots.iter().chain(own)
    }
}

/// The contexts of one run: of neighbours in one group only the last is kept.
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
