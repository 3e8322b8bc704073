//! Answers about hooks: their snapshots, and the records of their runs.
//!
//! Must never show the data of a Secret to a client that sees none.

pub mod records;
pub mod snapshots;
