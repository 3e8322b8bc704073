//! One CEL expression, read once and evaluated at each check.
//!
//! Its errors must never show a value that it read, because that may be a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelString};
use cel::common::value::CowVal;
use cel::parser::PrattParser;
use cel::{Context, Env, ExecutionError, FunctionContext, Value as Cel};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Number, Value};

use super::super::node::Pattern;
use super::cost::{Budget, size};
use super::functions::{self, is_absence};
use super::guard::{self, BEFORE, HAS, MATCHES, Names, SELF, TEXT, WEIGH};

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
    /// The top-level fields that the expression reads.
    fields: BTreeSet<String>,
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

/// The reason why an evaluation gives no boolean.
enum Stop {
    Unreadable,
    Spent,
    NoBoolean,
    Error(ExecutionError),
}

impl Program {
    pub(super) fn compile(text: &str, names: Names) -> Result<Self, String> {
        if text.len() > MAX_TEXT {
            return Err(format!("it is longer than {MAX_TEXT} bytes"));
        }
        let parser = PrattParser::default()
            .max_recursion_depth(MAX_BRACKETS)
            .max_expression_node_count(MAX_NODES);
        let expression = parser.parse(text).map_err(|errors| first_line(&errors.to_string()))?;
        let guarded = guard::guard(expression, names)?;
        let patterns = guarded
            .patterns
            .into_iter()
            .map(|text| (text.clone(), Pattern::new(&text)))
            .collect();
        Ok(Self {
            text: text.to_owned(),
            expression: guarded.expression,
            looks_back: guarded.looks_back,
            fields: guarded.fields,
            patterns: Arc::new(patterns),
        })
    }

    pub(super) fn run(&self, value: &Value, before: Option<&Value>, budget: &Budget) -> Outcome {
        if self.looks_back && before.is_none() {
            return Outcome::Skipped;
        }
        let failed = |why: &str| Outcome::Failed(format!("evaluate the '{}' rule: {why}", self.text));
        let variables = [(SELF, value), (BEFORE, before.unwrap_or(&Value::Null))];
        match self.evaluate(&variables.map(|(name, value)| (name, Doubles(value))), budget) {
            Ok(true) => Outcome::True,
            Ok(false) => Outcome::False,
            Err(Stop::Unreadable) => failed("its values cannot be read"),
            Err(Stop::Spent) => failed("it takes too many steps"),
            Err(Stop::NoBoolean) => Outcome::Failed("rule should return boolean".to_owned()),
            Err(Stop::Error(error)) if is_absence(&error) => Outcome::Skipped,
            Err(Stop::Error(error)) => failed(&told(&error)),
        }
    }

    /// Evaluates an expression about the top-level fields of an object. An error is told without values of the object.
    pub(super) fn run_on_fields(&self, object: &Map<String, Value>, budget: &Budget) -> Result<bool, String> {
        let read = self
            .fields
            .iter()
            .filter_map(|name| Some((name.as_str(), Whole(object.get(name)?))));
        let variables: Vec<(&str, Whole<'_>)> = read.collect();
        self.evaluate(&variables, budget).map_err(|stop| match stop {
            Stop::Unreadable => "its values cannot be read".to_owned(),
            Stop::Spent => "it takes too many steps".to_owned(),
            Stop::NoBoolean => "its result is no boolean".to_owned(),
            Stop::Error(ExecutionError::NoSuchKey(key)) => self.absence(&key),
            Stop::Error(ExecutionError::UndeclaredReference(name)) => self.absence(&name),
            Stop::Error(error) => told(&error),
        })
    }

    /// A key may be computed from a value, so only a key that the expression itself contains is named.
    fn absence(&self, key: &str) -> String {
        if !key.is_empty() && self.text.contains(key) {
            return format!("the field '{key}' is missing");
        }
        "a field is missing".to_owned()
    }

    fn evaluate<V: Serialize>(&self, variables: &[(&str, V)], budget: &Budget) -> Result<bool, Stop> {
        let context = self.context(variables, budget).map_err(|_| Stop::Unreadable)?;
        let result = Cel::resolve(&self.expression, &context);
        // The operator `||` may swallow an error, so the budget is checked again at the end.
        if budget.is_spent() {
            return Err(Stop::Spent);
        }
        match result {
            Ok(Cel::Bool(flag)) => Ok(flag),
            Ok(_) => Err(Stop::NoBoolean),
            Err(error) => Err(Stop::Error(error)),
        }
    }

    fn context<V: Serialize>(
        &self,
        variables: &[(&str, V)],
        budget: &Budget,
    ) -> Result<Context<'static, 'static>, cel::SerializationError> {
        let mut context = Context::with_env(Arc::clone(&LIBRARY));
        for (name, value) in variables {
            context.add_variable(*name, value)?;
        }
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
        let float = |number: &Number, serializer: S| serializer.serialize_f64(number.as_f64().unwrap_or_default());
        serialize(self.0, serializer, float, Doubles)
    }
}

/// A view of a value in which whole numbers are signed, as those of objects are.
struct Whole<'a>(&'a Value);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let signed = |number: &Number, serializer: S| match number.as_i64() {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(number.as_f64().unwrap_or_default()),
        };
        serialize(self.0, serializer, signed, Whole)
    }
}

fn serialize<'a, S: Serializer, V: Serialize>(
    value: &'a Value,
    serializer: S,
    number: impl Fn(&Number, S) -> Result<S::Ok, S::Error>,
    view: impl Fn(&'a Value) -> V,
) -> Result<S::Ok, S::Error> {
    match value {
        Value::Null => serializer.serialize_unit(),
        Value::Bool(flag) => serializer.serialize_bool(*flag),
        Value::Number(count) => number(count, serializer),
        Value::String(text) => serializer.serialize_str(text),
        Value::Array(items) => {
            let mut list = serializer.serialize_seq(Some(items.len()))?;
            for item in items {
                list.serialize_element(&view(item))?;
            }
            list.end()
        }
        Value::Object(map) => {
            let mut pairs = serializer.serialize_map(Some(map.len()))?;
            for (key, value) in map {
                pairs.serialize_entry(key, &view(value))?;
            }
            pairs.end()
        }
    }
}
