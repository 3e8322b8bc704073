//! Checks the fields that every rendered object must have, while the object's template is still known: helm's own error
//! names neither the template nor the object, and prints the whole manifest. Never shows a value.

use serde_json::Value;
use thiserror::Error;

/// Why an object cannot be sent to the API server.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Misshapen {
    #[error("an object has no {field}")]
    Missing { field: &'static str },
    #[error("{object} has {field} that is {found} and should be a text: quotes make it one")]
    NoText {
        object: String,
        field: String,
        found: &'static str,
    },
}

/// Checks the fields that all kinds have. An empty document is ignored.
pub(super) fn check(document: &Value) -> Result<(), Misshapen> {
    let Some(fields) = document.as_object().filter(|fields| !fields.is_empty()) else {
        return Ok(());
    };
    for field in ["kind", "apiVersion"] {
        match fields.get(field) {
            None | Some(Value::Null) => return Err(Misshapen::Missing { field }),
            Some(value) => check_text(document, field, value)?,
        }
    }
    let metadata = &document["metadata"];
    for field in ["name", "namespace"] {
        check_text(document, &format!("metadata.{field}"), &metadata[field])?;
    }
    for field in ["labels", "annotations"] {
        for (key, value) in metadata[field].as_object().into_iter().flatten() {
            check_text(document, &format!("metadata.{field}.{key}"), value)?;
        }
    }
    Ok(())
}

fn check_text(document: &Value, field: &str, value: &Value) -> Result<(), Misshapen> {
    let found = match value {
        Value::Null | Value::String(_) => return Ok(()),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    };
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let kind = text(&document["kind"]).unwrap_or_else(|| "an object".to_owned());
    let object = match text(&document["metadata"]["name"]) {
        Some(name) => format!("{kind}/{name}"),
        None => kind,
    };
    Err(Misshapen::NoText {
        object,
        field: field.to_owned(),
        found,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_helm_would_refuse_without_a_place_is_found() {
        let rows = [
            (json!({"just": "a map"}), "an object has no kind"),
            (json!({"kind": "ConfigMap"}), "an object has no apiVersion"),
            (
                json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": false}}),
                "ConfigMap has metadata.name that is a boolean",
            ),
            (
                json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "b", "annotations": {"n": 5}}}),
                "A/b has metadata.annotations.n that is a number",
            ),
        ];
        for (document, expected) in rows {
            let told = check(&document).unwrap_err().to_string();
            assert!(told.starts_with(expected), "{told}");
        }
        for fine in [
            json!({}),
            json!(null),
            json!({"kind": "List", "apiVersion": "v1", "items": []}),
            json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "b", "labels": {"a": null, "b": "1"}}}),
        ] {
            assert_eq!(check(&fine), Ok(()), "{fine}");
        }
    }
}
