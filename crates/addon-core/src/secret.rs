//! Secrets: the names and texts that mark them, and documents and texts without them.
//!
//! A secret is replaced by one fixed word, which hides its kind and length, too. Must never be applied to values for
//! hooks, charts or the ConfigMap, only to output for people.

pub mod known;
pub mod name;
pub mod object;

use serde_json::Value;

/// The text in the place of a secret.
pub const MASK: &str = "<masked>";

/// A private key, as PEM has it.
pub fn is_private_key(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}

/// Whether a value is hidden because of the name that it has. A switch that is on or off, and a value that is not set,
/// tells nothing.
pub fn is_hidden_under(key: &str, value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(_)) && name::is_secret(key)
}

/// A document of which only the names of keys are known, no schema.
pub fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) if is_private_key(text) => MASK.into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(map) => {
            let shown = map.iter().map(|(key, value)| {
                let shown = if is_hidden_under(key, value) {
                    MASK.into()
                } else {
                    masked(value)
                };
                (key.clone(), shown)
            });
            Value::Object(shown.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_name_hides_is_hidden_whole() {
        let shown = masked(&json!({
            "user": "ada",
            "password": "s3cret!",
            "credentials": {"user": "ada", "list": [1, 2]},
            "tokens": [],
            "pin": {"apiKey": 42},
            "list": [{"passphrase": ""}],
            "tls": "-----BEGIN EC PRIVATE KEY-----\nabc",
        }));
        let expected = json!({
            "user": "ada",
            "password": MASK,
            "credentials": MASK,
            "tokens": MASK,
            "pin": {"apiKey": MASK},
            "list": [{"passphrase": MASK}],
            "tls": MASK,
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_switch_tells_nothing() {
        let plain = json!({"automountServiceAccountToken": false, "password": null});
        assert_eq!(masked(&plain), plain);
    }
}
