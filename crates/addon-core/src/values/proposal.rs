//! What a hook's patches would change, worked out beforehand.
//!
//! A proposal holds the result, not the way to it: committing one takes no time. Must never be committed on values that
//! it was not made on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::patch::{FlagOp, Operations};
use super::{Store, Version};
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
    /// Whose values it changes.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The version it was made on.
    pub fn base(&self) -> Version {
        self.base
    }

    /// Whether it still fits what the store holds; if not, it is to be made anew.
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

    /// What it says about modules.
    pub fn flags(&self) -> &[FlagOp] {
        &self.flags
    }
}

/// The store changed since the proposal was made.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("values of {} changed since the patch was worked out", .0.owner)]
pub struct Stale(pub Box<Proposal>);

/// What a commit changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Whether the effective values differ.
    pub values_changed: bool,
    /// The new section, if the config patch changed it.
    pub config_section: Option<Arc<Value>>,
    /// Opinions on modules.
    pub flags: Vec<FlagOp>,
}
