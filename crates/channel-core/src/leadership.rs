//! The election of a leader among replicas by one lease, and the next step of a replica about it.
//!
//! A replica leads because of its own successful write, and no longer than the renew deadline after it *sent* that
//! write. Another replica takes the lease when it has known the same version of the lease for the lease's whole
//! duration. That time counts from when the replica *received* the version, and its write replaces only this version.
//! So two replicas never lead at once, as long as no clock runs faster than another by more than the ratio of lease and
//! deadline. A replica does not have to wait if it has seen a version of the lease and finds later that the holder of
//! the lease has ended. If the lease entitles a version of the program, only replicas of that version may skip a wait.
//! Must never compare the clocks of two replicas: the times in the lease are for people to read.

mod entitlement;
pub mod lease;
mod standby;

use std::collections::BTreeSet;
use std::time::Duration;

use clock::{Now, Tick};
use jiff::Timestamp;

use crate::reference::ImageDigest;
use entitlement::{Claim, Order};
use lease::{Aim, Holder, Record, Sighting, Timing, Writing, Written, micros, over};

/// The pause between a failed attempt and the next one.
const PAUSE: Duration = Duration::from_secs(2);
/// The limit of time for one request about the lease.
const PATIENCE: Duration = Duration::from_secs(5);

/// The next step of a replica in the election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Read the lease, and pass in the result.
    Look(Limit),
    /// Find out whether the holder of this version of the lease has ended, and pass in the result.
    Ask(Sighting, Limit),
    /// Write the lease, and pass in the outcome.
    Write(Writing, Limit),
    /// Wait until this tick or until the lease changes.
    Wait(Tick),
    /// End all work that a leader has started, and do nothing more: the lease cannot be kept.
    StepDown,
}

/// The limit of time for a request.
pub type Limit = Duration;

/// The role of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaRole {
    /// Another replica leads, or none does.
    Standby,
    /// The replica leads.
    Leads,
    /// The replica still leads, but must end the work that it has started and release the lease, because another
    /// version is entitled to the lease.
    Yields,
    /// The replica has led, and must not lead again in this life.
    Deposed,
}

/// Whether an earlier leader's processes may still run when a replica becomes leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Succession {
    /// No process of an earlier leader runs.
    Clear,
    /// The earlier leader's lease had expired, and its end was not observed.
    Contested,
}

/// A period in which a replica leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reign {
    /// How often the lease had changed its holder when this time as leader began.
    pub transitions: u32,
    /// Whether an earlier leader's processes may still run.
    pub succession: Succession,
    /// The time from which on nothing new may begin.
    pub deadline: Tick,
    /// The time from which another replica may lead.
    pub expiry: Tick,
}

/// The state machine of one replica in the election.
#[derive(Debug, Clone)]
pub struct Election {
    me: String,
    /// All digests of the replica's version; empty while they are not known.
    versions: BTreeSet<ImageDigest>,
    timing: Timing,
    role: Role,
    known: Known,
    /// The entitled version, as it was last seen. It is kept even if the lease is deleted.
    entitled: Option<ImageDigest>,
    /// A change of the entitled version that is not written yet.
    order: Option<Order>,
    /// The time before which the replica neither reads nor writes the lease.
    next: Tick,
    /// Whether the holder may have ended, and the replica has still to check that.
    doubt: bool,
    /// The value that the succession would have if this replica became leader now.
    succession: Succession,
}

#[derive(Debug, Clone)]
enum Role {
    Standby,
    Leads(Term),
    Deposed,
}

/// The replica's current time as leader.
#[derive(Debug, Clone)]
struct Term {
    acquired: Timestamp,
    transitions: u32,
    /// The time at which the last successful write was sent.
    renewed: Tick,
    claim: Claim,
}

/// The last known state of the lease.
#[derive(Debug, Clone)]
enum Known {
    Nothing,
    Absent,
    /// The lease exists. It has been unchanged since this tick.
    There(Sighting, Tick),
}

impl Election {
    /// A replica of this name that knows nothing yet. A lease whose holder has this name counts as its own. `versions`
    /// are all digests of the replica's version: the digest of the index, and that of the image in the index. If
    /// `versions` is empty, the replica is entitled only while every version is.
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

    /// The current time as leader, or one that has expired and was not ended yet.
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

    /// The role at this moment. Must be checked before every act as leader.
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

    /// The other replica that holds the lease, if one is known.
    pub fn leader(&self) -> Option<&str> {
        let Known::There(sighting, _) = &self.known else {
            return None;
        };
        let holder = sighting.record.holder.as_str();
        (!holder.is_empty() && holder != self.me).then_some(holder)
    }

    /// The next action of the replica in the election. To be asked again after every input.
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

    /// Takes the result of a read: the lease, or `None` if it does not exist.
    pub fn looked(&mut self, now: Tick, found: Option<Sighting>) {
        let Some(found) = found else {
            self.missed(now);
            return;
        };
        match &self.role {
            Role::Leads(term) => {
                let record = &found.record;
                if record.holder == self.me && record.acquired == term.acquired {
                    // A write of ours had no answer, or another replica wrote the entitled version into our lease.
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

    /// Notes that the lease could not be read.
    pub fn look_failed(&mut self, now: Tick) {
        self.next = now + PAUSE;
    }

    /// Takes the result of a write of the lease that was sent at `sent`.
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
            // If the lease was written after all, the next attempt will be a conflict.
            Written::Unknown => self.next = now + PAUSE,
        }
    }

    /// Notes a successful write that makes this replica the leader or keeps it the leader.
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
        // An order may have come while the write was under way.
        self.next = if self.order.is_some() {
            now
        } else {
            sent + self.timing.retry
        };
    }

    /// The write that releases the lease after the leader's work has ended, so that the next leader does not have to wait.
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

    /// Notes the state of the lease, which has been unchanged since that tick.
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

/// A write that succeeds only if there is no lease.
fn made(record: Record) -> Writing {
    Writing {
        record,
        over: None,
        aim: Aim::Hold,
    }
}

#[cfg(test)]
mod tests;
