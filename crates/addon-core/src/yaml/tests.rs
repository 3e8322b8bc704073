use serde_json::Value;

use super::*;
use crate::number;

/// Rows in which we knowingly differ from the reader of the original, and why.
const DIFFERENCES: &[(&str, &str)] = &[(
    "json_sur",
    "the original refuses surrogate pairs, which many JSON printers write; reading them only adds documents",
)];

#[test]
fn every_row_of_the_oracle_reads_as_recorded() {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in include_str!("../../tests/oracles/yaml.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = row["text"].as_str().unwrap();
        let name = row["name"].as_str().unwrap();
        let readers: [(&str, fn(&str) -> Result<Value, YamlError>); 3] = [
            ("sigs", from_str_v2),
            ("sigs_strict", from_str_v2_strict),
            ("v3", from_str_v3),
        ];
        for (column, read) in readers {
            rows += 1;
            let recorded = row[column].as_str().unwrap();
            let found = read(text);
            let same = match &found {
                Ok(found) => is_recorded(found, recorded),
                Err(_) => recorded.starts_with("ERR"),
            };
            let listed = DIFFERENCES.iter().any(|(listed, _)| *listed == name);
            if same == listed {
                wrong.push(format!("{name} {column}: {found:?}, recorded {recorded}"));
            }
        }
    }
    assert_eq!(rows, 3 * 65);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_recorded(found: &Value, recorded: &str) -> bool {
    match serde_json::from_str::<Value>(recorded) {
        Ok(mut expected) => {
            number::settle(&mut expected);
            *found == expected
        }
        // Deeper than the JSON reader goes.
        Err(_) => found.to_string() == recorded,
    }
}

#[test]
fn hard_values_are_read_back_unchanged_by_both_readers() {
    let mut value: Value = serde_json::from_str(include_str!("../../tests/oracles/yaml_emit_values.json")).unwrap();
    number::settle(&mut value);
    let text = to_string(&value);
    for read in [from_str_v2, from_str_v2_strict, from_str_v3] {
        let back = read(&text).unwrap();
        for (key, expected) in value.as_object().unwrap() {
            assert_eq!(&back[key], expected, "{key} in {text}");
        }
        assert_eq!(back, value);
    }
}
