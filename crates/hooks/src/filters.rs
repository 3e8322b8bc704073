//! The jq filters of bindings and of object patches. Must never run one without its limits, which the crate `gojq` sets.

use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use gojq::filter::Filter;
use serde_json::Value;
use watches::lens::Sieve;

/// The jq filters of object patches.
pub fn jq(program: &str, object: &Value) -> Result<Vec<Value>, Failure> {
    let filtered = Filter::compile(program).and_then(|filter| filter.outputs(object));
    filtered.map_err(|error| Failure::of(Class::HookFailed, &error))
}

/// Compiles the text of a binding's filter.
pub fn compile(text: &str) -> Result<Sieve, String> {
    let filter = Filter::compile(text).map_err(|error| error.to_string())?;
    Ok(Arc::new(move |object| {
        filter.apply(object).map_err(|error| error.to_string())
    }))
}
