//! Checks a value against a schema.
//!
//! All mistakes are reported, in an order that depends only on schema and value. Must never stop at the first one.

mod container;
mod scalar;

use std::collections::BTreeSet;
use std::fmt;

use masking::secret;
use serde_json::Value;

use super::node::{Dependency, Node};
use super::words;

/// A place in the document. Its text is built only for an error.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Root(&'a str),
    Key(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl Path<'_> {
    /// Whether a name on the path marks a secret. The name of the root does not count: it is the module's.
    fn names_secret(&self) -> bool {
        match self {
            Self::Root(_) => false,
            Self::Key(parent, key) => secret::name::is_secret(key) || parent.names_secret(),
            Self::Item(parent, _) => parent.names_secret(),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => f.write_str(name),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Item(parent, index) => write!(f, "{parent}.{index}"),
        }
    }
}

/// The result of checking one value.
#[derive(Debug, Default)]
pub(super) struct Findings {
    errors: Vec<String>,
    known: BTreeSet<String>,
    /// The number of checks that were made. If all alternatives fail, the mistakes of the alternative with the most
    /// checks are reported.
    checks: usize,
}

impl Findings {
    pub(super) fn into_errors(self) -> Vec<String> {
        self.errors
    }

    fn is_good(&self) -> bool {
        self.errors.is_empty()
    }

    fn add(&mut self, error: String) {
        if self.known.insert(error.clone()) {
            self.errors.push(error);
        }
    }

    fn merge(&mut self, other: Self) {
        self.checks += other.checks;
        other.errors.into_iter().for_each(|error| self.add(error));
    }

    fn count(&mut self) {
        self.checks += 1;
    }
}

/// Checks a value against a node.
pub(super) fn check(node: &Node, value: &Value, path: Path<'_>) -> Findings {
    let mut found = Findings::default();
    if node.types.is_empty() && node.format.is_empty() || scalar::kind(node, value, path, &mut found) {
        // Only the type of a null is checked.
        if value.is_null() {
            choices(node, value, path, &mut found);
            return found;
        }
    } else if value.is_null() {
        choices(node, value, path, &mut found);
        return found;
    }
    if !(node.types.is_empty() && node.format.is_empty()) {
        found.count();
    }
    let combined = combined(node, value, path);
    found.merge(combined);
    found.count();
    match value {
        Value::String(text) => {
            scalar::text(node, text, path, &mut found);
            found.count();
        }
        Value::Number(number) => {
            scalar::number(node, number.as_f64().unwrap_or_default(), path, &mut found);
            found.count();
        }
        Value::Array(items) => {
            container::list(node, items, path, &mut found);
            found.count();
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    choices(node, value, path, &mut found);
    found.count();
    if let Value::Object(map) = value {
        container::map(node, map, path, &mut found);
        found.count();
    }
    found.count();
    found
}

/// Checks `enum`. A null never matches, even if it is listed.
fn choices(node: &Node, value: &Value, path: Path<'_>, found: &mut Findings) {
    let chosen = node
        .choices
        .iter()
        .any(|choice| !choice.is_null() && same(choice, value));
    if !node.choices.is_empty() && !chosen {
        found.add(format!(
            "{path} in body should be one of {}",
            words::list(&node.choices)
        ));
    }
}

/// Whether two values are equal. Numbers are compared by value, not by their spelling.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs
                    .into_iter()
                    .all(|(one, other)| one.0 == other.0 && same(one.1, other.1))
        }
        _ => one == other,
    }
}

/// Checks the other schemas of a node: `allOf`, `anyOf`, `oneOf`, `not` and dependencies.
fn combined(node: &Node, value: &Value, path: Path<'_>) -> Findings {
    let mut found = Findings::default();
    if !node.any_of.is_empty() {
        any_of(node, value, path, &mut found);
    }
    if !node.one_of.is_empty() {
        one_of(node, value, path, &mut found);
    }
    if !node.all_of.is_empty() {
        all_of(node, value, path, &mut found);
    }
    if let Some(not) = &node.not
        && check(not, value, path).is_good()
    {
        found.add(format!(
            "{} must not validate the schema (not)",
            words::quoted(&path.to_string())
        ));
    }
    if let Value::Object(map) = value {
        for (key, dependency) in node.dependencies.iter().filter(|(key, _)| map.contains_key(*key)) {
            match dependency {
                Dependency::Schema(node) => found.merge(check(node, value, Path::Key(&path, key))),
                Dependency::Keys(keys) => {
                    for missing in keys.iter().filter(|key| !map.contains_key(*key)) {
                        let path = words::quoted(&path.to_string());
                        found.add(format!("{path} has a dependency on {missing}"));
                    }
                }
            }
        }
    }
    found.count();
    found
}

fn any_of(node: &Node, value: &Value, path: Path<'_>, found: &mut Findings) {
    let mut best: Option<Findings> = None;
    for alternative in &node.any_of {
        let result = check(alternative, value, path);
        if result.is_good() {
            return found.merge(result);
        }
        if best.as_ref().is_none_or(|best| result.checks > best.checks) {
            best = Some(result);
        }
    }
    let path = words::quoted(&path.to_string());
    found.add(format!("{path} must validate at least one schema (anyOf)"));
    found.merge(best.unwrap_or_default());
}

fn one_of(node: &Node, value: &Value, path: Path<'_>, found: &mut Findings) {
    let (mut first, mut best) = (None, None::<Findings>);
    let mut good = 0_usize;
    for alternative in &node.one_of {
        let result = check(alternative, value, path);
        if result.is_good() {
            good += 1;
            first.get_or_insert(result);
        } else if good == 0 && best.as_ref().is_none_or(|best| result.checks > best.checks) {
            best = Some(result);
        }
    }
    let complain = |outcome: &str| {
        let path = words::quoted(&path.to_string());
        format!("{path} must validate one and only one schema (oneOf). {outcome}")
    };
    match good {
        1 => return found.merge(first.unwrap_or_default()),
        0 => found.add(complain("Found none valid")),
        several => found.add(complain(&format!("Found {several} valid alternatives"))),
    }
    found.merge(best.unwrap_or_default());
}

fn all_of(node: &Node, value: &Value, path: Path<'_>, found: &mut Findings) {
    let mut good = 0;
    for part in &node.all_of {
        let result = check(part, value, path);
        good += usize::from(result.is_good());
        found.merge(result);
    }
    if good < node.all_of.len() {
        let none = if good == 0 { ". None validated" } else { "" };
        let path = words::quoted(&path.to_string());
        found.add(format!("{path} must validate all the schemas (allOf){none}"));
    }
}
