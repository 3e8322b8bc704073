//! Who leads where there are several of us: one lease that is written over, and what a replica does about it next.
//!
//! A replica leads because of a write of its own that went through, and no longer than the renew deadline after it *sent*
//! that write. Another one takes the lease when it has known the same version of it for as long as the lease is good,
//! counted from when it *received* it, and only over that very version. So no two lead at once as long as no clock runs
//! faster than another by more than the lease is longer than the deadline.
//! Must never compare the clocks of two replicas: the times that stand in the lease are for people.

use std::time::Duration;

use jiff::Timestamp;

use crate::time::{Now, Tick};

/// Between an attempt that failed and the next one.
const PAUSE: Duration = Duration::from_secs(2);
/// How long one request about the lease may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long everything takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a lease that nobody renews keeps others away.
    pub lease: Duration,
    /// How long a leader leads without a renewal; what it has started is to have ended before the lease does.
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

    /// How much of a lease is left after the deadline, to end what a leader has started.
    pub fn farewell(self) -> Duration {
        self.lease.saturating_sub(self.deadline)
    }
}

/// What stands in the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty for nobody.
    pub holder: String,
    /// How long it keeps others away; nothing for what is no time.
    pub lasts: Duration,
    /// When its holder came to hold it. It tells two lives of one name apart.
    pub acquired: Timestamp,
    /// When it was written last.
    pub renewed: Timestamp,
    /// How often its holder has changed.
    pub transitions: u32,
}

/// The lease as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The version of the object: another one is another writing.
    pub version: String,
    /// What it says.
    pub record: Record,
    /// What is known of its holder beside that.
    pub holder: Holder,
}

/// Whether the holder of a lease can be known to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// It may live.
    Unknown,
    /// It was a process of this machine, and there is no such process any more.
    Gone,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Read the lease, and tell what was found.
    Look(Limit),
    /// Write the lease, and tell how that went.
    Write(Writing, Limit),
    /// Nothing, before this tick or before something is heard of the lease.
    Wait(Tick),
    /// Nothing ever again: the lease cannot be kept, and whatever a leader has started has to end.
    StepDown,
}

/// How long a request may take.
pub type Limit = Duration;

/// One write of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// What it is to say.
    pub record: Record,
    /// Over which version and no other; `None`: only if there is no lease.
    pub over: Option<String>,
}

/// How a write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It stands there, at this version.
    Through(String),
    /// Somebody else was faster: it was not written.
    Conflict,
    /// Nobody knows whether it was written.
    Unknown,
}

/// What a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Others lead, or nobody does.
    Standby,
    /// It leads.
    Leads,
    /// It has led, and must not do so again in this life.
    Deposed,
}

/// One replica's part in the election.
#[derive(Debug, Clone)]
pub struct Election {
    me: String,
    timing: Timing,
    role: Role,
    known: Known,
    /// Not before this is anything tried.
    next: Tick,
}

#[derive(Debug, Clone)]
enum Role {
    Standby,
    Leads(Term),
    Deposed,
}

/// A time as leader.
#[derive(Debug, Clone)]
struct Term {
    acquired: Timestamp,
    transitions: u32,
    /// When the last write that went through was sent.
    renewed: Tick,
}

/// What is known of the lease.
#[derive(Debug, Clone)]
enum Known {
    Nothing,
    Absent,
    /// Found so, and not otherwise since that tick.
    There(Sighting, Tick),
}

impl Election {
    /// A replica of this name that knows nothing yet. A lease that is held under its name is its own.
    pub fn new(me: String, timing: Timing) -> Self {
        Self {
            me,
            timing,
            role: Role::Standby,
            known: Known::Nothing,
            next: Tick::ZERO,
        }
    }

    /// What it is at this moment. To be asked before anything is done as leader.
    pub fn standing(&self, now: Tick) -> Standing {
        match &self.role {
            Role::Standby => Standing::Standby,
            Role::Leads(term) if now < self.end_of(term) => Standing::Leads,
            Role::Leads(_) | Role::Deposed => Standing::Deposed,
        }
    }

    /// Who else holds the lease, as far as is known.
    pub fn leader(&self) -> Option<&str> {
        let Known::There(sighting, _) = &self.known else {
            return None;
        };
        let holder = sighting.record.holder.as_str();
        (!holder.is_empty() && holder != self.me).then_some(holder)
    }

    /// The next thing to do. Asked again after everything that is told.
    pub fn poll(&mut self, now: Now) -> Move {
        let tick = now.tick;
        match &self.role {
            Role::Deposed => Move::StepDown,
            Role::Leads(term) if tick >= self.end_of(term) => {
                self.role = Role::Deposed;
                Move::StepDown
            }
            Role::Leads(term) => {
                let left = self.end_of(term) - tick;
                if tick < self.next {
                    return Move::Wait(self.next.min(self.end_of(term)));
                }
                let limit = PATIENCE.min(left);
                let record = self.record(term.acquired, now.wall, term.transitions);
                match &self.known {
                    Known::Nothing => Move::Look(limit),
                    Known::Absent => Move::Write(Writing { record, over: None }, limit),
                    Known::There(sighting, _) => Move::Write(over(sighting, record), limit),
                }
            }
            Role::Standby => self.poll_standby(now),
        }
    }

