//! The gate of a binding with a condition: which changes of objects make the hook run.
//!
//! A change that is held back is in the snapshots. Must never hold back a change because a judgement failed.

use std::fmt;

use addon_core::failure::{Class, Failure};
use addon_core::hook::condition::{Evidence, lets_run};
use addon_core::hook::config::KubernetesBinding;
use addon_core::object::ObjectView;
use names::{BindingName, HookId};

use super::lens::{Compile, Sieve};
use super::observation::Labels;

/// The condition of a binding, compiled.
pub struct Gate {
    hook: HookId,
    snapshots: Vec<BindingName>,
    sieve: Option<Sieve>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("snapshots", &self.snapshots)
            .finish_non_exhaustive()
    }
}

impl Gate {
    /// Compiles the condition of the binding; none if it has no condition.
    pub fn of(hook: &HookId, binding: &KubernetesBinding, compile: Compile) -> Result<Option<Self>, Failure> {
        let Some(when) = &binding.when else {
            return Ok(None);
        };
        let sieve = when.jq_filter.as_deref().map(compile).transpose();
        let sieve = sieve.map_err(|error| {
            let report = format!("cannot compile when.jqFilter of binding '{}': {error}", binding.name);
            Failure::new(Class::Invalid, report)
        })?;
        Ok(Some(Self {
            hook: hook.clone(),
            snapshots: when.snapshots.clone(),
            sieve,
        }))
    }

    /// The bindings whose snapshots the gate looks at.
    pub fn snapshots(&self) -> &[BindingName] {
        &self.snapshots
    }

    /// Whether the labels are those of this binding of the gate's hook.
    pub(super) fn means(&self, labels: &Labels, binding: &BindingName) -> bool {
        labels.binding == binding.as_str() && labels.hook == self.hook
    }

    /// Whether a change makes the hook run. `snapshot_of` finds the snapshot of a binding; without one the hook runs.
    pub fn lets_through<'a, Objects>(
        &self,
        mut evidence: Evidence,
        snapshot_of: impl Fn(&BindingName) -> Option<Objects>,
    ) -> bool
    where
        Objects: IntoIterator<Item = &'a ObjectView>,
    {
        for binding in &self.snapshots {
            let Some(objects) = snapshot_of(binding) else {
                return true;
            };
            evidence = evidence.with(binding, objects);
        }
        match &self.sieve {
            None => evidence.has_objects(),
            Some(sieve) => lets_run(&sieve(&evidence.into_value())),
        }
    }
}
