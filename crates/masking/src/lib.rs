//! Secrets in texts and documents: the names that mark them, and the same texts and documents without them.
//!
//! The crate does no I/O and keeps nothing; README.md lists the marks. It must never be applied to what a program
//! reads, only to output for people.

#![warn(missing_docs)]

pub mod secret;
