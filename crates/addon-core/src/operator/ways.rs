//! The ways between the state machines of the operator: each way is a method that passes an event, an outcome or the turn
//! of a lane from one machine to the next.
//!
//! A way asks a machine, matches on its answer, and passes it on. The ways have an order, which
//! `tests/house/machines.rs` lists and checks: each way may call only ways above it in that list. Must never use the
//! private state of a machine.

mod advance;
mod commits;
mod converging;
mod deletions;
mod enabling;
mod failures;
mod healing;
mod hooks;
mod loops;
mod objects;
mod outcomes;
mod ran;
mod readings;
mod releases;
mod removals;
mod renewals;
mod requests;
mod restoring;
mod reviewing;
mod runs;
mod sections;
mod standing_in;
mod starting;
mod supplying;
mod trials;
mod views;
mod warming;
mod waves;
