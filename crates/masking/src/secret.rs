//! Masks secrets in texts and documents, and knows the names that mark secrets.
//!
//! A fixed word replaces a secret, which hides its type and length, too. Must never be applied to values for hooks,
//! charts or the ConfigMap, only to output for people.

pub mod known;
pub mod name;
pub mod object;

use serde_json::Value;

/// The text in the place of a secret.
pub const MASK: &str = "<masked>";

/// Whether a text contains a private key in PEM form.
pub fn is_private_key(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}

/// Whether the name of a key hides this value. Booleans and null are not hidden, because they reveal nothing.
pub fn is_hidden_under(key: &str, value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(_)) && name::is_secret(key)
}

/// Masks a document by the names of its keys alone, without a schema.
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
