//! Hooks: what they bind to, what they are told, and what they answer.

pub mod config;
pub mod context;
pub mod crontab;
