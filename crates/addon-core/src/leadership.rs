//! The election of a leader among replicas: one lease that is rewritten, and the next step of a replica about it.
//!
//! A replica leads because of a write of its own that went through, and no longer than the renew deadline after it
//! *sent* that write. Another one takes the lease when it has known the same version of it for as long as the lease is
//! good, counted from when it *received* it, and only over that very version. So no two lead at once as long as no
//! clock runs faster than another by more than the lease is longer than the deadline. If a replica finds, after it has
//! seen that version of the lease, that the holder has ended, it need not wait. If the lease names a version of the
//! program as entitled, only replicas of that version may skip a wait. Must never compare the clocks of two replicas:
//! the times in the lease are for people to read.

mod entitlement;
pub mod lease;
mod standby;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::artifact::reference::ImageDigest;
use crate::time::{Now, Tick};
use entitlement::{Claim, Order};
use lease::{Aim, Holder, Record, Sighting, Timing, Writing, Written, micros, over};

/// Between an attempt that failed and the next one.
const PAUSE: Duration = Duration::from_secs(2);
/// How long one request about the lease may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Read the lease, and pass in the result.
    Look(Limit),
    /// Find out whether its holder has ended, and pass in the result about this version.
    Ask(Sighting, Limit),
    /// Write the lease, and pass in the outcome.
    Write(Writing, Limit),
    /// Nothing until this tick or the next news of the lease.
    Wait(Tick),
    /// Nothing ever again: the lease cannot be kept, and all work that a leader has started must end.
    StepDown,
}

/// How long a request may take.
pub type Limit = Duration;

/// The role of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaRole {
    /// Another replica leads, or none does.
    Standby,
    /// It leads.
    Leads,
    /// It still leads, but must end the work that it has started and release the lease: another version is entitled to
    /// it.
    Yields,
    /// It has led, and must not do so again in this life.
    Deposed,
}

/// The state at the beginning of a time as leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Succession {
    /// No process of an earlier leader runs.
    Clear,
    /// The earlier leader's lease had expired, and its end was not seen.
    Contested,
}

/// A time as leader, while it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reign {
    /// How often the lease had changed its holder by then.
    pub transitions: u32,
    /// How it began.
    pub succession: Succession,
    /// When nothing more may begin.
    pub deadline: Tick,
    /// The time from which another replica may lead.
    pub expiry: Tick,
}

/// One replica's part in the election.
#[derive(Debug, Clone)]
pub struct Election {
    me: String,
    /// Every name of the version that it is, none if that is not known.
    versions: BTreeSet<ImageDigest>,
    timing: Timing,
    role: Role,
    known: Known,
    /// The version that is entitled, as it was found last. It outlives a lease that was deleted.
    entitled: Option<ImageDigest>,
    /// Another version is to be entitled, and that is not written yet.
    order: Option<Order>,
    /// Not before this is anything tried.
    next: Tick,
    /// The holder may have ended, and that was not checked.
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
    claim: Claim,
}

/// The known state of the lease.
#[derive(Debug, Clone)]
enum Known {
    Nothing,
    Absent,
    /// Found so, and not otherwise since that tick.
    There(Sighting, Tick),
}

