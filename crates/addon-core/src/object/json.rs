//! A JSON document that is kept as a text: an object of the cluster, or the result of a filter.
//!
//! Most documents are received, kept and written into a hook's file without being read, so they are not parsed. Clones
//! share one text. Must never hold a text that is not JSON, nor one whose keys are not sorted.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One document on one line, with sorted keys in every object.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The parsed document.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }

    /// Whether both share one text in memory.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        let raw = RawValue::from_string(value.to_string()).expect("a value prints as JSON");
        Self(Arc::from(raw))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.is_shared_with(other) || self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::from(&value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_keeps_its_meaning_and_sorts_its_keys() {
        let read: Json = serde_json::from_str("{\"b\" : [1, null],\n \"a\": {\"d\": 1.5, \"c\": \"<\"}}").unwrap();
        assert_eq!(read.as_str(), r#"{"a":{"c":"<","d":1.5},"b":[1,null]}"#);
        assert_eq!(read.to_value(), json!({"a": {"c": "<", "d": 1.5}, "b": [1, null]}));
        assert_eq!(serde_json::to_string(&[&read]).unwrap(), format!("[{read:?}]"));
    }

    #[test]
    fn clones_share_one_text() {
        let json = Json::from(&json!({"kind": "Pod"}));
        let again = Json::from(&json!({"kind": "Pod"}));
        assert!(json.clone().is_shared_with(&json) && !again.is_shared_with(&json));
        assert_eq!(json, again);
    }
}
