//! The shell of addon-operator: all code with effects on the world. Decisions are made in `addon-core`.
//!
//! The modules are in the best order for reading.

/// Lets code that is shared by unit and integration tests use the same crate name.
#[cfg(test)]
extern crate self as addon_operator;

pub mod blocking;
pub mod hosts;
pub mod report;
pub mod secrets;
pub mod settings;
pub mod telemetry;
pub mod traces;

pub mod certificates;
pub mod mailbox;
pub mod meters;
pub mod process;
pub mod records;
pub mod signatures;

pub mod cluster;
pub mod disk;
pub mod helm;
pub mod registry;

pub mod package;

pub mod jobs;
pub mod notices;
pub mod serve;

pub mod driver;

pub mod app;
pub mod cli;
