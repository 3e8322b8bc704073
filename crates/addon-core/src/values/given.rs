//! The values and flags that a global hook has given in its runs, in a form that outlives the process.
//!
//! If the hook fails at the start of a later life of the operator, that life continues with these values and flags.
//! Must never hold values that were refused.

use std::collections::BTreeMap;

use jiff::Timestamp;
use names::{ModuleName, Owner};
use serde::{Deserialize, Serialize};

use super::patch::{Accepted, FlagOp, Operations, PatchFile};
use super::vetted::{Asking, Vetted};
use super::{Attempt, Change, Rejected, Store};

/// The sum of a hook's accepted patches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// The time at which the hook last changed the values or flags.
    pub at: Timestamp,
    /// The operations on the section of the hook's owner, compacted.
    #[serde(default)]
    operations: Operations,
    /// The flags of modules; a flag that the hook has cleared is absent.
    #[serde(default)]
    flags: BTreeMap<ModuleName, bool>,
}

impl Given {
    /// No values and no flags, from a hook that has succeeded.
    pub fn nothing(at: Timestamp) -> Self {
        Self {
            at,
            operations: Operations::default(),
            flags: BTreeMap::new(),
        }
    }

    /// Whether the values and flags are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.operations, &self.flags) == (&other.operations, &other.flags)
    }

    /// These values, overlaid by the values that the hook has given since.
    #[must_use]
    pub fn under(&self, later: &Self) -> Self {
        let mut flags = self.flags.clone();
        flags.extend(later.flags.clone());
        Self {
            at: self.at,
            operations: self.operations.compacted_with(&later.operations),
            flags,
        }
    }

    /// Adds a patch that the operator has committed.
    pub fn add(&mut self, patch: Accepted, at: Timestamp) {
        let operations = self.operations.compacted_with(&patch.operations);
        let mut flags = self.flags.clone();
        for FlagOp { module, opinion } in patch.flags {
            match opinion {
                Some(flag) => flags.insert(module, flag),
                None => flags.remove(&module),
            };
        }
        if operations != self.operations || flags != self.flags {
            *self = Self { at, operations, flags };
        }
    }
}

impl Store {
    /// Commits the values that a global hook has given in an earlier life. The values of this life overlay them. The
    /// flags are in the result.
    pub fn take_over(&mut self, given: &Given) -> Result<Change, Rejected> {
        let owner = Owner::Global;
        let layers = self.layers(&owner);
        let attempt = Attempt::Patch(PatchFile::Values);
        let patches = given.operations.compacted_with(&layers.patches);
        let fits = Vetted::at_once(|vetted| {
            let mut asking = Asking::new(vetted);
            let sum = layers.sum(&owner.values_key(), layers.config.as_deref(), &patches);
            let fits = sum.and_then(|sum| layers.vet_patched_values(&owner, &sum.into(), &mut asking));
            asking.decided(fits)
        });
        fits.map_err(|reason| Rejected {
            owner: owner.clone(),
            attempt,
            reason,
        })?;
        let values_changed = self.set_layer(&owner, attempt, |layers, _| {
            layers.patches = patches.into();
            Ok(())
        })?;
        let flags = given.flags.iter().map(|(module, flag)| FlagOp {
            module: module.clone(),
            opinion: Some(*flag),
        });
        Ok(Change {
            values_changed,
            config_section: None,
            flags: flags.collect(),
        })
    }
}
