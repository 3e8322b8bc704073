//! The documents that hooks read.
//!
//! Must never copy the global values for each of many modules.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::name::GLOBAL_KEY;

/// A document as hooks read it: the global section and, for a module, its own, shared and not copied.
#[derive(Debug, Clone, PartialEq)]
pub struct HookDocument {
    global: Arc<Value>,
    own: Option<(String, Arc<Value>)>,
}

impl HookDocument {
    pub(super) fn new(global: Arc<Value>, own: Option<(String, Arc<Value>)>) -> Self {
        Self { global, own }
    }

    /// The document in one piece.
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
