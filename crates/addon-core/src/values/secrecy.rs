//! Values with masked secrets for people, and the list of secret texts.
//!
//! Must never be used for values that go to a hook or a chart.

use std::collections::BTreeSet;
use std::sync::Arc;

use masking::secret::known::Known;
use names::{GLOBAL_KEY, Owner};
use serde_json::{Value, json};
use values_schema::schema::Schemas;

use super::patch::Operation;
use super::{Layers, Store};

/// The rules by which the values that a hook reads and writes are masked. They are shared, not copied.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookSecrecy {
    global: Arc<Schemas>,
    own: Option<(String, Arc<Schemas>)>,
}

impl HookSecrecy {
    /// The values document of a hook with its secrets masked.
    pub fn masked(&self, document: &Value) -> Value {
        match document {
            Value::Object(sections) => {
                let shown = sections
                    .iter()
                    .map(|(key, section)| (key.clone(), self.of_section(key).masked(section)));
                Value::Object(shown.collect())
            }
            other => Schemas::default().masked(other),
        }
    }

    /// An operation of a values patch with the secrets in its value masked. The path of the operation decides which
    /// parts are secret.
    pub fn masked_operation(&self, operation: &Value) -> Value {
        let mut shown = operation.clone();
        let path = operation["path"].as_str().unwrap_or_default();
        let keys = path
            .split('/')
            .skip(1)
            .map(|key| key.replace("~1", "/").replace("~0", "~"));
        let mut keys: Vec<String> = keys.collect();
        if let Some(value) = shown.get_mut("value") {
            *value = if keys.is_empty() {
                self.masked(value)
            } else {
                let section = keys.remove(0);
                self.of_section(&section).masked_at(&keys, value)
            };
        }
        shown
    }

    fn of_section(&self, key: &str) -> Arc<Schemas> {
        match &self.own {
            _ if key == GLOBAL_KEY => Arc::clone(&self.global),
            Some((own, schemas)) if own == key => Arc::clone(schemas),
            Some(_) | None => Arc::default(),
        }
    }
}

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
        // The first key names the section itself.
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

    /// The rules by which the values of an owner's hooks are masked.
    pub fn hook_secrecy(&self, owner: &Owner) -> HookSecrecy {
        let schemas = |owner: &Owner| self.owners.get(owner).map(|layers| Arc::clone(&layers.schemas));
        HookSecrecy {
            global: schemas(&Owner::Global).unwrap_or_default(),
            own: owner
                .module()
                .map(|name| (name.values_key(), schemas(owner).unwrap_or_default())),
        }
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
