//! Entitlement: which version may take the lease as soon as it is free, who decides that, and how a leader of another
//! version yields.
//!
//! Only waits depend on it: an entitled replica takes a released lease at once, and never one that another replica
//! holds. Must never keep the lease from all replicas: when it has expired, any replica may take it, and keeps it until
//! another version is named.

use std::collections::BTreeSet;

use super::lease::{Holder, Record, Sighting, Writing};
use super::{Election, Known, Role};
use crate::artifact::reference::ImageDigest;
use crate::time::Tick;

/// How a leader stands to the version that is entitled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is of that version, or none is named.
    Sound,
    /// It came to lead because this version did not: the lease had run out.
    Despite(ImageDigest),
    /// Another version is to lead. That stays so for the rest of this time as leader, which is being ended.
    Yielded,
}

/// A change of the version that is entitled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    whom: Option<ImageDigest>,
    /// The lease was read for it: the write replaces a state that its holder knows, too.
    has_looked: bool,
}

impl Order {
    pub(super) fn may_be_written(&self) -> bool {
        self.has_looked
    }
}

impl Election {
    /// All the names of our version became known, or have become more. A leader that came to lead in spite of its own version is
    /// entitled from then on.
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

    /// From the next write on, the lease names this version as entitled to it, or no version. A leader of another
    /// version yields when that is written; a standby writes it and leaves the lease to its holder. Tried again until
    /// the lease names it, or until a leader must yield to another version.
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

    /// The version that is entitled, as far as is known.
    pub fn entitled(&self) -> Option<&ImageDigest> {
        self.entitled.as_ref()
    }

    /// The version that the next write names.
    pub(super) fn entitlement(&self) -> Option<&ImageDigest> {
        match &self.order {
            Some(order) => order.whom.as_ref(),
            None => self.entitled.as_ref(),
        }
    }

    /// Another version is entitled.
    pub(super) fn is_barred(&self, entitled: Option<&ImageDigest>) -> bool {
        entitled.is_some_and(|version| !self.versions.contains(version))
    }

    /// Our state after taking the lease by this write.
    pub(super) fn claim_over(&self, record: &Record) -> Claim {
        match &record.entitled {
            // It was not named by us, so its lease had run out.
            Some(version) if self.entitled.as_ref() == Some(version) && self.is_barred(Some(version)) => {
                Claim::Despite(version.clone())
            }
            Some(_) | None => Claim::Sound,
        }
    }

    /// A leader, too, heeds the version that the lease names, unless it came to lead in spite of that.
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
                // The entry in the lease is newer than one that is not written yet.
                self.order = None;
            }
            Claim::Sound | Claim::Despite(_) => term.claim = Claim::Sound,
        }
    }

    /// The write went through that leaves the lease as it was, or to nobody. If it was over what is known, the holder has not
    /// renewed it since that was known; only who bars itself by it begins its wait anew.
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

    /// The lease names that version, by any writer. The order to write it is done.
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

    /// The lease was read: an order may replace the state that was found.
    pub(super) fn go_on_with_order(&mut self, now: Tick) {
        if let Some(order) = &mut self.order {
            order.has_looked = true;
            self.next = now;
        }
    }

    /// Another version of the lease was seen.
    pub(super) fn look_before_order(&mut self) {
        if let Some(order) = &mut self.order {
            order.has_looked = false;
        }
    }

    /// An order was overtaken. The known state of the holder stays: it keeps us away even if the lease was deleted.
    pub(super) fn look_again_for_order(&mut self, now: Tick) {
        self.look_before_order();
        self.next = now;
    }
}
