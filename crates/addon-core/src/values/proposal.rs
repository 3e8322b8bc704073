//! The change that a hook's patches would make, computed in advance.
//!
//! A proposal holds the resulting values, so committing it takes no time. Must never be committed on other values than
//! those it was computed from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::patch::{FlagOp, Operations, Patch, PatchFile};
use super::vetted::{Asking, Unvetted, Vetted};
use super::{Attempt, Reason, Rejected, Store, Version, document_of, section_of};
use crate::name::Owner;

/// A hook's patches, worked out against one version of the values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    pub(super) owner: Owner,
    pub(super) base: Version,
    /// The new section, if it differs.
    pub(super) config: Option<Arc<Value>>,
    /// The new accumulated patches, if the values patch changed anything.
    pub(super) patches: Option<Arc<Operations>>,
    pub(super) effective: Arc<Value>,
    pub(super) values_changed: bool,
    pub(super) flags: Vec<FlagOp>,
}

impl Proposal {
    /// The owner whose values it changes.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The version it was made on.
    pub fn base(&self) -> Version {
        self.base
    }

    /// Whether the store is still in the state that it was computed from; if not, it must be made anew.
    pub fn is_current(&self, store: &Store) -> bool {
        store.version(&self.owner) == self.base
    }

    /// The whole new section that must be in the `ConfigMap` before the commit.
    pub fn config_section(&self) -> Option<&Arc<Value>> {
        self.config.as_ref()
    }

    /// Whether anything will differ once it is committed.
    pub fn does_something(&self) -> bool {
        self.config.is_some() || self.patches.is_some() || !self.flags.is_empty()
    }

    /// Whether the effective values will differ.
    pub fn values_changed(&self) -> bool {
        self.values_changed
    }

    /// Its flags of modules.
    pub fn flags(&self) -> &[FlagOp] {
        &self.flags
    }
}

/// The store changed since the proposal was made.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("values of {} changed since the patch was worked out", .0.owner)]
pub struct Stale(pub Box<Proposal>);

/// The changes of a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Whether the effective values differ.
    pub values_changed: bool,
    /// The new section, if the config patch changed it.
    pub config_section: Option<Arc<Value>>,
    /// Opinions on modules.
    pub flags: Vec<FlagOp>,
}

impl Store {
    /// Computes the change that a hook's patches would make, config patch first, and changes nothing. May take long.
    pub fn propose(&self, owner: &Owner, values: &Patch, config: &Patch) -> Result<Proposal, Rejected> {
        Vetted::at_once(|vetted| self.propose_vetted(owner, values, config, vetted))
    }

    /// The same, as far as it can be done without checks that take long: those are left to others.
    pub fn propose_vetted(
        &self,
        owner: &Owner,
        values: &Patch,
        config: &Patch,
        vetted: &Vetted,
    ) -> Result<Result<Proposal, Rejected>, Unvetted> {
        let mut asking = Asking::new(vetted);
        let proposal = self.work_out(owner, values, config, &mut asking);
        asking.decided(proposal)
    }

    fn work_out(
        &self,
        owner: &Owner,
        values: &Patch,
        config: &Patch,
        asking: &mut Asking<'_>,
    ) -> Result<Proposal, Rejected> {
        let rejected = |file, reason| Rejected {
            owner: owner.clone(),
            attempt: Attempt::Patch(file),
            reason,
        };
        let reject_config = |reason| rejected(PatchFile::Config, reason);
        let reject_values = |reason| rejected(PatchFile::Values, reason);

        let key = owner.values_key();
        let before = self.layers(owner);
        let config_patch = config.accept(owner).map_err(|error| reject_config(error.into()))?;
        let values_patch = values.accept(owner).map_err(|error| reject_values(error.into()))?;

        let empty = Value::Object(Map::new());
        let section = before.config.as_deref().unwrap_or(&empty);
        let new_config = patched(&key, section, &config_patch.operations).map_err(reject_config)?;
        let config_in_force = new_config.as_ref().or(before.config.as_deref());
        let sum = |patches: &Operations| before.sum(&key, config_in_force, patches).map(Arc::new);
        let reached = match &new_config {
            Some(section) => {
                before
                    .vet_patched_config(owner, section, asking)
                    .map_err(reject_config)?;
                sum(&before.patches).map_err(reject_config)?
            }
            None => Arc::clone(&before.effective),
        };
        let wanted = patched(&key, &reached, &values_patch.operations).map_err(reject_values)?;
        let (effective, patches) = if wanted.is_some() {
            let patches = before.patches.compacted_with(&values_patch.operations);
            let effective = sum(&patches).map_err(reject_values)?;
            before
                .vet_patched_values(owner, &effective, asking)
                .map_err(reject_values)?;
            (effective, Some(Arc::new(patches)))
        } else {
            (reached, None)
        };

        let values_changed = effective != before.effective;
        Ok(Proposal {
            owner: owner.clone(),
            base: before.version,
            config: new_config.map(Arc::new),
            patches,
            effective: if values_changed { effective } else { before.effective },
            values_changed,
            flags: config_patch.flags.into_iter().chain(values_patch.flags).collect(),
        })
    }

    /// Carries a proposal out, unless the store changed since it was made.
    pub fn commit(&mut self, proposal: Proposal) -> Result<Change, Stale> {
        if !proposal.is_current(self) {
            return Err(Stale(Box::new(proposal)));
        }
        let Proposal {
            owner,
            base: _,
            config,
            patches,
            effective,
            values_changed,
            flags,
        } = proposal;
        if config.is_some() || patches.is_some() {
            let layers = self.owners.entry(owner).or_default();
            layers.config = config.clone().or_else(|| layers.config.take());
            layers.patches = patches.unwrap_or_else(|| Arc::clone(&layers.patches));
            layers.effective = effective;
            layers.bump();
            self.has_new_secrets |= layers.find_secrets();
        }
        Ok(Change {
            values_changed,
            config_section: config,
            flags,
        })
    }
}

/// The section after a patch, if it differs.
fn patched(key: &str, section: &Value, operations: &Operations) -> Result<Option<Value>, Reason> {
    if operations.is_empty() {
        return Ok(None);
    }
    let patched = section_of(operations.apply_strict(&document_of(key, section.clone()))?, key)?;
    Ok((patched != *section).then_some(patched))
}
