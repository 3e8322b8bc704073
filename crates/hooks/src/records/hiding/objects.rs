//! Masks objects in contexts, object patches and responses, at any depth.
//!
//! Must never show the result of a filter on Secrets, which may have changed their data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_yaml::yaml;
use masking::secret::{self, MASK, object};
use serde_json::Value;

use super::Inputs;

/// Masks all Secrets in a document, and the values with secret names.
fn deep(value: &mut Value) {
    if object::is_secret(value) {
        *value = object::masked_secret(value);
        return;
    }
    if value["kind"] == "SecretList" {
        for item in value["items"].as_array_mut().into_iter().flatten() {
            *item = object::masked_secret(item);
        }
    }
    match value {
        Value::String(text) if secret::is_private_key(text) => *value = MASK.into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => items.iter_mut().for_each(deep),
        Value::Object(map) => {
            for (key, value) in map {
                if secret::is_hidden_under(key, value) {
                    *value = MASK.into();
                } else {
                    deep(value);
                }
            }
        }
    }
}

/// The list of contexts with its secrets masked.
pub(super) fn contexts(document: &Value, inputs: &Inputs) -> Value {
    let mut shown = document.clone();
    for (place, context) in shown.as_array_mut().into_iter().flatten().enumerate() {
        let of_binding = |binding: &str| inputs.secret_bindings.contains(binding);
        let own = of_binding(context["binding"].as_str().unwrap_or_default());
        for (binding, items) in context
            .get_mut("snapshots")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            let of_secrets = of_binding(binding);
            views(items, of_secrets);
        }
        if let Some(items) = context.get_mut("objects") {
            views(items, own);
        }
        view(context, own || inputs.secret_contexts.contains(&place));
        if let Some(review) = context.get_mut("review") {
            deep(review);
        }
    }
    shown
}

fn views(items: &mut Value, of_secrets: bool) {
    for item in items.as_array_mut().into_iter().flatten() {
        view(item, of_secrets);
    }
}

/// Masks an object and the result of its filter.
fn view(item: &mut Value, of_secrets: bool) {
    if let Some(object) = item.get_mut("object") {
        if of_secrets {
            *object = object::masked_secret(object);
        } else {
            deep(object);
        }
    }
    if let Some(result) = item.get_mut("filterResult") {
        if of_secrets {
            *result = MASK.into();
        } else {
            deep(result);
        }
    }
}

/// An object patch with its secrets masked. A part that is a text is parsed as YAML first, as in the patches of hooks.
pub(super) fn operation(document: &Value) -> Value {
    let mut shown = document.clone();
    let kind = shown["kind"].as_str().unwrap_or_default();
    let of_secret = ["secret", "secrets"].iter().any(|name| kind.eq_ignore_ascii_case(name));
    for part in ["object", "mergePatch"] {
        let of_secret = of_secret && part == "mergePatch";
        change(&mut shown, part, |value| {
            if of_secret {
                *value = object::masked_secret(value);
            } else {
                deep(value);
            }
        });
    }
    change(&mut shown, "jsonPatch", |value| steps(value, of_secret));
    if of_secret && let Some(filter) = shown.get_mut("jqFilter") {
        *filter = MASK.into();
    }
    shown
}

/// Masks a part of a document. A text keeps its form if there is no secret in it.
fn change(document: &mut Value, part: &str, hide: impl Fn(&mut Value)) {
    let Some(value) = document.get_mut(part) else { return };
    let Value::String(text) = value else {
        return hide(value);
    };
    let Ok(read) = yaml::from_str_v2(text) else {
        *value = MASK.into();
        return;
    };
    let mut shown = read.clone();
    hide(&mut shown);
    if shown != read {
        *value = shown;
    }
}

/// Masks the values of a JSON patch.
fn steps(patch: &mut Value, of_secret: bool) {
    for step in patch.as_array_mut().into_iter().flatten() {
        let key = step["path"].as_str().and_then(|path| path.rsplit('/').next());
        let key = key.unwrap_or_default().to_owned();
        if let Some(value) = step.get_mut("value") {
            if of_secret || secret::is_hidden_under(&key, value) {
                *value = MASK.into();
            } else {
                deep(value);
            }
        }
    }
}

/// A response to the API server with its secrets masked. `of_secrets`: the request is about a Secret.
pub(super) fn response(document: &Value, of_secrets: bool) -> Value {
    let mut shown = document.clone();
    deep(&mut shown);
    if let Some(patch) = shown.get_mut("patch")
        && (of_secrets || has_secret(patch))
    {
        *patch = MASK.into();
    }
    shown
}

/// Whether a JSON patch in base64 has a secret, or cannot be read.
fn has_secret(patch: &Value) -> bool {
    let bytes = patch.as_str().and_then(|text| STANDARD.decode(text).ok());
    let Some(read) = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()) else {
        return patch != "";
    };
    let mut shown = read.clone();
    steps(&mut shown, false);
    shown != read
}
