//! Objects without the fields that tell no cause: a list of pods is several times as large with them.
//!
//! The fields are left out while the answer is read, so that they never take memory. Must never leave out a label.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

/// Fields that are left out, wherever they stand.
const LEFT_OUT: [&str; 18] = [
    "affinity",
    "args",
    "command",
    "env",
    "envFrom",
    "hostIPs",
    "kubectl.kubernetes.io/last-applied-configuration",
    "lifecycle",
    "livenessProbe",
    "managedFields",
    "podIPs",
    "readinessProbe",
    "securityContext",
    "startupProbe",
    "template",
    "tolerations",
    "volumeDevices",
    "volumeMounts",
];

/// Fields whose keys are names that people choose.
const WHOLE: [&str; 2] = ["labels", "matchLabels"];

/// A part of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pruned(pub(super) Value);

impl<'de> Deserialize<'de> for Pruned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Pruner).map(Self)
    }
}

struct Pruner;

impl<'de> Visitor<'de> for Pruner {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if LEFT_OUT.contains(&key.as_str()) {
                fields.next_value::<IgnoredAny>()?;
            } else if WHOLE.contains(&key.as_str()) {
                kept.insert(key, fields.next_value()?);
            } else {
                let Pruned(value) = fields.next_value()?;
                kept.insert(key, value);
            }
        }
        Ok(Value::Object(kept))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(Pruned(item)) = items.next_element()? {
            kept.push(item);
        }
        Ok(Value::Array(kept))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_tell_no_cause_are_left_out_and_labels_stay() {
        let pod = json!({
            "metadata": {"name": "web", "labels": {"env": "prod"}, "managedFields": [{"f:spec": {}}], "generation": 3},
            "spec": {"containers": [{"name": "a", "env": [{"name": "X"}], "resources": {"limits": {"memory": "1Mi"}}}]},
            "status": {"ratio": 0.5, "ready": true, "none": null, "low": -1},
        });
        let Pruned(kept) = serde_json::from_str(&pod.to_string()).unwrap();
        let expected = json!({
            "metadata": {"name": "web", "labels": {"env": "prod"}, "generation": 3},
            "spec": {"containers": [{"name": "a", "resources": {"limits": {"memory": "1Mi"}}}]},
            "status": {"ratio": 0.5, "ready": true, "none": null, "low": -1},
        });
        assert_eq!(kept, expected);
    }
}
