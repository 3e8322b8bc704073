//! The operator: one value that makes every decision of the program.
//!
//! It reads no clock, starts nothing and locks nothing. The driver tells it what happened (`handle`), carries out
//! what it asks for (`poll_effect`), wakes it when it wants to be woken (`poll_timeout`) and lets people look
//! (`answer`). This file only routes; each decision lives in the file of its own machine.

pub mod effect;
pub mod event;
pub mod policy;
pub mod query;
