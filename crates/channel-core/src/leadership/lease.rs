//! The lease as it is read and written, and the durations of the election. This file decides nothing.

use std::time::Duration;

use jiff::Timestamp;

use crate::reference::ImageDigest;

/// The durations of the election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The time for which a lease that is not renewed keeps other replicas away.
    pub lease: Duration,
    /// The time for which a leader leads without a renewal. Its work must end before the lease expires.
    pub deadline: Duration,
    /// The interval at which a leader renews the lease and other replicas read it.
    pub retry: Duration,
}

impl Timing {
    /// The durations of the original, which may use the same lease.
    pub const ORIGINAL: Self = Self {
        lease: Duration::from_secs(35),
        deadline: Duration::from_secs(30),
        retry: Duration::from_secs(10),
    };

    /// The default durations: short enough for a quick next leader, and long enough for a restart of the API server.
    pub const USUAL: Self = Self {
        lease: Duration::from_secs(18),
        deadline: Duration::from_secs(13),
        retry: Duration::from_secs(3),
    };

    /// The time between the deadline and the end of the lease, in which a leader ends its work.
    pub fn farewell(self) -> Duration {
        self.lease.saturating_sub(self.deadline)
    }
}

/// The contents of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The replica that holds the lease; empty if none does.
    pub holder: String,
    /// The time for which the lease keeps other replicas away; zero if the text of this time cannot be read.
    pub lasts: Duration,
    /// The time at which the holder took the lease. It distinguishes two lives with one name.
    pub acquired: Timestamp,
    /// The time of the last write.
    pub renewed: Timestamp,
    /// The number of changes of the lease's holder.
    pub transitions: u32,
    /// The version that may take the lease as soon as it is released. Other versions wait until it has expired. `None`:
    /// every version may take it.
    pub entitled: Option<ImageDigest>,
}

/// The lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The `resourceVersion` of the lease, which differs for each write.
    pub version: String,
    /// The contents of the lease.
    pub record: Record,
    /// Whether the holder of the lease is known to have ended.
    pub holder: Holder,
}

/// Whether the holder of a lease is known to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The holder may be alive.
    Unknown,
    /// The holder and everything that it started have ended: its containers have terminated, or this machine has no such
    /// process.
    Gone,
}

/// One write of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// The new contents.
    pub record: Record,
    /// The version that the write replaces. If the lease has another version, the write fails. `None`: there must be no lease.
    pub over: Option<String>,
    /// The role of the writer after a successful write.
    pub aim: Aim,
}

/// The role of the writer after a successful write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The leader.
    Hold,
    /// A standby: after the write the lease has its present holder, or none.
    Leave,
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The lease was written and has this version now.
    Through(String),
    /// Another replica wrote the lease first, so our write was refused.
    Conflict,
    /// It is unknown whether the lease was written.
    Unknown,
}

pub(super) fn over(sighting: &Sighting, record: Record, aim: Aim) -> Writing {
    Writing {
        record,
        over: Some(sighting.version.clone()),
        aim,
    }
}

/// Rounds a time to the precision of the lease, so that the time that is read back is equal.
pub(super) fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
