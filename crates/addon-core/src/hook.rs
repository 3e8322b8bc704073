//! Hooks: what they bind to, what they are told, and what they answer.
//!
//! Must never run one: a hook is a description here.

pub mod cause;
pub mod config;
pub mod context;
pub mod crontab;
pub mod in_text;
pub mod output;
