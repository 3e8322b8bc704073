//! The documents with values that hooks read.
//!
//! Must never copy the global values for each module.

use std::collections::BTreeMap;
use std::sync::Arc;

use names::{GLOBAL_KEY, Owner};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::Store;

/// The values document of a hook: the global section and, for a module, its own section. Both are shared, not copied.
#[derive(Debug, Clone, PartialEq)]
pub struct HookDocument {
    global: Arc<Value>,
    own: Option<(String, Arc<Value>)>,
}

impl HookDocument {
    fn new(global: Arc<Value>, own: Option<(String, Arc<Value>)>) -> Self {
        Self { global, own }
    }

    /// The whole document as one value.
    pub fn to_value(&self) -> Value {
        let mut map = Map::from_iter([(GLOBAL_KEY.to_owned(), Value::clone(&self.global))]);
        if let Some((key, section)) = &self.own {
            map.insert(key.clone(), Value::clone(section));
        }
        Value::Object(map)
    }
}

impl Serialize for HookDocument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sections = BTreeMap::from([(GLOBAL_KEY, &*self.global)]);
        if let Some((key, section)) = &self.own {
            sections.insert(key, section);
        }
        let mut map = serializer.serialize_map(Some(sections.len()))?;
        for (key, section) in sections {
            map.serialize_entry(key, section)?;
        }
        map.end()
    }
}

/// The global values and config values of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Globals {
    values: Arc<Value>,
    config: Arc<Value>,
}

impl Store {
    /// The current global sections. Later changes do not affect them.
    pub fn globals(&self) -> Globals {
        Globals {
            values: self.effective(&Owner::Global),
            config: self.config_section(&Owner::Global).unwrap_or_default(),
        }
    }

    /// The values for a hook of the owner.
    pub fn hook_values(&self, owner: &Owner) -> HookDocument {
        self.hook_values_under(&self.globals(), owner)
    }

    /// The values for a hook of the owner, with the global values of an earlier moment.
    pub fn hook_values_under(&self, globals: &Globals, owner: &Owner) -> HookDocument {
        let own = owner.module().map(|name| (name.values_key(), self.effective(owner)));
        HookDocument::new(Arc::clone(&globals.values), own)
    }

    /// The config values for a hook of the owner: only those of the `ConfigMap`; null without a section.
    pub fn config_values(&self, owner: &Owner) -> HookDocument {
        self.config_values_under(&self.globals(), owner)
    }

    /// The config values for a hook of the owner, with the global config values of an earlier moment.
    pub fn config_values_under(&self, globals: &Globals, owner: &Owner) -> HookDocument {
        let section = |owner: &Owner| self.config_section(owner).unwrap_or_default();
        let own = owner.module().map(|name| (name.values_key(), section(owner)));
        HookDocument::new(Arc::clone(&globals.config), own)
    }
}
