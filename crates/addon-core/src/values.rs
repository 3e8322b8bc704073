//! Values: the layers of each owner, the effective values that they add up to, and the changes that hooks may make.
//!
//! Every change is first a proposal, which is computed without changing anything, and then committed as a whole or not
//! at all. Must never hold layers that cannot be merged: a layer that does not fit the others is refused when it
//! arrives.

mod document;
mod forgetting;
mod given;
pub mod judgement;
pub mod merge;
pub mod patch;
mod proposal;
mod secrecy;
pub mod section;
pub mod trial_sections;
pub mod vetted;
mod vetting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use helm_yaml::number;
use names::{GLOBAL_KEY, Owner};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use values_schema::schema::{Kind, Schemas};

pub use document::{Globals, HookDocument};
pub use given::Given;
pub use proposal::{Change, Proposal, Stale};
pub use secrecy::HookSecrecy;
pub use vetting::NotForHelm;

use merge::{TooDeep, merge};
use patch::{DoesNotApply, Operations, PatchFile, Unacceptable};

/// A version of an owner's values: the number of changes of its layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(u64);

/// The failed operation on the values of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// A hook's patch.
    Patch(PatchFile),
    /// A section of the `ConfigMap`.
    ConfigSection,
    /// Values from files.
    Files,
}

/// A refused change of values. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", attempted(.owner, *.attempt))]
pub struct Rejected {
    /// The owner of the values.
    pub owner: Owner,
    /// The operation.
    pub attempt: Attempt,
    /// The reason for which the change is refused.
    #[source]
    pub reason: Reason,
}

fn attempted(owner: &Owner, attempt: Attempt) -> String {
    match attempt {
        // The error of the job that ran the hook names the file.
        Attempt::Patch(_) => format!("merge {owner} values failed"),
        Attempt::ConfigSection => format!("apply {owner} section of ConfigMap failed"),
        Attempt::Files => format!("apply {owner} values of files failed"),
    }
}

/// The reason for which a change of values is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Reason {
    /// A hook made a change that hooks of its owner must not make.
    #[error(transparent)]
    Unacceptable(#[from] Unacceptable),
    /// A patch does not fit the values.
    #[error(transparent)]
    DoesNotApply(#[from] DoesNotApply),
    /// The layers are nested too deep to be merged.
    #[error(transparent)]
    TooDeep(#[from] TooDeep),
    /// The values would break their schema.
    #[error("{0}")]
    Breaks(String),
    /// A section would become a scalar, or the global section would become a list.
    #[error("'{key}' should be {}, not of type {found}", if key == GLOBAL_KEY { "a map" } else { "a map or a list" })]
    NoSection {
        /// The key of the section that would become invalid.
        key: String,
        /// The type that the section would have.
        found: &'static str,
    },
}

/// The layers of one owner, from low to high, and the effective values.
#[derive(Debug, Clone, PartialEq)]
struct Layers {
    files: Arc<Value>,
    config: Option<Arc<Value>>,
    patches: Arc<Operations>,
    schemas: Arc<Schemas>,
    /// The number of times that the schemas were replaced.
    renewals: u64,
    effective: Arc<Value>,
    /// The secrets in all layers.
    secrets: Arc<BTreeSet<String>>,
    version: Version,
}

impl Default for Layers {
    fn default() -> Self {
        let empty = Arc::new(Value::Object(Map::new()));
        Self {
            files: Arc::clone(&empty),
            config: None,
            patches: Arc::default(),
            schemas: Arc::default(),
            renewals: 0,
            effective: empty,
            secrets: Arc::default(),
            version: Version::default(),
        }
    }
}

impl Layers {
    /// Merges the layers, with the defaults of the schemas between them.
    fn sum(&self, key: &str, config: Option<&Value>, patches: &Operations) -> Result<Value, Reason> {
        let mut below = Value::clone(&self.files);
        self.schemas.fill(Kind::Config, &mut below);
        if let Some(config) = config {
            below = merge(below, config)?;
        }
        self.schemas.fill(Kind::Values, &mut below);
        section_of(patches.apply_stored(&document_of(key, below))?, key)
    }

    fn bump(&mut self) {
        self.version.0 += 1;
    }
}

/// Puts a section under its key, as the paths of patches expect it.
fn document_of(key: &str, section: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), section)]))
}

/// The section of a patched document; empty if the patch removed it.
fn section_of(document: Value, key: &str) -> Result<Value, Reason> {
    let section = match document {
        Value::Object(mut map) => map.remove(key),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    };
    match section {
        None => Ok(Value::Object(Map::new())),
        Some(section) => whole_section(section, key),
    }
}

fn whole_section(section: Value, key: &str) -> Result<Value, Reason> {
    match (&section, key) {
        (Value::Object(_), _) => Ok(section),
        (Value::Array(_), key) if key != GLOBAL_KEY => Ok(section),
        _ => Err(Reason::NoSection {
            key: key.to_owned(),
            found: kind_of(&section),
        }),
    }
}

