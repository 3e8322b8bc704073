//! The ways between the machines: an event, an outcome or a turn of a lane goes from one machine to the next.
//!
//! A way asks a machine, matches on its answer, and hands it on. The ways lie in floors: each calls those below it and none above,
//! which `tests/house/machines.rs` holds. Must never know what a machine keeps to itself.

mod advance;
mod commits;
mod converging;
mod deletions;
mod enabling;
mod failures;
mod hooks;
mod objects;
mod outcomes;
mod ran;
mod readings;
mod releases;
mod removals;
mod requests;
mod restoring;
mod reviewing;
mod runs;
mod sections;
mod starting;
mod trials;
mod views;
mod warming;
mod waves;
