//! Filters: programs in the dialect of gojq 0.12, compiled once and applied to any number of inputs.
//!
//! The evaluator is jaq's. The parts in which the two dialects differ are ours: grammar, values, natives. A filter reads
//! its input and nothing else: no file, no environment, no clock. Each run ends: one that takes too long, recurses too
//! deep or allocates too much is an error, see [`Limits`]. Must never panic, for any text and any input.
//!
//! The evaluator recurses on the stack of the caller. A run notices when it has used [`Limits::stack`] bytes, and uses at
//! most a fixed amount beyond; compiling uses less. A thread with two megabytes of stack is enough for both.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jaq_core::load::parse::Def;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Ctx, Vars};
use regex::Regex;
use serde_json::Value;

use crate::budget::{Budget, Stop};
use crate::engine::{Data, Engine};
use crate::error::FilterError;
use crate::limits::Limits;
use crate::value::{Size, Val};
use crate::{grammar, natives, prelude, value};

/// A compiled filter. A clone only counts references. Filters are equal if their texts are equal.
#[derive(Clone)]
pub struct Filter {
    text: Arc<str>,
    program: Arc<Compiled>,
}

/// The parts that all clones of a filter share.
struct Compiled {
    entry: jaq_core::Filter<Engine>,
    expressions: BTreeMap<String, Regex>,
}

impl Filter {
    /// Compiles a text of at most 64 KiB. The error is [`FilterError::Syntax`] or [`FilterError::Undefined`].
    pub fn compile(text: &str) -> Result<Self, FilterError> {
        let arena = Arena::default();
        let (mut defs, scopes) = prelude::load(&arena, natives::of_many_values())?;
        let program = grammar::Grammar::program(text, &arena, scopes)?;
        defs.push(Def {
            name: ENTRY,
            args: Vec::new(),
            body: program.body,
        });
        let modules = Loader::new(defs)
            .load(&arena, File { code: ENTRY, path: () })
            .map_err(|_| unloadable())?;
        let compiler = jaq_core::Compiler::default().with_funs(natives::all());
        match compiler.compile(modules) {
            Ok(entry) => {
                let expressions = natives::patterns::known(&program.expressions);
                Ok(Self {
                    text: text.into(),
                    program: Arc::new(Compiled { entry, expressions }),
                })
            }
            Err(errors) => Err(errors
                .iter()
                .flat_map(|(_, missing)| missing)
                .next()
                .map_or_else(unloadable, undefined)),
        }
    }

    /// The text of the filter.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One value for one input: `null` if there is no output, the output if there is one, an array if there are several.
    pub fn apply(&self, input: &Value) -> Result<Value, FilterError> {
        let mut outputs = self.outputs(input)?;
        Ok(match outputs.len() {
            0 => Value::Null,
            1 => outputs.swap_remove(0),
            _ => Value::Array(outputs),
        })
    }

    /// All outputs for one input in their order, within the default limits. `halt` ends the outputs without an error.
    pub fn outputs(&self, input: &Value) -> Result<Vec<Value>, FilterError> {
        self.outputs_within(input, &Limits::default(), None)
    }

    /// All outputs within these limits. `now` is the result of the function `now` in seconds since 1970. Without this
    /// argument the function fails.
    pub fn outputs_within(&self, input: &Value, limits: &Limits, now: Option<f64>) -> Result<Vec<Value>, FilterError> {
        Size::raw(input).map_err(|error| FilterError::Failed(error.to_string()))?;
        let budget = Budget::new(limits, now, &self.program.expressions);
        let data = Data {
            lut: &self.program.entry.lut,
            budget: &budget,
        };
        let context = Ctx::<Engine>::new(data, Vars::new([]));
        let mut outputs = Vec::new();
        let mut left = limits.output;
        for output in self.program.entry.id.run((context, value::import(input))) {
            let output = match output {
                Ok(output) => output,
                Err(exception) => return stopped(&budget, outputs, exception),
            };
            let size = output.size().map_err(|error| FilterError::Failed(error.to_string()))?;
            left = left
                .checked_sub(size.weight)
                .ok_or(FilterError::Exceeded("much memory"))?;
            outputs.push(output.export());
        }
        Ok(outputs)
    }
}

/// The name under which the text of a filter is compiled. No filter can call it.
const ENTRY: &str = "_entry";

fn unloadable() -> FilterError {
    FilterError::Failed("the filter cannot be read".to_owned())
}

fn undefined((name, missing): &(&str, jaq_core::compile::Undefined)) -> FilterError {
    match missing {
        jaq_core::compile::Undefined::Filter(arity) => FilterError::Undefined {
            kind: "function",
            name: format!("{name}/{arity}"),
        },
        other => FilterError::Undefined {
            kind: other.as_str(),
            name: (*name).to_owned(),
        },
    }
}

/// The result of a run that was ended.
fn stopped<'a>(
    budget: &Budget<'_>,
    outputs: Vec<Value>,
    exception: jaq_core::Exn<'a, Val<'a>>,
) -> Result<Vec<Value>, FilterError> {
    match budget.stopped() {
        Some(Stop::Halt(None)) => Ok(outputs),
        Some(Stop::Halt(Some(message))) => Err(FilterError::Halted(message)),
        Some(Stop::Steps) => Err(FilterError::Exceeded("long")),
        Some(Stop::Memory) => Err(FilterError::Exceeded("much memory")),
        Some(Stop::Stack) => Err(FilterError::Exceeded("many calls within calls")),
        None => Err(FilterError::Failed(match exception.get_err() {
            Ok(error) => error.to_string(),
            Err(_) => "a label that is gone".to_owned(),
        })),
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Filter {}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

#[cfg(test)]
mod tests;
