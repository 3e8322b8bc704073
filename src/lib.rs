//! The shell of addon-operator: all code with effects on the world. Decisions are made in `addon-core`.
//!
//! The modules are in the best order for reading.

/// Lets code that is shared by unit and integration tests use the same crate name.
#[cfg(test)]
extern crate self as addon_operator;

pub mod heap;
pub mod hosts;

pub mod dispatch;
pub mod driver;
pub mod serve;

pub mod app;
pub mod cli;
