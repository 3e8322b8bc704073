//! The files of a schema, and the references between places in them.
//!
//! The caller reads the files and passes in their texts by path. Must never read a file, and never follow a reference
//! to a file that was not passed in.

use std::collections::{BTreeMap, BTreeSet};

use helm_yaml::yaml;
use serde_json::Value;

use super::Problem;

/// The texts of schemas by their paths, with `/` as separator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<String, String>);

impl Files {
    /// Adds a file.
    pub fn insert(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.0.insert(path.into(), text.into());
    }

    /// Whether a file is there.
    pub fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn parse(&self, path: &str) -> Result<Value, Problem> {
        let text = self.0.get(path).ok_or_else(|| Problem::NoFile(path.to_owned()))?;
        yaml::from_str_v2(text).map_err(Problem::Yaml)
    }
}

/// The paths of the files that a text refers to. A text that cannot be read refers to no file.
///
/// The list may be too long: references in examples and defaults are included.
pub fn references(path: &str, text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Ok(document) = yaml::from_str_v2(text) {
        collect(path, &document, &mut found);
    }
    found.remove(path);
    found
}

fn collect(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Target { file, .. }) = map
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|text| target(path, text).ok())
            {
                found.insert(file);
            }
            map.values().for_each(|value| collect(path, value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(path, item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The target of a reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) file: String,
    /// The keys from the root of the file.
    pub(super) steps: Vec<String>,
}

/// Reads a reference in the file `from`.
pub(super) fn target(from: &str, text: &str) -> Result<Target, Problem> {
    let (file, fragment) = text.split_once('#').unwrap_or((text, ""));
    if file.contains("://") {
        return Err(Problem::Elsewhere(text.to_owned()));
    }
    let steps = match fragment.strip_prefix('/') {
        Some(steps) => steps.split('/').map(step).collect(),
        None if fragment.is_empty() => Vec::new(),
        None => return Err(Problem::NoPlace(text.to_owned())),
    };
    let file = if file.is_empty() {
        from.to_owned()
    } else {
        beside(from, file)
    };
    Ok(Target { file, steps })
}

fn step(text: &str) -> String {
    text.replace("~1", "/").replace("~0", "~")
}

/// The path of a file that another file names.
fn beside(from: &str, file: &str) -> String {
    let mut parts: Vec<&str> = if file.starts_with('/') {
        vec![""]
    } else {
        from.split('/').collect::<Vec<_>>()[..from.matches('/').count()].to_vec()
    };
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_beside_the_file_that_holds_them() {
        let rows = [
            ("openapi/values.yaml", "defs.yaml", "openapi/defs.yaml"),
            ("openapi/values.yaml", "./sub/defs.yaml#/a", "openapi/sub/defs.yaml"),
            ("/m/one/openapi/values.yaml", "../../lib/defs.yaml", "/m/lib/defs.yaml"),
            ("values.yaml", "../defs.yaml", "../defs.yaml"),
            ("/m/values.yaml", "/lib/defs.yaml", "/lib/defs.yaml"),
            ("/m/values.yaml", "#/definitions/a", "/m/values.yaml"),
        ];
        for (from, text, file) in rows {
            assert_eq!(target(from, text).unwrap().file, file, "{from} {text}");
        }
        assert_eq!(target("a", "#/x~1y/~0z").unwrap().steps, ["x/y", "~z"]);
        assert!(target("a", "https://example.com/schema#").is_err());
        assert!(target("a", "#anchor").is_err());
    }

    #[test]
    fn a_text_names_the_files_it_refers_to() {
        let text =
            "properties:\n  a: {$ref: 'a.yaml#/x'}\n  b: {items: {$ref: ../b.yaml}}\n  c: {$ref: '#/definitions/c'}\n";
        let found = references("m/openapi/values.yaml", text);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["m/b.yaml", "m/openapi/a.yaml"]);
        assert!(references("a", "{").is_empty());
    }
}
