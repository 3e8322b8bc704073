//! The shell of the operator: everything that touches the world. Modules stand in suggested reading order.

pub mod disk;
pub mod mailbox;
pub mod process;
pub mod report;
pub mod settings;
pub mod telemetry;
