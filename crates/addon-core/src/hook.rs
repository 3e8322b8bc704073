//! Hooks: their bindings, their contexts, and their output.
//!
//! Must never run one: a hook is a description here.

pub mod cause;
pub mod config;
pub mod context;
pub mod crontab;
pub mod in_text;
pub mod output;
