//! The lease as it is read and written, and how long everything about it takes.
//! Decides nothing.

use std::time::Duration;

use jiff::Timestamp;

use crate::artifact::reference::ImageDigest;

/// How long everything takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The time for which a lease without renewals keeps other replicas away.
    pub lease: Duration,
    /// The time for which a leader leads without a renewal; its work must end before the lease does.
    pub deadline: Duration,
    /// How often a leader renews, and others look.
    pub retry: Duration,
}

impl Timing {
    /// The times of the original, which may hold the same lease.
    pub const ORIGINAL: Self = Self {
        lease: Duration::from_secs(35),
        deadline: Duration::from_secs(30),
        retry: Duration::from_secs(10),
    };

    /// The usual times, where none are set: short enough for a quick next leader, and long enough
    /// for an API server that starts anew.
    pub const USUAL: Self = Self {
        lease: Duration::from_secs(18),
        deadline: Duration::from_secs(13),
        retry: Duration::from_secs(3),
    };

    /// The part of a lease after the deadline, in which a leader ends its work.
    pub fn farewell(self) -> Duration {
        self.lease.saturating_sub(self.deadline)
    }
}

/// The contents of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The replica that holds it; empty for none.
    pub holder: String,
    /// The time for which it keeps others away; nothing if its text is no time.
    pub lasts: Duration,
    /// The time at which its holder took it. It distinguishes two lives of one name.
    pub acquired: Timestamp,
    /// When it was written last.
    pub renewed: Timestamp,
    /// How often its holder has changed.
    pub transitions: u32,
    /// The version that may take it as soon as it is released; others wait until it has expired. Nothing: any version
    /// may.
    pub entitled: Option<ImageDigest>,
}

/// The lease as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The version of the object: each write has another.
    pub version: String,
    /// Its contents.
    pub record: Record,
    /// The knowledge of its holder beside that.
    pub holder: Holder,
}

/// Whether the holder of a lease can be known to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// It may live.
    Unknown,
    /// It has ended, and all that it has started: its containers have, or there is no such process on this machine.
    Gone,
}

/// One write of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// Its new contents.
    pub record: Record,
    /// Over which version and no other; `None`: only if there is no lease.
    pub over: Option<String>,
    /// The part in which its writer comes out of it.
    pub aim: Aim,
}

/// The part in which the writer comes out of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The leader.
    Hold,
    /// No leader: the write keeps the present holder, or has none.
    Leave,
}

/// How a write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It stands there, at this version.
    Through(String),
    /// Another replica was faster: it was not written.
    Conflict,
    /// It is not known whether it was written.
    Unknown,
}

pub(super) fn over(sighting: &Sighting, record: Record, aim: Aim) -> Writing {
    Writing {
        record,
        over: Some(sighting.version.clone()),
        aim,
    }
}

/// As exact as the lease can hold it: the time that is read back must be equal.
pub(super) fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
