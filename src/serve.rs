//! The interface for people and machines: probes, metrics, and the debug socket. Must never decide, and never keep
//! state.

pub mod debug;
pub mod page;
pub mod probe;
pub mod pulse;
pub mod queue_text;
#[cfg(test)]
mod stage;
