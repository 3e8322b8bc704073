//! The language of hooks' filters: jq in the dialect of gojq 0.12, on the evaluator of jaq.
//!
//! A filter is compiled once and applied to any number of values, each time within limits. The crate does no I/O and
//! reads no clock. README.md describes the dialect and its limits.

#![warn(missing_docs)]

pub mod error;
pub mod filter;
pub mod limits;
pub mod pattern;

mod budget;
mod engine;
mod grammar;
mod lexer;
mod lower;
mod natives;
mod number;
mod prelude;
mod value;
