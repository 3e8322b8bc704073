//! The chart's README lists the comments of its values. `UPDATE=1 cargo test --test chart page` renews it.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::fmt::Write as _;

use helm_yaml::yaml;
use serde_json::Value;

use super::tool::chart;

const HEAD: &str = "\
# The chart addon-operator

Installs the operator into a cluster; [docs/start/install.md](../../docs/start/install.md) shows how, from the first module to the
uninstallation. This page is made from [values.yaml](values.yaml).

| value | default | meaning |
|---|---|---|
";
/// Longer defaults are left out, and the page refers to the file.
const LONGEST: usize = 60;

/// A key of the file and the comment above it.
#[derive(Debug, PartialEq)]
struct Entry {
    path: Vec<String>,
    comment: String,
}

/// Every key that has a comment. A key without one belongs to the key above it.
fn entries(text: &str) -> Vec<Entry> {
    let (mut entries, mut path, mut comment) = (Vec::new(), Vec::<String>::new(), Vec::<&str>::new());
    let mut scalar = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let depth = (line.len() - bare.len()) / 2;
        if scalar.is_some_and(|begun| depth > begun) {
            continue;
        }
        scalar = bare.ends_with('|').then_some(depth);
        if let Some(words) = bare.strip_prefix("# ") {
            comment.push(words);
        } else if let Some((key, _)) = bare.split_once(':').filter(|(key, _)| !key.contains(' '))
            && depth <= path.len()
        {
            path.truncate(depth);
            path.push(key.to_owned());
            if !comment.is_empty() {
                let comment = comment.join(" ");
                let path = path.clone();
                entries.push(Entry { path, comment });
            }
            comment.clear();
        } else {
            comment.clear();
        }
    }
    entries
}

fn page(text: &str) -> String {
    let values = yaml::documents_v2(text).unwrap().remove(0);
    let entries = entries(text);
    let mut page = HEAD.to_owned();
    for Entry { path, comment } in &entries {
        let value = path.iter().fold(&values, |value, key| &value[key.as_str()]);
        let is_parent = entries
            .iter()
            .any(|other| other.path.len() > path.len() && other.path.starts_with(path));
        let shown = match value {
            _ if is_parent => String::new(),
            value => format!("`{}`", short(value)),
        };
        writeln!(
            page,
            "| `{}` | {shown} | {} |",
            path.join("."),
            comment.replace('|', "\\|")
        )
        .unwrap();
    }
    page
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.len() > LONGEST { "…".to_owned() } else { text }
}

#[test]
fn comments_belong_to_the_keys_below_them() {
    let text = "# A.\n# And more.\na: 1\n# B.\nb:\n  # C.\n  c: |\n    # no comment\n    d: 2\n  e: {}\nf: 1\n";
    let told: Vec<String> = entries(text)
        .iter()
        .map(|Entry { path, comment }| format!("{}: {comment}", path.join(".")))
        .collect();
    assert_eq!(told, ["a: A. And more.", "b: B.", "b.c: C."]);
}

#[test]
fn the_page_is_what_the_values_say() {
    let text = fs_err::read_to_string(chart().join("values.yaml")).unwrap();
    let (page, file) = (page(&text), chart().join("README.md"));
    if std::env::var_os("UPDATE").is_some() {
        fs_err::write(&file, &page).unwrap();
    }
    let written = fs_err::read_to_string(&file).unwrap_or_default();
    assert_eq!(page, written, "UPDATE=1 renews {}", file.display());
    // Every key of the schema must be in the file, with a comment.
    let schema = fs_err::read_to_string(chart().join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut known = Vec::new();
    paths(&schema, &mut Vec::new(), &mut known);
    for path in known.iter().filter(|path| path.as_str() != "global") {
        assert!(
            page.contains(&format!("| `{path}` |")),
            "{path} has no comment in values.yaml"
        );
    }
}

/// Every value that the schema describes, except below objects that only refer to a form of Kubernetes.
fn paths(schema: &Value, path: &mut Vec<String>, known: &mut Vec<String>) {
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        path.push(key.clone());
        if path[0] != "resources" || path.len() == 1 {
            known.push(path.join("."));
            paths(below, path, known);
        }
        path.pop();
    }
}
