//! Who leads where there are several of us: one lease that is written over, and what a replica does about it next.
//!
//! A replica leads because of a write of its own that went through, and no longer than the renew deadline after it *sent*
//! that write. Another one takes the lease when it has known the same version of it for as long as the lease is good,
//! counted from when it *received* it, and only over that very version. So no two lead at once as long as no clock runs
//! faster than another by more than the lease is longer than the deadline. A lease whose holder is found to have ended, by
//! who asks after that version was seen, need not be waited for.
//! Must never compare the clocks of two replicas: the times that stand in the lease are for people.

pub mod lease;

use std::time::Duration;

use jiff::Timestamp;

use crate::time::{Now, Tick};
use lease::{Holder, Record, Sighting, Timing, Writing, Written, micros, over};

/// Between an attempt that failed and the next one.
const PAUSE: Duration = Duration::from_secs(2);
/// How long one request about the lease may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Read the lease, and tell what was found.
    Look(Limit),
    /// Ask whether its holder has ended, and tell what was found about this version.
    Ask(Sighting, Limit),
    /// Write the lease, and tell how that went.
    Write(Writing, Limit),
    /// Nothing, before this tick or before something is heard of the lease.
    Wait(Tick),
    /// Nothing ever again: the lease cannot be kept, and whatever a leader has started has to end.
    StepDown,
}

/// How long a request may take.
pub type Limit = Duration;

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

/// The state at the beginning of a time as leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Succession {
    /// Nothing runs of one who led before.
    Clear,
    /// Its lease had run out, and nobody has seen its end.
    Contested,
}

/// A time as leader, while it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reign {
    /// How often the lease had changed hands by then.
    pub transitions: u32,
    /// How it began.
    pub succession: Succession,
    /// When nothing more may begin.
    pub deadline: Tick,
    /// When another one may lead.
    pub expiry: Tick,
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
    /// The holder may have ended, and nobody has asked.
    doubt: bool,
    /// How it would be if we came to lead.
    succession: Succession,
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
            doubt: false,
            succession: Succession::Clear,
        }
    }

    /// The time as leader that lasts, or that has run out and is not over yet.
    pub fn reign(&self) -> Option<Reign> {
        let Role::Leads(term) = &self.role else {
            return None;
        };
        Some(Reign {
            transitions: term.transitions,
            succession: self.succession,
            deadline: self.end_of(term),
            expiry: term.renewed + self.timing.lease,
        })
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

    fn poll_standby(&mut self, now: Now) -> Move {
        let wall = micros(now.wall);
        let succession = match &self.known {
            // Of our own writes we may not have heard.
            Known::There(sighting, _) if sighting.record.holder == self.me => self.succession,
            Known::There(sighting, _) if self.is_free(sighting) => Succession::Clear,
            Known::There(..) | Known::Absent | Known::Nothing => Succession::Contested,
        };
        match &self.known {
            _ if now.tick < self.next => Move::Wait(self.next),
            Known::Nothing => Move::Look(PATIENCE),
            Known::There(sighting, since) if !self.is_free(sighting) && now.tick < self.expiry(sighting, *since) => {
                if self.doubt {
                    Move::Ask(sighting.clone(), PATIENCE)
                } else {
                    Move::Look(PATIENCE)
                }
            }
            Known::Absent => {
                self.succession = succession;
                let record = self.record(wall, wall, 0);
                Move::Write(Writing { record, over: None }, PATIENCE)
            }
            Known::There(sighting, _) => {
                self.succession = succession;
                let is_new = sighting.record.holder != self.me;
                let transitions = sighting.record.transitions.saturating_add(u32::from(is_new));
                Move::Write(over(sighting, self.record(wall, wall, transitions)), PATIENCE)
            }
        }
    }

    /// The lease was read: this is what was found, nothing if there is none.
    pub fn looked(&mut self, now: Tick, found: Option<Sighting>) {
        let Some(found) = found else {
            self.missed(now);
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
            Role::Standby => {
                self.found(now, found);
                self.doubt_if_overdue(now);
            }
            Role::Deposed => {}
        }
    }

    /// There is no lease. One that was deleted keeps others away for as long as it would have: its holder leads until it hears of
    /// that, and then makes it again.
    fn missed(&mut self, now: Tick) {
        self.next = now;
        if let (Role::Standby, Known::There(sighting, since)) = (&self.role, &self.known) {
            let expiry = self.expiry(sighting, *since);
            if !self.is_free(sighting) && now < expiry {
                self.next = expiry.min(now + self.timing.retry);
                return;
            }
        }
        self.known = Known::Absent;
    }

    /// A holder that does not renew as often as it should may have ended.
    fn doubt_if_overdue(&mut self, now: Tick) {
        if let Known::There(sighting, since) = &self.known
            && !self.is_free(sighting)
            && now.since(*since) > self.timing.retry * 3 / 2
        {
            self.doubt = true;
            self.next = now;
        }
    }

    /// There is a sign that the holder has ended. It may be old, so the pod is looked at again before it counts.
    pub fn suspect(&mut self, now: Tick) {
        if matches!(self.role, Role::Standby) {
            self.doubt = true;
            self.next = self.next.min(now);
        }
    }

    /// It was asked, after that version had been seen, whether its holder has ended.
    pub fn asked(&mut self, now: Tick, about: &Sighting, holder: Holder) {
        self.doubt = false;
        let (retry, lasts) = (self.timing.retry, self.timing.lease);
        if let (Role::Standby, Known::There(known, since)) = (&self.role, &mut self.known)
            && known.version == about.version
        {
            known.holder = holder;
            let lasts = Some(known.record.lasts)
                .filter(|lasts| !lasts.is_zero())
                .unwrap_or(lasts);
            self.next = match holder {
                Holder::Gone => now,
                Holder::Unknown => (*since + lasts).min(now + retry),
            };
        }
    }

    /// It was heard how the lease stands, maybe late. A leader knows better.
    pub fn heard(&mut self, now: Tick, found: Sighting) {
        if matches!(self.role, Role::Standby) {
            self.found(now, found);
        }
    }

    fn found(&mut self, now: Tick, mut found: Sighting) {
        let since = match &self.known {
            Known::There(known, since) if known.version == found.version => {
                if known.holder == Holder::Gone {
                    found.holder = Holder::Gone;
                }
                *since
            }
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

#[cfg(test)]
mod tests;
