//! Values without their secrets, as people may see them, and the secret texts.
//!
//! Must never be used where values go to a hook or a chart.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::patch::Operation;
use super::schema::Schemas;
use super::{Layers, Store};
use crate::name::Owner;
use crate::secret::known::Known;

impl Layers {
    /// Of every layer: a value that another layer covers is still shown to a user who asks for its layer alone.
    /// Returns whether they changed.
    pub(super) fn find_secrets(&mut self) -> bool {
        let layers = [Some(&self.files), self.config.as_ref(), Some(&self.effective)];
        let layers = layers.into_iter().flatten();
        let secrets = layers.flat_map(|layer| self.schemas.secrets(layer)).collect();
        let differ = *self.secrets != secrets;
        if differ {
            self.secrets = Arc::new(secrets);
        }
        differ
    }

    fn masked_operation(&self, operation: &Operation) -> Value {
        let mut shown = json!(operation);
        // The first key is that of the section.
        let keys = operation.path().keys().get(1..).unwrap_or_default();
        if let Some(value) = shown.get_mut("value") {
            *value = self.schemas.masked_at(keys, value);
        }
        shown
    }
}

impl Store {
    /// A section of an owner as it may be shown.
    pub fn masked(&self, owner: &Owner, section: &Value) -> Value {
        match self.owners.get(owner) {
            Some(layers) => layers.schemas.masked(section),
            None => Schemas::default().masked(section),
        }
    }

    /// The accumulated patches of an owner's hooks as they may be shown.
    pub fn masked_patches(&self, owner: &Owner) -> Value {
        let layers = self.layers(owner);
        layers
            .patches
            .iter()
            .map(|operation| layers.masked_operation(operation))
            .collect()
    }

    /// The texts of all owners that must not be shown, if they changed since they were last taken.
    pub fn take_new_secrets(&mut self) -> Option<Known> {
        if !std::mem::take(&mut self.has_new_secrets) {
            return None;
        }
        let secrets = self.owners.values().flat_map(|layers| layers.secrets.iter());
        let all: BTreeSet<&str> = secrets.map(String::as_str).collect();
        Some(all.into_iter().collect())
    }
}
