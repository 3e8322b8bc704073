//! Writes YAML that both readers of the original, our reader and Helm read back as the same value.

use serde_json::Value;

use crate::number;

/// Writes a value as one YAML document, with sorted keys and whole numbers without a point.
pub fn to_string(value: &Value) -> String {
    let mut settled = value.clone();
    number::settle(&mut settled);
    let options = serde_saphyr::ser_options! { compact_list_indent: true };
    serde_saphyr::to_string_with_options(&settled, options)
        .expect("a JSON value holds nothing that YAML cannot, and a String accepts all of it")
}
