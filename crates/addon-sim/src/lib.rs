//! A simulated world that drives the core through random histories and checks the invariants after every step.
//!
//! For tests only. A run depends on a seed and a list of actions, and on nothing else: no clock, no thread, no file. Must
//! never use the core to compute what the core should have done.

pub mod action;
pub mod checks;
pub mod dice;
pub mod flat;
pub mod generate;
pub mod life;
pub mod model;
pub mod monitors;
pub mod record;
pub mod run;
pub mod schema;
pub mod setup;
pub mod show;
pub mod shrink;
pub mod sources;
pub mod told;
pub mod trial;
pub mod world;
