//! One CEL expression, read once and evaluated at each check.
//!
//! Its errors must never show a value that it read, because that may be a secret.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelString};
use cel::common::value::CowVal;
use cel::parser::PrattParser;
use cel::{Context, Env, ExecutionError, FunctionContext, Value as Cel};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::super::node::Pattern;
use super::cost::{Budget, size};
use super::functions::{self, is_absence};
use super::guard::{self, BEFORE, HAS, MATCHES, SELF, TEXT, WEIGH};

/// The length of an expression in bytes up to which it is accepted.
const MAX_TEXT: usize = 4096;

/// The number of nodes up to which an expression is accepted.
const MAX_NODES: usize = 2_000;

/// The depth to which brackets may be nested. The depth of the parsed expression is limited by `guard`.
const MAX_BRACKETS: u16 = 60;

/// The cost of compiling a regular expression during a check.
const COMPILING: u64 = 50_000;

/// The standard library, without functions that read a clock or reach outside.
pub(super) static LIBRARY: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut library = Env::stdlib();
    library.set_error_on_duplicate_map_keys(false);
    Arc::new(library)
});

/// An expression that can be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Program {
    text: String,
    expression: IdedExpr,
    /// Whether the expression reads the old value.
    pub(super) looks_back: bool,
    /// The regular expressions that are literals in the expression.
    patterns: Arc<BTreeMap<String, Pattern>>,
}

/// The result of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    True,
    False,
    /// The rule reads a missing value, so it does not count.
    Skipped,
    Failed(String),
}

impl Program {
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > MAX_TEXT {
            return Err(format!("it is longer than {MAX_TEXT} bytes"));
        }
        let parser = PrattParser::default()
            .max_recursion_depth(MAX_BRACKETS)
            .max_expression_node_count(MAX_NODES);
        let expression = parser.parse(text).map_err(|errors| first_line(&errors.to_string()))?;
        let guarded = guard::guard(expression)?;
        let patterns = guarded
            .patterns
            .into_iter()
            .map(|text| (text.clone(), Pattern::new(&text)))
            .collect();
        Ok(Self {
            text: text.to_owned(),
            expression: guarded.expression,
            looks_back: guarded.looks_back,
            patterns: Arc::new(patterns),
        })
    }

    pub(super) fn run(&self, value: &Value, before: Option<&Value>, budget: &Budget) -> Outcome {
        if self.looks_back && before.is_none() {
            return Outcome::Skipped;
        }
        let failed = |why: &str| Outcome::Failed(format!("evaluate the '{}' rule: {why}", self.text));
        let Ok(context) = self.context(value, before, budget) else {
            return failed("its values cannot be read");
        };
        let result = Cel::resolve(&self.expression, &context);
        // The operator `||` may swallow an error, so the budget is checked again at the end.
        if budget.is_spent() {
            return failed("it takes too many steps");
        }
        match result {
            Ok(Cel::Bool(true)) => Outcome::True,
            Ok(Cel::Bool(false)) => Outcome::False,
            Ok(_) => Outcome::Failed("rule should return boolean".to_owned()),
            Err(error) if is_absence(&error) => Outcome::Skipped,
            Err(error) => failed(&told(&error)),
        }
    }

    fn context(
        &self,
        value: &Value,
        before: Option<&Value>,
        budget: &Budget,
    ) -> Result<Context<'static, 'static>, cel::SerializationError> {
        let mut context = Context::with_env(Arc::clone(&LIBRARY));
        context.add_variable(SELF, Doubles(value))?;
        context.add_variable(BEFORE, Doubles(before.unwrap_or(&Value::Null)))?;
        let weigh: Function = {
            let budget = budget.clone();
            Box::new(move |call| {
                let value = call.args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
                pay(&budget, size(value.as_ref()))?;
                Ok(value)
            })
        };
        let matches: Function = {
            let (budget, patterns) = (budget.clone(), Arc::clone(&self.patterns));
            Box::new(move |call| matches(call, &budget, &patterns))
        };
        let (has, text): (Function, Function) = (Box::new(functions::has), Box::new(functions::text));
        for (name, function) in [(WEIGH, weigh), (MATCHES, matches), (HAS, has), (TEXT, text)] {
            context
                .add_function(name, function)
                .expect("no name of the library begins with @");
        }
        Ok(context)
    }
}

type Function = Box<
    dyn for<'context, 'call> Fn(
            &mut FunctionContext<'context, 'call>,
        ) -> Result<CowVal<'context, 'call>, ExecutionError>
        + Send
        + Sync,
>;

fn pay(budget: &Budget, steps: u64) -> Result<(), ExecutionError> {
    if budget.take(steps) {
        return Ok(());
    }
    Err(ExecutionError::function_error("rule", "too many steps"))
}

/// The function `matches`, with the original's dialect of regular expressions.
fn matches<'context, 'call>(
    call: &mut FunctionContext<'context, 'call>,
    budget: &Budget,
    patterns: &BTreeMap<String, Pattern>,
) -> Result<CowVal<'context, 'call>, ExecutionError> {
    let texts: Option<Vec<&CelString<'_>>> = call
        .args
        .iter()
        .map(|value| value.downcast_ref::<CelString<'_>>())
        .collect();
    let Some([text, expression]) = texts.as_deref() else {
        let kinds = call
            .args
            .iter()
            .map(|value| value.get_type().name().to_owned())
            .collect();
        return Err(ExecutionError::no_such_overload("matches", kinds));
    };
    pay(budget, 50 + text.inner().len() as u64)?;
    let compiled;
    let pattern = if let Some(known) = patterns.get(expression.inner()) {
        known
    } else {
        pay(budget, COMPILING)?;
        compiled = Pattern::new(expression.inner());
        &compiled
    };
    if let Some(complaint) = pattern.complaint() {
        return Err(ExecutionError::function_error("matches", complaint));
    }
    Ok(CowVal::owned(CelBool::from(pattern.matches(text.inner()))))
}

/// An error without the values that it quotes.
fn told(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchOverload(_) | ExecutionError::UndeclaredReference(_) => first_line(&error.to_string()),
        ExecutionError::FunctionError { function, message } if function == "matches" => message.clone(),
        ExecutionError::FunctionError { function, .. } => format!("{function} cannot take this value"),
        ExecutionError::UnsupportedBinaryOperator(operator, ..) => format!("no such overload: {operator}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        _ => "no such overload".to_owned(),
    }
}

/// The first line of a parser's error. The other lines show the place.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("ERROR: <input>:").unwrap_or(line);
    line.to_owned()
}

/// A view of a value in which all numbers are floats, as rules expect it.
struct Doubles<'a>(&'a Value);

impl Serialize for Doubles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => serializer.serialize_f64(number.as_f64().unwrap_or_default()),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Doubles(item))?;
                }
                list.end()
            }
            Value::Object(map) => {
                let mut pairs = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map {
                    pairs.serialize_entry(key, &Doubles(value))?;
                }
                pairs.end()
            }
        }
    }
}
