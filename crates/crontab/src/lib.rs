//! Crontabs in the dialect of robfig/cron.v2, in which hooks are written, and Go's durations.
//!
//! A crontab is read once, and then gives the next time after any given time. The crate does no I/O, reads no clock and
//! asks no machine for its zone; README.md describes the dialect.

#![warn(missing_docs)]

pub mod duration;
pub mod schedule;
