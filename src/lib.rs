//! The shell of addon-operator: everything that touches the world. Decisions are made in `addon-core`.
//!
//! Modules stand in the order in which they are best read.

pub mod report;
pub mod settings;
pub mod telemetry;

pub mod certificates;
pub mod mailbox;
pub mod meters;
pub mod process;

pub mod cluster;
pub mod disk;
pub mod helm;

pub mod jobs;
pub mod notices;
pub mod serve;

pub mod driver;

pub mod app;
pub mod cli;
