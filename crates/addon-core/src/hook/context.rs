//! Binding contexts: the reasons of a hook's run, in the form in which the hook reads them.
//!
//! A context has the names of its snapshots and not their objects. Snapshots are read when the hook starts, once for all
//! contexts of a run. Must never drop a context whose news no other context contains.

mod file;

use std::collections::BTreeMap;

use names::BindingName;
use serde::{Deserialize, Serialize};

use super::config::{
    AdmissionBinding, Condition, ConversionBinding, HookConfig, KubernetesBinding, ScheduleBinding, Stage, WatchEvent,
};
use crate::object::json::Json;
use crate::object::{ObjectName, ObjectView};

pub use self::file::write_file;

/// The snapshots by binding. Their items are objects as the binding's filter shows them.
pub type Snapshots = BTreeMap<BindingName, Vec<ObjectView>>;

/// A binding context: an event for which a hook runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BindingContext {
    /// A stage of the operator or of a module is reached.
    Stage {
        /// The stage.
        stage: Stage,
        /// All snapshots of the hook, except at start-up.
        snapshots: Vec<BindingName>,
    },
    /// A schedule is due.
    Schedule(Told),
    /// The first run for the existing objects.
    Synchronization(Told),
    /// An object has changed.
    Event {
        /// Binding, group and snapshots.
        told: Told,
        /// The change.
        event: WatchEvent,
        /// The changed object.
        name: ObjectName,
        /// The object as the binding's filter shows it.
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

/// The kind of answer that the API server wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ask {
    /// The API server wants to know whether the request is allowed.
    Validating,
    /// The API server wants to know whether the request is allowed, and how its object is patched.
    Mutating,
    /// The API server wants objects in another version.
    Conversion {
        /// The version of the objects.
        from: String,
        /// The version to convert the objects to.
        to: String,
    },
}

/// The fields that the contexts of all bindings have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The name of the binding.
    pub binding: BindingName,
    /// The group. Bindings of a group share one context.
    pub group: Option<String>,
    /// The snapshots to include.
    pub snapshots: Vec<BindingName>,
    /// The condition that is judged when the run begins. The condition of a change was judged when the change came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
}

impl From<&ScheduleBinding> for Told {
    fn from(binding: &ScheduleBinding) -> Self {
        Self {
            binding: binding.name.clone(),
            group: binding.group.clone(),
            snapshots: binding.include_snapshots_from.clone(),
            when: binding.when.clone(),
        }
    }
}

impl From<&KubernetesBinding> for Told {
    fn from(binding: &KubernetesBinding) -> Self {
        Self {
            binding: binding.name.clone(),
            group: binding.group.clone(),
            snapshots: binding.include_snapshots_from.clone(),
            when: None,
        }
    }
}

impl From<&AdmissionBinding> for Told {
    fn from(binding: &AdmissionBinding) -> Self {
        Self {
            binding: binding.name.clone(),
            group: binding.group.clone(),
            snapshots: binding.include_snapshots_from.clone(),
            when: None,
        }
    }
}

impl From<&ConversionBinding> for Told {
    fn from(binding: &ConversionBinding) -> Self {
        Self {
            binding: binding.name.clone(),
            group: binding.group.clone(),
            snapshots: binding.include_snapshots_from.clone(),
            when: None,
        }
    }
}

impl BindingContext {
    /// The context of a hook at a stage.
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

    /// The context of a schedule.
    pub fn schedule(binding: &ScheduleBinding) -> Self {
        Self::Schedule(binding.into())
    }

    /// The name of the binding.
    pub fn binding(&self) -> &str {
        match self {
            Self::Stage { stage, .. } => stage.key(),
            Self::Schedule(told)
            | Self::Synchronization(told)
            | Self::Event { told, .. }
            | Self::Review { told, .. } => told.binding.as_str(),
        }
    }

    /// The group of the binding.
    pub fn group(&self) -> Option<&str> {
        match self {
            // A review always has a context of its own, even if its snapshots come from a group.
            Self::Stage { .. } | Self::Review { .. } => None,
            Self::Schedule(told) | Self::Synchronization(told) | Self::Event { told, .. } => told.group.as_deref(),
        }
    }

    /// The snapshots that have to be read for this context, the snapshot of its own binding included.
    pub fn wanted_snapshots(&self) -> impl Iterator<Item = &BindingName> {
        let (snapshots, own) = match self {
            Self::Stage { snapshots, .. } => (snapshots, None),
            Self::Schedule(told) | Self::Event { told, .. } | Self::Review { told, .. } => (&told.snapshots, None),
            Self::Synchronization(told) => (&told.snapshots, Some(&told.binding)),
        };
        let judged = self.condition().into_iter().flat_map(|when| &when.snapshots);
        snapshots.iter().chain(own).chain(judged)
    }

    /// The condition that the run of this context has to fulfil.
    pub fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Schedule(told) => told.when.as_ref(),
            Self::Stage { .. } | Self::Synchronization(_) | Self::Event { .. } | Self::Review { .. } => None,
        }
    }

    /// Takes the place of an earlier context of the same group. A condition stays only if the earlier context had it,
    /// too.
    fn stands_for(mut self, earlier: &Self) -> Self {
        if self.condition() != earlier.condition()
            && let Self::Schedule(told) = &mut self
        {
            told.when = None;
        }
        self
    }
}

/// The contexts of one run. If neighbouring contexts have the same group, only the last of them is kept.
pub fn combined(contexts: impl IntoIterator<Item = BindingContext>) -> Vec<BindingContext> {
    let mut kept: Vec<BindingContext> = Vec::new();
    for context in contexts {
        let told_again = |last: &mut BindingContext| last.group().is_some() && last.group() == context.group();
        let context = match kept.pop_if(told_again) {
            Some(earlier) => context.stands_for(&earlier),
            None => context,
        };
        kept.push(context);
    }
    kept
}

/// The contexts of a queue that has grown too long: all contexts without a group, then the last one of each group, in the
/// order in which the groups first came.
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
            *earlier = context.stands_for(earlier);
        } else {
            last_of_group.push(context);
        }
    }
    kept.extend(last_of_group);
    kept
}

#[cfg(test)]
mod tests;
