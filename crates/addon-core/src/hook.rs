//! Hooks: their bindings, their contexts, and their output.
//!
//! Must never run a hook: here a hook is only described.

pub mod cause;
pub mod condition;
pub mod config;
pub mod context;
pub mod in_text;
pub mod output;
