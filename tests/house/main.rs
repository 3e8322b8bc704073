//! The rules of the house that no compiler knows: who may use whom, how long a file may grow, what a name may be,
//! what the core may link, and whether the documents say the truth about all of it.
//!
//! Every check is a function from text to findings, so that it can be shown to fail on text made up for the purpose;
//! one test per check then applies it to the repository. Nothing here may change the tree, except for the quoted table
//! in ARCHITECTURE.md when `UPDATE=1` is set.

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