impl Election {
    /// A replica of this name that knows nothing yet. A lease that is held under its name is its own. The versions are all
    /// the names of its one version: that of an index of images and that of the image in it. Without one it is entitled where
    /// everybody is.
    pub fn new(me: String, versions: BTreeSet<ImageDigest>, timing: Timing) -> Self {
        Self {
            me,
            versions,
            timing,
            role: Role::Standby,
            known: Known::Nothing,
            entitled: None,
            order: None,
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

    /// Its role at this moment. Must be checked before every act as leader.
    pub fn standing(&self, now: Tick) -> ReplicaRole {
        match &self.role {
            Role::Standby => ReplicaRole::Standby,
            Role::Leads(term) if now < self.end_of(term) => match term.claim {
                Claim::Sound | Claim::Despite(_) => ReplicaRole::Leads,
                Claim::Yielded => ReplicaRole::Yields,
            },
            Role::Leads(_) | Role::Deposed => ReplicaRole::Deposed,
        }
    }

    /// The other holder of the lease, as far as is known.
    pub fn leader(&self) -> Option<&str> {
        let Known::There(sighting, _) = &self.known else {
            return None;
        };
        let holder = sighting.record.holder.as_str();
        (!holder.is_empty() && holder != self.me).then_some(holder)
    }

    /// The next step. Asked again after every input.
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
                    Known::Absent => Move::Write(made(record), limit),
                    Known::There(sighting, _) => Move::Write(over(sighting, record, Aim::Hold), limit),
                }
            }
            Role::Standby => self.poll_standby(now),
        }
    }

    /// The lease was read: its contents, nothing if it does not exist.
    pub fn looked(&mut self, now: Tick, found: Option<Sighting>) {
        let Some(found) = found else {
            self.missed(now);
            return;
        };
        match &self.role {
            Role::Leads(term) => {
                let record = &found.record;
                if record.holder == self.me && record.acquired == term.acquired {
                    // A write of ours without an answer, or one that names the entitled version.
                    self.next = now;
                } else {
                    self.role = Role::Deposed;
                }
                self.forget_order_if_done(&found.record);
                self.know(found, now);
            }
            Role::Standby => {
                self.forget_order_if_done(&found.record);
                self.found(now, found);
                self.doubt_if_overdue(now);
                self.go_on_with_order(now);
            }
            Role::Deposed => {}
        }
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
                self.forget_order_if_done(&writing.record);
                match writing.aim {
                    Aim::Hold => self.leads(sent, now, version, writing.record),
                    Aim::Leave => self.left(now, version, writing),
                }
            }
            Written::Conflict if writing.aim == Aim::Leave && matches!(self.role, Role::Standby) => {
                self.look_again_for_order(now);
            }
            Written::Conflict => {
                self.known = Known::Nothing;
                self.next = now;
            }
            // If it was written after all, the next attempt is a conflict.
            Written::Unknown => self.next = now + PAUSE,
        }
    }

    /// The write went through that makes a leader, or keeps one.
    fn leads(&mut self, sent: Tick, now: Tick, version: String, record: Record) {
        let claim = match &self.role {
            Role::Leads(term) => term.claim.clone(),
            Role::Standby | Role::Deposed => self.claim_over(&record),
        };
        self.role = Role::Leads(Term {
            acquired: record.acquired,
            transitions: record.transitions,
            renewed: sent,
            claim,
        });
        let holder = Holder::Unknown;
        let sighting = Sighting {
            version,
            record,
            holder,
        };
        self.know(sighting, now);
        // An order may have come while this was under way.
        self.next = if self.order.is_some() {
            now
        } else {
            sent + self.timing.retry
        };
    }

    /// The write of a leader whose work has ended, so that the next leader need not wait.
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
            entitled: self.entitlement().cloned(),
        };
        (now.tick < self.end_of(term)).then(|| over(sighting, record, Aim::Leave))
    }

    fn end_of(&self, term: &Term) -> Tick {
        term.renewed + self.timing.deadline
    }

    /// This is how the lease stands, and not otherwise since that tick.
    fn know(&mut self, sighting: Sighting, since: Tick) {
        self.entitled.clone_from(&sighting.record.entitled);
        self.known = Known::There(sighting, since);
        self.heed_entitlement();
    }

    fn record(&self, acquired: Timestamp, renewed: Timestamp, transitions: u32) -> Record {
        Record {
            holder: self.me.clone(),
            lasts: self.timing.lease,
            acquired,
            renewed: micros(renewed),
            transitions,
            entitled: self.entitlement().cloned(),
        }
    }
}

/// Only if there is no lease.
fn made(record: Record) -> Writing {
    Writing {
        record,
        over: None,
        aim: Aim::Hold,
    }
}

#[cfg(test)]
mod tests;
