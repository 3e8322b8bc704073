//! Errors of filters: a text that cannot be compiled, a run without a result.

use thiserror::Error;

/// The reason for which a text is no filter, or a run of a filter gave no result. The text of each variant is complete:
/// none has a source.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FilterError {
    /// The text breaks the grammar. Only `Filter::compile` gives this.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Line of the text, from 1.
        line: usize,
        /// Column of that line, from 1, in characters.
        column: usize,
        /// The mistake at that place, as a phrase: `unexpected 'x'`.
        what: String,
    },
    /// The text names a function, variable or label that is not defined. Only `Filter::compile` gives this.
    #[error("{kind} not defined: {name}")]
    Undefined {
        /// `function`, `variable` or `label`.
        kind: &'static str,
        /// The name. For a function it includes the number of arguments, as in `map/1`.
        name: String,
    },
    /// The filter failed on this input, or called `error`. For most errors the text equals that of gojq. For `error` it
    /// is the argument, which may be as long as the input.
    #[error("{0}")]
    Failed(String),
    /// The filter ended with `halt_error`. The text is its argument, as JSON unless it is a string.
    #[error("halted: {0}")]
    Halted(String),
    /// The run exceeded one of its limits: `long`, `much memory` or `many calls within calls`.
    #[error("the filter takes too {0}")]
    Exceeded(&'static str),
}
