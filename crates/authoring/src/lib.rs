//! Tools for the authors of modules and hooks: lint, test cases, drafts, rights, replays, and the check of a ConfigMap.
//!
//! They run the same code as the operator, without a cluster. Must never write outside of the folders that a person names.
//!
//! ```text
//!   module new --> draft            module test --> cases --> hooks, helm, imitation   an API server of objects in memory
//!   module lint --> lint            hook replay --> replaying --> hooks
//!   rbac generate --> rights        config check --> check
//!                      all of them --> offline   helm and hooks without an operator        command: the words before the arrows
//! ```
//!
//! Begin with `lint.rs`.

pub mod cases;
pub mod check;
pub mod command;
pub mod draft;
pub mod findings;
pub mod imitation;
pub mod lint;
pub mod manifest;
pub mod offline;
pub mod replaying;
pub mod rights;
