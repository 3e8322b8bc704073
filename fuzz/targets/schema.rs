//! Schemas of values: validating any value against any schema must end without a panic.

use serde_json::Value;
use values_schema::schema::{Files, Kind, Schemas};

const FILE: &str = "openapi/values.yaml";

/// The last line is the value if it is JSON, and the value is an empty map otherwise. The lines before it are the
/// schema.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, value) = match text.trim_end_matches('\n').rsplit_once('\n') {
        Some((schema, last)) => match serde_json::from_str(last) {
            Ok(value) => (schema, value),
            Err(_) => (text, Value::Object(serde_json::Map::new())),
        },
        None => (text, Value::Object(serde_json::Map::new())),
    };
    let mut files = Files::default();
    files.insert(FILE, text);
    let Ok(schemas) = Schemas::load(&files, Some(FILE), Some(FILE)) else {
        return;
    };
    let mut filled = value.clone();
    schemas.fill(Kind::Values, &mut filled);
    let once = filled.clone();
    schemas.fill(Kind::Values, &mut filled);
    assert_eq!(filled, once, "defaults fill once");
    for kind in [Kind::Config, Kind::Values, Kind::Helm] {
        if schemas.check(kind, "one", &filled, Some(&value)).is_err() {
            // A value that the schema refuses is also refused for helm, where required fields are checked in addition.
            let helm = schemas.check(Kind::Helm, "one", &filled, Some(&value));
            assert!(
                kind != Kind::Values || helm.is_err(),
                "helm takes what the values may not be"
            );
        }
    }
}
