//! The shell of addon-operator: everything that touches the world. Decisions are made in `addon-core`.
//!
//! Modules stand in the order in which they are best read.

/// So that code which tests inside and outside of this crate share finds it under one name.
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
pub mod signatures;

pub mod cluster;
pub mod disk;
pub mod helm;
pub mod registry;

pub mod jobs;
pub mod notices;
pub mod serve;

pub mod driver;

pub mod app;
pub mod cli;