/// The type of a value, for errors. The value itself may be a secret.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The values of all owners.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Store {
    owners: BTreeMap<Owner, Layers>,
    /// Whether the secrets changed since they were last taken.
    has_new_secrets: bool,
}

impl Store {
    /// A store without values.
    pub fn new() -> Self {
        Self::default()
    }

    fn layers(&self, owner: &Owner) -> Layers {
        self.owners.get(owner).cloned().unwrap_or_default()
    }

    /// The effective values of an owner.
    pub fn effective(&self, owner: &Owner) -> Arc<Value> {
        self.owners
            .get(owner)
            .map_or_else(|| Layers::default().effective, |layers| Arc::clone(&layers.effective))
    }

    /// The applied section of the `ConfigMap`; `None` if there is none.
    pub fn config_section(&self, owner: &Owner) -> Option<Arc<Value>> {
        self.owners.get(owner).and_then(|layers| layers.config.clone())
    }

    /// The values that an owner would have without a section of the `ConfigMap` and without hooks: those of its files, and
    /// the defaults of its schemas.
    pub fn defaults(&self, owner: &Owner) -> Value {
        let layers = self.layers(owner);
        let sum = layers.sum(&owner.values_key(), None, &Operations::default());
        // Nothing is laid over the files, which were accepted when they were read.
        sum.unwrap_or_default()
    }

    /// The accumulated patches of an owner's hooks.
    pub fn patches(&self, owner: &Owner) -> Arc<Operations> {
        self.owners
            .get(owner)
            .map(|layers| Arc::clone(&layers.patches))
            .unwrap_or_default()
    }

    /// The number of changes of an owner's layers.
    pub fn version(&self, owner: &Owner) -> Version {
        self.owners.get(owner).map(|layers| layers.version).unwrap_or_default()
    }

    /// Replaces the values of files. True if the effective values changed.
    pub fn set_static(&mut self, owner: &Owner, values: Value) -> Result<bool, Rejected> {
        self.set_layer(owner, Attempt::Files, |layers, key| {
            layers.files = Arc::new(section_of_files(values, key)?);
            Ok(())
        })
    }

    /// Replaces the schemas of an owner and the values of its files, and forgets the patches of its hooks. If the new
    /// schemas or values cannot be used, nothing changes.
    pub fn renew_files(&mut self, owner: &Owner, schemas: Schemas, values: Value) -> Result<bool, Rejected> {
        self.set_layer(owner, Attempt::Files, |layers, key| {
            layers.schemas = Arc::new(schemas);
            layers.renewals += 1;
            layers.files = Arc::new(section_of_files(values, key)?);
            layers.patches = Arc::default();
            Ok(())
        })
    }

    /// Replaces or drops the section of the `ConfigMap`. True if the effective values changed.
    ///
    /// An empty section stays even if it is to be dropped, because it has no values to remove.
    pub fn set_config(&mut self, owner: &Owner, section: Option<Value>) -> Result<bool, Rejected> {
        self.set_layer(owner, Attempt::ConfigSection, |layers, key| {
            layers.config = match section {
                Some(section) => Some(Arc::new(settled_section(section, key)?)),
                None => layers
                    .config
                    .take()
                    .filter(|kept| kept.as_object().is_some_and(Map::is_empty)),
            };
            Ok(())
        })
    }

    fn set_layer(
        &mut self,
        owner: &Owner,
        attempt: Attempt,
        change: impl FnOnce(&mut Layers, &str) -> Result<(), Reason>,
    ) -> Result<bool, Rejected> {
        let before = self.layers(owner);
        let mut layers = before.clone();
        let key = owner.values_key();
        let apply = || {
            change(&mut layers, &key)?;
            if layers == before {
                return Ok(());
            }
            let sum = layers.sum(&key, layers.config.as_deref(), &layers.patches)?;
            if sum != *before.effective {
                layers.effective = Arc::new(sum);
            }
            Ok(())
        };
        apply().map_err(|reason| Rejected {
            owner: owner.clone(),
            attempt,
            reason,
        })?;
        let changed = layers.effective != before.effective;
        if layers != before {
            layers.bump();
            self.has_new_secrets |= layers.find_secrets();
            self.owners.insert(owner.clone(), layers);
        }
        Ok(changed)
    }
}

/// The values of files as a section. Absent values become an empty section.
fn section_of_files(values: Value, key: &str) -> Result<Value, Reason> {
    if values.is_null() {
        return Ok(Value::Object(Map::new()));
    }
    settled_section(values, key)
}

fn settled_section(mut section: Value, key: &str) -> Result<Value, Reason> {
    number::settle(&mut section);
    whole_section(section, key)
}

#[cfg(test)]
mod tests;
