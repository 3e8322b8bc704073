//! CEL rules: expressions over a value and its old value that must be true.
//!
//! They are in `x-deckhouse-validations`. Every rule must end, and its error must never show the values that it read.

mod cost;
pub mod expression;
mod functions;
mod guard;
mod program;

use serde_json::Value;

use super::Problem;
use super::node::Node;
use cost::Budget;
use guard::Names;
use program::{Outcome, Program};

/// The cost limit of all rules of one schema in one check, in steps and parts of values. An API server grants as much
/// to one expression, in similar units, and ten times as much to all expressions of an object. Our limit is not higher,
/// because it already allows half a second of work, for which the writer of the values has to wait. Comparing 300 items
/// with each other takes two thirds of the limit.
const BUDGET: u64 = 1_000_000;

/// One CEL rule.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    program: Program,
    message: String,
}

impl Rule {
    /// Reads an item of the list of rules.
    pub(super) fn read(entry: &Value) -> Result<Self, Problem> {
        let map = entry
            .as_object()
            .filter(|map| !map.is_empty())
            .ok_or(Problem::RulesInvalid)?;
        let text = |key: &'static str| {
            let text = map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.ok_or(Problem::RuleIncomplete(key))
        };
        let expression = text("expression")?;
        let message = text("message")?.to_owned();
        let program = Program::compile(expression, Names::Values).map_err(|message| Problem::Rule {
            expression: expression.to_owned(),
            message,
        })?;
        Ok(Self { program, message })
    }

    /// Whether the rule reads the old value.
    pub(super) fn looks_back(&self) -> bool {
        self.program.looks_back
    }
}

/// Whether a check can reach a rule for which `is_such` holds.
pub(super) fn has_some(node: &Node, is_such: fn(&Rule) -> bool) -> bool {
    node.rules.iter().flatten().any(is_such) || node.properties.values().any(|node| has_some(node, is_such))
}

/// The messages of the broken rules. Messages of properties come before those of their object. If a rule cannot be
/// evaluated, only this error is reported.
pub(super) fn broken(node: &Node, value: &Value, before: Option<&Value>) -> Vec<String> {
    let mut messages = Vec::new();
    match collect(node, value, before, &Budget::new(BUDGET), &mut messages) {
        Ok(()) => messages,
        Err(error) => vec![error],
    }
}

fn collect(
    node: &Node,
    value: &Value,
    before: Option<&Value>,
    budget: &Budget,
    messages: &mut Vec<String>,
) -> Result<(), String> {
    let before = before.filter(|before| !before.is_null());
    if let Value::Object(map) = value {
        for (name, property) in &node.properties {
            if let Some(value) = map.get(name) {
                let before = before.and_then(|before| before.as_object()?.get(name));
                collect(property, value, before, budget, messages)?;
            }
        }
    }
    for rule in node.rules.iter().flatten() {
        match rule.program.run(value, before, budget) {
            Outcome::True | Outcome::Skipped => {}
            Outcome::False => messages.push(rule.message.clone()),
            Outcome::Failed(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
