//! Checks of types, texts and numbers.
//!
//! Numbers are floats here, as in the original. Must never accept a whole number beyond 2^53 as an integer.

use masking::secret;
use serde_json::Value;

use super::super::node::Node;
use super::super::{formats, words};
use super::{Findings, Path};

/// From this number on, floats cannot represent every whole number.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// The relative distance from a whole number up to which a float still counts as one.
const TOLERANCE: f64 = 1e-9;

/// Whether a float is a whole number, within the error of a multiplication of floats.
fn is_whole(number: f64) -> bool {
    if !number.is_finite() || number.abs() > LARGEST {
        return false;
    }
    let whole = number.trunc();
    let distance = (number - whole).abs();
    distance == 0.0 || distance / (number.abs() + whole.abs()) < TOLERANCE
}

/// Checks the type of a value. True if the type is right.
pub(super) fn kind(node: &Node, value: &Value, path: Path<'_>, found: &mut Findings) -> bool {
    let Some((wanted, is)) = mismatch(node, value) else {
        return true;
    };
    found.add(format!(
        "{path} in body must be of type {wanted}: {}",
        words::quoted(is)
    ));
    false
}

/// The expected type and the actual one. A format counts as a type for all values except texts and lists.
fn mismatch(node: &Node, value: &Value) -> Option<(String, &'static str)> {
    let may_be = |name: &str| node.types.iter().any(|kind| kind == name);
    let wanted = || node.types.join(",");
    let kind = kind_of(value);
    if value.is_null() {
        return (!node.types.is_empty() && !may_be("null") && !node.nullable).then(|| (wanted(), kind));
    }
    let number = value.as_f64().filter(|_| value.is_number());
    let is_integer = number.is_some_and(is_whole) && may_be("integer");
    let format = if number.is_some() { "float64" } else { "" };
    let is_text = value.is_string() || value.is_array();
    if !is_text && !node.format.is_empty() && !may_be(kind) && format != node.format && !is_integer {
        return Some((node.format.clone(), format));
    }
    let is_judged_by_format = is_text && !node.format.is_empty() && !may_be("number") && !may_be("integer");
    (!is_judged_by_format && !may_be(kind) && !is_integer).then(|| (wanted(), kind))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Length, pattern and format of a text. Of length and pattern only the first mistake is reported.
pub(super) fn text(node: &Node, text: &str, path: Path<'_>, found: &mut Findings) {
    if let Some(error) = text_error(node, text, path) {
        found.add(error);
    }
    if formats::holds(&node.format, text) == Some(false) {
        let is_secret = node
            .secret
            .unwrap_or_else(|| path.names_secret() || secret::is_private_key(text));
        let text = words::quoted(if is_secret { secret::MASK } else { text });
        found.add(format!("{path} in body must be of type {}: {text}", node.format));
    }
}

fn text_error(node: &Node, text: &str, path: Path<'_>) -> Option<String> {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(most) = node.max_length.filter(|most| length > *most) {
        return Some(format!("{path} in body should be at most {most} chars long"));
    }
    if let Some(least) = node.min_length.filter(|least| length < *least) {
        return Some(format!("{path} in body should be at least {least} chars long"));
    }
    let pattern = node.pattern.as_ref()?;
    if let Some(complaint) = pattern.complaint() {
        let text = &pattern.text;
        return Some(format!(
            "{path} in body should match '{text}, but pattern is invalid: error parsing regexp: {complaint}'"
        ));
    }
    (!pattern.matches(text)).then(|| format!("{path} in body should match '{}'", pattern.text))
}

/// Checks the bounds of a number.
pub(super) fn number(node: &Node, number: f64, path: Path<'_>, found: &mut Findings) {
    let limits = node.number;
    if let Some(factor) = limits.multiple_of {
        let quotient = if factor < 1.0 {
            1.0 / factor * number
        } else {
            number / factor
        };
        if factor <= 0.0 {
            let factor = words::float(factor);
            found.add(format!(
                "factor MultipleOf declared for {path} must be positive: {factor}"
            ));
        } else if !is_whole(quotient) {
            found.add(format!(
                "{path} in body should be a multiple of {}",
                words::float(factor)
            ));
        }
    }
    if let Some(least) = limits.minimum
        && (number < least || limits.exclusive_minimum && number <= least)
    {
        let relation = if limits.exclusive_minimum {
            "greater than"
        } else {
            "greater than or equal to"
        };
        found.add(format!("{path} in body should be {relation} {}", words::float(least)));
    }
    if let Some(most) = limits.maximum
        && (number > most || limits.exclusive_maximum && number >= most)
    {
        let relation = if limits.exclusive_maximum {
            "less than"
        } else {
            "less than or equal to"
        };
        found.add(format!("{path} in body should be {relation} {}", words::float(most)));
    }
    found.count();
}
