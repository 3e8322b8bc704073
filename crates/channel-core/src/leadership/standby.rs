//! A replica that does not lead: when it reads the lease, asks about its holder and waits, and when it takes the lease.
//! Must never take a lease that another replica may still hold, or that another version is entitled to.

use clock::{Now, Tick};

use super::lease::{Aim, Holder, Record, Sighting, micros, over};
use super::{Election, Known, Move, PATIENCE, Role, Succession, made};

impl Election {
    pub(super) fn poll_standby(&mut self, now: Now) -> Move {
        let wall = micros(now.wall);
        let succession = match &self.known {
            // The outcome of our own last write may be unknown.
            Known::There(sighting, _) if sighting.record.holder == self.me => self.succession,
            Known::There(sighting, _) if self.is_vacant(sighting) => Succession::Clear,
            Known::There(..) | Known::Absent | Known::Nothing => Succession::Contested,
        };
        match &self.known {
            _ if now.tick < self.next => Move::Wait(self.next),
            Known::Nothing => Move::Look(PATIENCE),
            Known::There(sighting, since) if !self.is_free(sighting) && now.tick < self.expiry(sighting, *since) => {
                self.pass_the_time(sighting)
            }
            Known::Absent => {
                self.succession = succession;
                Move::Write(made(self.record(wall, wall, 0)), PATIENCE)
            }
            Known::There(sighting, _) => {
                self.succession = succession;
                let is_new = sighting.record.holder != self.me;
                let transitions = sighting.record.transitions.saturating_add(u32::from(is_new));
                let record = self.record(wall, wall, transitions);
                Move::Write(over(sighting, record, Aim::Hold), PATIENCE)
            }
        }
    }

    /// The step while the lease cannot be taken yet.
    fn pass_the_time(&self, sighting: &Sighting) -> Move {
        match &self.order {
            Some(order) if order.may_be_written() => {
                let record = Record {
                    entitled: self.entitlement().cloned(),
                    ..sighting.record.clone()
                };
                Move::Write(over(sighting, record, Aim::Leave), PATIENCE)
            }
            None if self.doubt && !self.is_vacant(sighting) => Move::Ask(sighting.clone(), PATIENCE),
            Some(_) | None => Move::Look(PATIENCE),
        }
    }

    /// Notes that there is no lease. Even a deleted lease keeps this replica away for the lease's whole duration: the
    /// holder leads until it notices the deletion, and then creates the lease again.
    pub(super) fn missed(&mut self, now: Tick) {
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

    /// Doubts whether the holder is alive if a renewal is overdue.
    pub(super) fn doubt_if_overdue(&mut self, now: Tick) {
        if let Known::There(sighting, since) = &self.known
            && !self.is_vacant(sighting)
            && now.since(*since) > self.timing.retry * 3 / 2
        {
            self.doubt = true;
            self.next = now;
        }
    }

    /// Doubts whether the holder is alive because of a sign. The sign may be old, so the pod is checked before the sign
    /// counts.
    pub fn suspect(&mut self, now: Tick) {
        if matches!(self.role, Role::Standby) {
            self.doubt = true;
            self.next = self.next.min(now);
        }
    }

    /// Takes the answer to whether the holder of that version of the lease has ended. The question was asked after the
    /// version was seen.
    pub fn asked(&mut self, now: Tick, about: &Sighting, holder: Holder) {
        self.doubt = false;
        if let (Role::Standby, Known::There(known, since)) = (&self.role, &mut self.known)
            && known.version == about.version
        {
            known.holder = holder;
            let (known, since) = (known.clone(), *since);
            self.next = self.next_look(now, &known, since);
        }
    }

    /// Takes a reported state of the lease, which may be late. A leader ignores it.
    pub fn heard(&mut self, now: Tick, found: Sighting) {
        if matches!(self.role, Role::Standby) {
            self.found(now, found);
            if self.order.is_some() {
                self.next = now;
            }
        }
    }

    pub(super) fn found(&mut self, now: Tick, mut found: Sighting) {
        let since = match &self.known {
            Known::There(known, since) if known.version == found.version => {
                if known.holder == Holder::Gone {
                    found.holder = Holder::Gone;
                }
                *since
            }
            Known::There(..) | Known::Nothing | Known::Absent => {
                self.look_before_order();
                now
            }
        };
        self.know(found.clone(), since);
        self.next = self.next_look(now, &found, since);
    }

    fn next_look(&self, now: Tick, sighting: &Sighting, since: Tick) -> Tick {
        if self.is_free(sighting) {
            now
        } else {
            self.expiry(sighting, since).min(now + self.timing.retry)
        }
    }

    /// Whether the lease has no holder that may be alive.
    fn is_vacant(&self, sighting: &Sighting) -> bool {
        let holder = &sighting.record.holder;
        holder.is_empty() || *holder == self.me || sighting.holder == Holder::Gone
    }

    /// Whether this replica may take the lease without a wait.
    fn is_free(&self, sighting: &Sighting) -> bool {
        self.is_vacant(sighting) && !self.is_barred(sighting.record.entitled.as_ref())
    }

    /// The end of the wait for this lease. A released lease has a short duration, which does not count for a replica
    /// that the lease bars.
    fn expiry(&self, sighting: &Sighting, since: Tick) -> Tick {
        let Record { holder, lasts, .. } = &sighting.record;
        let is_said = !lasts.is_zero() && !holder.is_empty();
        since + if is_said { *lasts } else { self.timing.lease }
    }
}
