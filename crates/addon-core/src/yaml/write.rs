//! YAML that both readers of the original, ours and Helm read back as the very same value.

use serde_json::Value;

use crate::number;

/// Writes a value as one YAML document, with keys in order and whole numbers without a point.
pub fn to_string(value: &Value) -> String {
    let mut settled = value.clone();
    number::settle(&mut settled);
    let options = serde_saphyr::ser_options! { compact_list_indent: true };
    serde_saphyr::to_string_with_options(&settled, options)
        .expect("a JSON value holds nothing that YAML cannot, and a String accepts all of it")
}
