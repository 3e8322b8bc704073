//! The filters of hooks: `jqFilter` of a binding and of a patch, in the dialect of the original's engine, gojq 0.12.
//!
//! A filter is compiled once and applied to every object that a hook watches. The engine is jaq's; what the two dialects
//! understand differently is ours: the grammar, the values, the natives (see the modules below). A filter reads its input
//! and nothing else: no file, no environment, no clock. And it ends: what runs too long, too deep or grows too large is an
//! error, see [`Limits`]. Must never panic, whatever the text and whatever the input.
//!
//! The engine calls itself on the stack of the caller. A filter never takes more than [`Limits::stack`] of it before
//! it notices, and a fixed amount beyond that; compiling takes less. Two megabytes are enough for both.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jaq_core::load::parse::Def;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Ctx, DataT, Vars};
use regex::Regex;
use serde_json::Value;
use thiserror::Error;

use crate::budget::{Budget, Data, Stop};
use crate::value::{MAX_WEIGHT, Size, Val};
use crate::{grammar, natives, prelude, value};

/// The kinds of data that the engine runs on.
pub(crate) struct Engine;

impl DataT for Engine {
    type V<'a> = Val<'a>;
    type Data<'a> = Data<'a>;
}

/// A filter, ready to be applied. Cheap to clone.
#[derive(Clone)]
pub struct Filter {
    text: Arc<str>,
    program: Arc<Compiled>,
}

/// What all clones of a filter share.
struct Compiled {
    entry: jaq_core::Filter<Engine>,
    expressions: BTreeMap<String, Regex>,
}

/// What a filter may cost at most.
///
/// How deep and how heavy a single value may become is fixed: 400 levels, two million parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Work: about one for each step of a generator, four for each call of a definition that calls itself.
    pub steps: u64,
    /// Memory that is asked for in all, in cells of at most 32 bytes; what is given back is not counted.
    pub cells: u64,
    /// Stack, in bytes from where the filter is applied.
    pub stack: usize,
    /// Parts of all outputs together.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 2_000_000,
            cells: 6_000_000,
            stack: 1200 * 1024,
            output: MAX_WEIGHT / 4,
        }
    }
}

/// Why a filter is none, or why it gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FilterError {
    /// The text is no filter.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// The text names something that does not exist.
    #[error("{kind} not defined: {name}")]
    Undefined {
        /// What kind of thing.
        kind: &'static str,
        /// Its name, a function's with the number of its arguments.
        name: String,
    },
    /// The filter failed on this input, or failed on purpose.
    #[error("{0}")]
    Failed(String),
    /// The filter ended with `halt_error`.
    #[error("halted: {0}")]
    Halted(String),
    /// The filter did not come to an end within its limits.
    #[error("the filter takes too {0}")]
    Exceeded(&'static str),
}

impl Filter {
    /// Reads a filter.
    pub fn compile(text: &str) -> Result<Self, FilterError> {
        let arena = Arena::default();
        let (mut defs, scopes) = prelude::load(&arena)?;
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

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One value for one input: nothing is null, several are an array.
    pub fn apply(&self, input: &Value) -> Result<Value, FilterError> {
        let mut outputs = self.outputs(input)?;
        Ok(match outputs.len() {
            0 => Value::Null,
            1 => outputs.swap_remove(0),
            _ => Value::Array(outputs),
        })
    }

    /// All outputs for one input; `halt` ends them.
    pub fn outputs(&self, input: &Value) -> Result<Vec<Value>, FilterError> {
        self.outputs_within(input, &Limits::default(), None)
    }

    /// All outputs within given limits. `now` is what the filter of that name says, in seconds since 1970; without it
    /// that filter fails.
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

/// The name under which a filter's text is compiled; no filter can call it.
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

/// The end of a run that did not end by itself.
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
