//! The change that a hook's patches would make, computed before it is made.
//!
//! A proposal holds the resulting values, so that its commit takes no time. Must never be committed to other values than
//! those that it was computed from.

use std::sync::Arc;

use names::Owner;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::patch::{FlagOp, Operations, Patch, PatchFile};
use super::vetted::{Asking, Unvetted, Vetted};
use super::{Attempt, Reason, Rejected, Store, Version, document_of, section_of};

/// The patches of a hook, computed against one version of the values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    pub(super) owner: Owner,
    pub(super) base: Version,
    /// The new section of the ConfigMap, if it differs from the old one.
    pub(super) config: Option<Arc<Value>>,
    /// The new accumulated patches, if the values patch changed anything.
    pub(super) patches: Option<Arc<Operations>>,
    pub(super) effective: Arc<Value>,
    pub(super) values_changed: bool,
    pub(super) flags: Vec<FlagOp>,
}

impl Proposal {
    /// The owner whose values the proposal changes.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The version of the values from which the proposal was computed.
    pub fn base(&self) -> Version {
        self.base
    }

    /// Whether the store still has the version of `base`. If not, the proposal has to be computed again.
    pub fn is_current(&self, store: &Store) -> bool {
        store.version(&self.owner) == self.base
    }

    /// The whole new section, which has to be saved in the `ConfigMap` before the commit.
    pub fn config_section(&self) -> Option<&Arc<Value>> {
        self.config.as_ref()
    }

    /// Whether the commit changes anything.
    pub fn does_something(&self) -> bool {
        self.config.is_some() || self.patches.is_some() || !self.flags.is_empty()
    }

    /// Whether the commit changes the effective values.
    pub fn values_changed(&self) -> bool {
        self.values_changed
    }

    /// The flags of modules that the patches set.
    pub fn flags(&self) -> &[FlagOp] {
        &self.flags
    }
}

/// The error of a commit: the store changed since the proposal was computed.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("values of {} changed since the patch was worked out", .0.owner)]
pub struct Stale(pub Box<Proposal>);

/// The changes that a commit made.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Whether the effective values changed.
    pub values_changed: bool,
    /// The new section, if the config patch changed it.
    pub config_section: Option<Arc<Value>>,
    /// The flags of modules.
    pub flags: Vec<FlagOp>,
}

impl Store {
    /// Computes the change that a hook's patches would make, the config patch first. Changes nothing. May take long.
    pub fn propose(&self, owner: &Owner, values: &Patch, config: &Patch) -> Result<Proposal, Rejected> {
        Vetted::at_once(|vetted| self.propose_vetted(owner, values, config, vetted))
    }

    /// Computes the change like `propose`, with the known results of checks that take long. If results are missing,
    /// returns these checks.
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

    /// Commits a proposal, unless the store changed since it was computed.
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

/// The section after a patch; `None` if the patch changes nothing.
fn patched(key: &str, section: &Value, operations: &Operations) -> Result<Option<Value>, Reason> {
    if operations.is_empty() {
        return Ok(None);
    }
    let patched = section_of(operations.apply_strict(&document_of(key, section.clone()))?, key)?;
    Ok((patched != *section).then_some(patched))
}
