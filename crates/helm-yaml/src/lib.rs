//! YAML as Helm and the original operators read it, and text that all of them read back as the very same value.
//!
//! A text becomes a `serde_json::Value` in one of two dialects, a value becomes a text. The crate does no I/O, and no
//! text makes it panic or take endless time or memory; README.md describes the dialects.

#![warn(missing_docs)]

pub mod number;

pub mod yaml;
