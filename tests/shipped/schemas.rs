//! The schemas of the shipped modules: each value that people may set has one, with a description.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use helm_yaml::yaml;
use serde_json::Value;

use super::super::path;

/// Values that hooks of the modules set.
const OF_HOOKS: [&str; 2] = ["derived", "neighbours"];

fn read(file: &std::path::Path) -> Value {
    let text = fs_err::read_to_string(file).unwrap();
    yaml::from_str_v2(&text).unwrap()
}

fn assert_described(place: &str, schema: &Value) {
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.{key}");
        assert!(property["description"].is_string(), "{place} has no description");
        assert_described(&place, property);
    }
}

#[test]
fn each_value_of_a_shipped_module_has_a_schema_with_a_description() {
    let mut modules = 0;
    for entry in fs_err::read_dir(path("modules")).unwrap() {
        let dir = entry.unwrap().path();
        if !dir.is_dir() {
            continue;
        }
        modules += 1;
        let schema = read(&dir.join("openapi/config-values.yaml"));
        let place = dir.display().to_string();
        assert_eq!(schema["type"], "object", "{place}");
        assert_eq!(schema["additionalProperties"], false, "{place}");
        assert_described(&place, &schema);
        let values = read(&dir.join("values.yaml"));
        for key in values
            .as_object()
            .unwrap()
            .values()
            .flat_map(|section| section.as_object().unwrap().keys())
        {
            let is_known = OF_HOOKS.contains(&key.as_str()) || schema["properties"].get(key).is_some();
            assert!(is_known, "{place}: {key} has no schema");
        }
    }
    assert_eq!(modules, 6);
}
