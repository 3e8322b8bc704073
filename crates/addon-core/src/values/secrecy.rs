//! Values with masked secrets for people, and the list of secret texts.
//!
//! Must never be used for values that go to a hook or a chart.

use std::collections::BTreeSet;
use std::sync::Arc;

use masking::secret::known::Known;
use serde_json::{Value, json};
use values_schema::schema::Schemas;

use super::patch::Operation;
use super::{Layers, Store};
use crate::name::Owner;

impl Layers {
    /// Finds the secrets in all layers: a value that a higher layer hides is still shown if a person asks for its layer
    /// alone. True if the secrets changed.
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
        // The first key is that of the section itself.
        let keys = operation.path().keys().get(1..).unwrap_or_default();
        if let Some(value) = shown.get_mut("value") {
            *value = self.schemas.masked_at(keys, value);
        }
        shown
    }
}

impl Store {
    /// A section of an owner with its secrets masked.
    pub fn masked(&self, owner: &Owner, section: &Value) -> Value {
        match self.owners.get(owner) {
            Some(layers) => layers.schemas.masked(section),
            None => Schemas::default().masked(section),
        }
    }

    /// The accumulated patches of an owner's hooks with their secrets masked.
    pub fn masked_patches(&self, owner: &Owner) -> Value {
        let layers = self.layers(owner);
        layers
            .patches
            .iter()
            .map(|operation| layers.masked_operation(operation))
            .collect()
    }

    /// The secret texts of all owners; `None` if they did not change since the last call.
    pub fn take_new_secrets(&mut self) -> Option<Known> {
        if !std::mem::take(&mut self.has_new_secrets) {
            return None;
        }
        let secrets = self.owners.values().flat_map(|layers| layers.secrets.iter());
        let all: BTreeSet<&str> = secrets.map(String::as_str).collect();
        Some(all.into_iter().collect())
    }
}
