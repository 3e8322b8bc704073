//! The operator's page: all modules at a glance, one module, and the operator itself, for people with a browser.
//!
//! Facts come in as plain data, a view arranges them, and a template writes HTML. Must never change anything, never ask the core
//! itself, and never hold a secret: the program masks facts before it hands them over.
//!
//! ```text
//!   the program --> facts --> view --> templates --> kept --> server --> browser
//!      |                                              ^          |
//!      +------------ "something has changed" ---------+----------+--> live
//! ```
//!
//! Begin with `facts`, then `view`, then `server`.

pub mod assets;
pub mod facts;
pub mod guard;
mod kept;
mod live;
pub mod render;
pub mod review;
pub mod server;
pub mod text;
pub mod view;
