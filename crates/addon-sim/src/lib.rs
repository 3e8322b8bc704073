//! A fake world that drives the core through random histories and checks after every step what must hold.
//!
//! For tests only. A run is a seed and a list of actions, and nothing else: no clock, no thread, no file. Must never
//! use the core to work out what the core should have done.

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
pub mod told;
pub mod trial;
pub mod world;
