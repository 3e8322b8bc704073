//! Entitlement: the version that may take the lease as soon as the lease is free, the choice of that version, and how a
//! leader of another version yields.
//!
//! Entitlement changes only waits: an entitled replica takes a released lease at once, and never a lease that another
//! replica holds. Must never keep the lease from all replicas: when the lease has expired, any replica may take it and
//! keep it until another version is entitled.

use std::collections::BTreeSet;

use clock::Tick;

use super::lease::{Holder, Record, Sighting, Writing};
use super::{Election, Known, Role};
use crate::reference::ImageDigest;

/// The relation of a leader to the entitled version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// The leader is of the entitled version, or no version is entitled.
    Sound,
    /// The leader is of another version. It took the expired lease, because the entitled version had not taken it.
    Despite(ImageDigest),
    /// Another version is to lead. This remains so until the leader has ended.
    Yielded,
}

/// A change of the entitled version that has still to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    whom: Option<ImageDigest>,
    /// Whether the lease was read for this order: the write then replaces a state that the lease's holder knows, too.
    has_looked: bool,
}

impl Order {
    pub(super) fn may_be_written(&self) -> bool {
        self.has_looked
    }
}

impl Election {
    /// Sets the digests of this replica's version. If they include the entitled one, a leader that took the expired
    /// lease counts as entitled from then on.
    pub fn name_versions(&mut self, now: Tick, versions: BTreeSet<ImageDigest>) {
        if self.versions == versions {
            return;
        }
        self.versions = versions;
        let is_barred = self.is_barred(self.entitled.as_ref());
        if let Role::Leads(term) = &mut self.role
            && let Claim::Despite(_) = term.claim
            && !is_barred
        {
            term.claim = Claim::Sound;
        }
        if matches!(self.role, Role::Standby) {
            self.next = self.next.min(now);
        }
    }

    /// Makes this version, or none, entitled with the next write of the lease. A leader of another version yields after
    /// that write. A standby writes the change and leaves the lease to its holder. The write is tried again until the
    /// lease has the change, or until a leader must yield to another version.
    pub fn entitle(&mut self, now: Tick, version: Option<ImageDigest>) {
        if self.order.as_ref().is_some_and(|order| order.whom == version) {
            return;
        }
        self.order = Some(Order {
            whom: version,
            has_looked: false,
        });
        self.next = self.next.min(now);
    }

    /// The entitled version, as far as it is known.
    pub fn entitled(&self) -> Option<&ImageDigest> {
        self.entitled.as_ref()
    }

    /// The entitled version in the next write.
    pub(super) fn entitlement(&self) -> Option<&ImageDigest> {
        match &self.order {
            Some(order) => order.whom.as_ref(),
            None => self.entitled.as_ref(),
        }
    }

    /// Whether another version is entitled.
    pub(super) fn is_barred(&self, entitled: Option<&ImageDigest>) -> bool {
        entitled.is_some_and(|version| !self.versions.contains(version))
    }

    /// The claim after this replica took the lease with this write.
    pub(super) fn claim_over(&self, record: &Record) -> Claim {
        match &record.entitled {
            // The entry was there before the write, so the replica took an expired lease.
            Some(version) if self.entitled.as_ref() == Some(version) && self.is_barred(Some(version)) => {
                Claim::Despite(version.clone())
            }
            Some(_) | None => Claim::Sound,
        }
    }

    /// Makes a leader yield if the lease entitles another version, unless it took the expired lease from that version.
    pub(super) fn heed_entitlement(&mut self) {
        let is_barred = self.is_barred(self.entitled.as_ref());
        let Role::Leads(term) = &mut self.role else {
            return;
        };
        match &term.claim {
            Claim::Yielded => {}
            Claim::Despite(version) if self.entitled.as_ref() == Some(version) => {}
            Claim::Sound | Claim::Despite(_) if is_barred => {
                term.claim = Claim::Yielded;
                // The entry in the lease is newer than the order, which is not written yet.
                self.order = None;
            }
            Claim::Sound | Claim::Despite(_) => term.claim = Claim::Sound,
        }
    }

    /// Notes a successful write that kept the holder or removed it. If the replaced state was the known one, the holder
    /// has not renewed the lease since. The wait then starts again only for a replica that the write bars.
    pub(super) fn left(&mut self, now: Tick, version: String, writing: Writing) {
        if matches!(self.role, Role::Leads(_)) {
            self.role = Role::Deposed;
        }
        let (since, holder) = match &self.known {
            Known::There(known, since) if writing.over.as_ref() == Some(&known.version) => {
                let is_barred = self.is_barred(writing.record.entitled.as_ref());
                (if is_barred { now } else { *since }, known.holder)
            }
            Known::There(..) | Known::Nothing | Known::Absent => (now, Holder::Unknown),
        };
        let sighting = Sighting {
            version,
            record: writing.record,
            holder,
        };
        self.know(sighting, since);
        self.next = now;
    }

    /// Drops the order to entitle a version if the lease already entitles that version. Any replica may have written
    /// this.
    pub(super) fn forget_order_if_done(&mut self, record: &Record) {
        if self.order.as_ref().is_none_or(|order| order.whom != record.entitled) {
            return;
        }
        self.order = None;
        if let Role::Leads(term) = &mut self.role
            && let Claim::Despite(_) = term.claim
        {
            term.claim = Claim::Sound;
        }
    }

    /// Notes a read of the lease: the order may now replace the state that was read.
    pub(super) fn go_on_with_order(&mut self, now: Tick) {
        if let Some(order) = &mut self.order {
            order.has_looked = true;
            self.next = now;
        }
    }

    /// Notes another version of the lease: it has to be read before the order is written.
    pub(super) fn look_before_order(&mut self) {
        if let Some(order) = &mut self.order {
            order.has_looked = false;
        }
    }

    /// Notes a conflict of an order's write. The known state of the holder stays, so that this replica keeps away even if
    /// the lease was deleted.
    pub(super) fn look_again_for_order(&mut self, now: Tick) {
        self.look_before_order();
        self.next = now;
    }
}
