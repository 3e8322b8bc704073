//! The rules of the house that no compiler checks: dependencies between modules, the length of files, names, the crates
//! that the core may link, and whether the documents are true about all of this.
//!
//! Every check is a function from text to findings, so a test can show that it fails on invented text. One more test
//! per check applies it to the repository. Nothing here may change the tree, except the quoted table in docs/why/layers.md
//! with `UPDATE=1`.

mod commits;
mod dependencies;
mod documents;
mod finding;
mod layering;
mod layers;
mod machines;
mod mutants;
mod names;
mod promises;
mod repository;
mod scan;
mod sizes;
mod states;
mod words;
