//! Status objects: an object of the kind Module for each module and one of the kind Operator, for `kubectl get`, `kubectl wait`, and
//! programs that judge objects by kstatus.
//!
//! A sheet is the content of one object. The ledger knows which sheets are written, and decides when one is written again; the writer
//! sends them. Must never be read for a decision of the operator, and never hold a secret.
//!
//! ```text
//!   reports of the core --> sheets --> ledger --> writer --> API server
//!                                        ^                      |
//!                                        +--- once, at a start -+
//! ```
//!
//! Begin with `sheet`, then `ledger`.

pub mod condition;
pub mod ledger;
pub mod module;
pub mod operator;
pub mod sheet;
pub mod writer;
