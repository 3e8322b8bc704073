//! One expression in CEL about an object, whose top-level fields are its variables.
//!
//! Every evaluation must end, and no error may show a value that the expression read.

use serde_json::{Map, Value};
use thiserror::Error;

use super::cost::Budget;
use super::guard::Names;
use super::program::Program;

/// The cost limit of one evaluation, in steps and parts of values: up to 50 ms of work. A list of a thousand conditions
/// is read a few times within it.
const BUDGET: u64 = 100_000;

/// An expression that can be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(Program);

/// An expression that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{message}", position.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default())]
pub struct ExpressionError {
    /// The line and the column of the mistake, from 1. Absent if the expression is too long or too deep.
    pub position: Option<(u32, u32)>,
    /// The mistake.
    pub message: String,
}

/// The reason why an evaluation gave neither true nor false.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct EvaluationError(String);

impl Expression {
    /// Reads an expression. A name that is no type and comes from no macro is a field of the object.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        Program::compile(text, Names::Fields)
            .map(Self)
            .map_err(|message| ExpressionError::read(&message))
    }

    /// Whether the expression is true of the object. Whole numbers of the object are signed integers.
    pub fn holds(&self, object: &Map<String, Value>) -> Result<bool, EvaluationError> {
        self.0
            .run_on_fields(object, &Budget::new(BUDGET))
            .map_err(EvaluationError)
    }
}

impl ExpressionError {
    /// Takes the position from the parser's message, `line:column: text`.
    fn read(message: &str) -> Self {
        let split = || {
            let (line, rest) = message.split_once(':')?;
            let (column, text) = rest.split_once(':')?;
            Some(((line.parse().ok()?, column.parse().ok()?), text.trim_start()))
        };
        match split() {
            Some((position, text)) => Self {
                position: Some(position),
                message: text.to_owned(),
            },
            None => Self {
                position: None,
                message: message.to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(text: &str, object: &Value) -> Result<bool, String> {
        let expression = Expression::compile(text).map_err(|error| error.to_string())?;
        expression
            .holds(object.as_object().unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn fields_of_the_object_are_variables() {
        let object = json!({
            "type": "Opaque", "self": 1, "data": {"phase": "done"},
            "status": {"ready": 2, "conditions": [{"type": "Synced", "status": "True"}]},
        });
        for text in [
            "status.conditions.exists(c, c.type == 'Synced' && c.status == 'True')",
            "data.phase == 'done'",
            "data['phase'].matches('^d.*e$')",
            "type == 'Opaque'",
            "self + 1 == status.ready",
            "has(status.ready) && !has(status.failed)",
            "status.conditions.filter(status, status.type == 'Synced').size() == 1",
            ".status.ready == 2",
        ] {
            assert_eq!(holds(text, &object), Ok(true), "{text}");
        }
        assert_eq!(holds("status.ready > 2", &object), Ok(false));
    }

    #[test]
    fn an_evaluation_that_fails_says_why() {
        let object = json!({"status": {"a": 1, "secret": "s3cr3t"}});
        let failed = |text: &str| holds(text, &object).unwrap_err();
        assert_eq!(failed("status.phase == 'x'"), "the field 'phase' is missing");
        assert_eq!(failed("spec.a == 1"), "the field 'spec' is missing");
        assert_eq!(failed("status[status.secret] == 1"), "a field is missing");
        assert_eq!(failed("status.a"), "its result is no boolean");
        assert_eq!(failed("1 / (status.a - 1) == 1"), "division by zero");
        assert_eq!(failed("status.nothing.at.all"), "the field 'nothing' is missing");
    }

    #[test]
    fn a_mistake_has_a_position() {
        let error = Expression::compile("status.a ==\n  && true").unwrap_err();
        assert_eq!(error.position.map(|(line, _)| line), Some(2), "{error}");
        assert!(error.to_string().starts_with("line 2, column "), "{error}");
        let deep = format!("status{}", ".a".repeat(100));
        assert_eq!(Expression::compile(&deep).unwrap_err().position, None);
        assert!(Expression::compile(&" ".repeat(5000)).is_err());
        assert!(Expression::compile("").is_err());
    }

    #[test]
    fn an_evaluation_ends() {
        let object = json!({"status": {"items": (0..2000).collect::<Vec<_>>()}});
        let pairs = "status.items.all(a, status.items.all(b, a + b >= 0))";
        assert_eq!(holds(pairs, &object).unwrap_err(), "it takes too many steps");
    }
}
