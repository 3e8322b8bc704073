//! Schemas of modules' values, as the files in `openapi` hold them: Swagger 2 as go-openapi reads it, rules in CEL, defaults, marks of
//! secrets.
//!
//! Texts of files become schemas; schemas fill in defaults, refuse values with the texts of the original, and tell which values are secret.
//! The crate does no I/O; README.md describes the dialect and its limits.

#![warn(missing_docs)]

pub mod schema;
