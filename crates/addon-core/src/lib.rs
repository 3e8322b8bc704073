//! All decisions of addon-operator, as a value that does no I/O.
//!
//! The crate depends on no library that does I/O, its clippy.toml forbids clocks, files and hash containers, and a test
//! keeps tokio, hyper and kube out of its dependency graph.

#![warn(missing_docs)]

pub mod digest;

pub mod failure;

pub mod object;

pub mod values;

pub mod metric;

pub mod queue;

pub mod hook;

pub mod module;

pub mod release;

pub mod review;

pub mod operator;