    fn poll_standby(&self, now: Now) -> Move {
        let wall = micros(now.wall);
        match &self.known {
            _ if now.tick < self.next => Move::Wait(self.next),
            Known::Nothing => Move::Look(PATIENCE),
            Known::There(sighting, since) if !self.is_free(sighting) && now.tick < self.expiry(sighting, *since) => {
                Move::Look(PATIENCE)
            }
            Known::Absent => {
                let record = self.record(wall, wall, 0);
                Move::Write(Writing { record, over: None }, PATIENCE)
            }
            Known::There(sighting, _) => {
                let is_new = sighting.record.holder != self.me;
                let transitions = sighting.record.transitions.saturating_add(u32::from(is_new));
                Move::Write(over(sighting, self.record(wall, wall, transitions)), PATIENCE)
            }
        }
    }

    /// The lease was read: this is what was found, nothing if there is none.
    pub fn looked(&mut self, now: Tick, found: Option<Sighting>) {
        let Some(found) = found else {
            self.known = Known::Absent;
            self.next = now;
            return;
        };
        match &self.role {
            Role::Leads(term) => {
                let record = &found.record;
                if record.holder == self.me && record.acquired == term.acquired {
                    // A write of ours of which we had not heard.
                    self.next = now;
                } else {
                    self.role = Role::Deposed;
                }
                self.known = Known::There(found, now);
            }
            Role::Standby => self.found(now, found),
            Role::Deposed => {}
        }
    }

    /// It was heard how the lease stands, maybe late. A leader knows better.
    pub fn heard(&mut self, now: Tick, found: Sighting) {
        if matches!(self.role, Role::Standby) {
            self.found(now, found);
        }
    }

    fn found(&mut self, now: Tick, found: Sighting) {
        let since = match &self.known {
            Known::There(known, since) if known.version == found.version => *since,
            Known::There(..) | Known::Nothing | Known::Absent => now,
        };
        self.next = if self.is_free(&found) {
            now
        } else {
            self.expiry(&found, since).min(now + self.timing.retry)
        };
        self.known = Known::There(found, since);
    }

    /// The lease could not be read.
    pub fn look_failed(&mut self, now: Tick) {
        self.next = now + PAUSE;
    }

    /// A write that was sent at that tick has ended.
    pub fn wrote(&mut self, sent: Tick, now: Tick, writing: Writing, written: Written) {
        if matches!(self.role, Role::Deposed) {
            return;
        }
        match written {
            Written::Through(version) => {
                let record = writing.record;
                self.role = Role::Leads(Term {
                    acquired: record.acquired,
                    transitions: record.transitions,
                    renewed: sent,
                });
                let holder = Holder::Unknown;
                let sighting = Sighting {
                    version,
                    record,
                    holder,
                };
                self.known = Known::There(sighting, now);
                self.next = sent + self.timing.retry;
            }
            Written::Conflict => {
                self.known = Known::Nothing;
                self.next = now;
            }
            // If it was written after all, the next attempt is a conflict.
            Written::Unknown => self.next = now + PAUSE,
        }
    }

    /// What a leader writes when nothing that it has started is left, so that another one need not wait.
    pub fn release(&self, now: Now) -> Option<Writing> {
        let (Role::Leads(term), Known::There(sighting, _)) = (&self.role, &self.known) else {
            return None;
        };
        let wall = micros(now.wall);
        let record = Record {
            holder: String::new(),
            lasts: Duration::from_secs(1),
            acquired: wall,
            renewed: wall,
            transitions: term.transitions,
        };
        (now.tick < self.end_of(term)).then(|| over(sighting, record))
    }

    fn end_of(&self, term: &Term) -> Tick {
        term.renewed + self.timing.deadline
    }

    fn is_free(&self, sighting: &Sighting) -> bool {
        let holder = &sighting.record.holder;
        holder.is_empty() || *holder == self.me || sighting.holder == Holder::Gone
    }

    fn expiry(&self, sighting: &Sighting, since: Tick) -> Tick {
        let lasts = sighting.record.lasts;
        since + if lasts.is_zero() { self.timing.lease } else { lasts }
    }

    fn record(&self, acquired: Timestamp, renewed: Timestamp, transitions: u32) -> Record {
        Record {
            holder: self.me.clone(),
            lasts: self.timing.lease,
            acquired,
            renewed: micros(renewed),
            transitions,
        }
    }
}

fn over(sighting: &Sighting, record: Record) -> Writing {
    Writing {
        record,
        over: Some(sighting.version.clone()),
    }
}

/// As exact as the lease can hold it: what is read back has to be equal.
fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
