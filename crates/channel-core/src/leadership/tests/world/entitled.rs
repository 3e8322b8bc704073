//! Versions in the world: leaders, standbys and people change the entitled version, and each write of the lease is
//! checked against the orders.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Happening, Life, SECOND, Skew, World};
use crate::leadership::lease::{Record, Timing};
use crate::leadership::{Election, ReplicaRole};
use crate::reference::ImageDigest;

/// The orders to entitle versions, and the first write that broke one.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// The orders, each with the life of the replica that got it.
    given: BTreeSet<(Life, Option<ImageDigest>)>,
    /// The digests among which replicas and people choose at random.
    names: Vec<Option<ImageDigest>>,
    /// The versions of lives whose replica has had another version since.
    pub(super) former: BTreeMap<Life, BTreeSet<ImageDigest>>,
    breach: Option<String>,
}

/// The first or the second digest of a version.
pub(crate) fn digest(version: u8, name: u8) -> ImageDigest {
    ImageDigest::parse(&format!("sha256:{version:032x}{name:032x}")).unwrap()
}

impl World {
    /// A world with replicas of these versions. Each replica knows the two digests of its version.
    pub(crate) fn of_versions(seed: u64, replicas: &[(Skew, u8)]) -> Self {
        let skews: Vec<Skew> = replicas.iter().map(|(skew, _)| *skew).collect();
        let mut world = Self::new(seed, &skews);
        for (replica, (_, version)) in world.replicas.iter_mut().zip(replicas) {
            replica.versions = BTreeSet::from([digest(*version, 1), digest(*version, 2)]);
            let name = replica.election.me.clone();
            replica.election = Election::new(name, replica.versions.clone(), Timing::ORIGINAL);
        }
        world
    }

    /// Gives all lives of a replica the same name.
    pub(crate) fn in_pods(&mut self) {
        self.in_pods = true;
    }

    /// Adds random orders until the faults end: to entitle a version of a replica, another version, or none.
    pub(crate) fn with_orders(&mut self) {
        let known = self
            .replicas
            .iter()
            .flat_map(|replica| replica.versions.iter().cloned());
        let known: BTreeSet<ImageDigest> = known.collect();
        self.orders.names = known.into_iter().map(Some).collect();
        self.orders.names.extend([Some(digest(99, 1)), None]);
    }

    pub(crate) fn without_orders(mut self) -> Self {
        self.orders.names.clear();
        self
    }

    /// The first write that no order explains, or that came too early.
    pub(crate) fn breach(&self) -> Option<&str> {
        self.orders.breach.as_deref()
    }

    pub(crate) fn entitled(&self) -> Option<&ImageDigest> {
        self.lease.as_ref()?.entitled.as_ref()
    }

    pub(crate) fn is_of(&self, number: usize, version: &ImageDigest) -> bool {
        self.replicas[number].versions.contains(version)
    }

    /// Orders a replica to entitle this version.
    pub(crate) fn order(&mut self, number: usize, whom: Option<ImageDigest>) {
        let now = self.clock(number).tick;
        let replica = &mut self.replicas[number];
        self.orders.given.insert(((number, replica.life), whom.clone()));
        replica.election.entitle(now, whom);
    }

    /// Orders a replica to entitle this version, and lets it act at once.
    pub(crate) fn order_now(&mut self, number: usize, whom: Option<ImageDigest>) {
        self.order(number, whom);
        self.enter(self.now, number, Happening::Poll);
    }

    /// Runs until the lease has been released once more.
    pub(crate) fn run_until_released(&mut self) {
        let (end, before) = (self.now + 60 * SECOND, self.releases);
        while self.releases == before {
            assert!(self.now < end, "nobody releases the lease");
            self.run_for(Duration::from_millis(50));
        }
    }

    pub(super) fn order_at_random(&mut self, number: usize) {
        if self.orders.names.is_empty() {
            return;
        }
        if self.misfortune(30) {
            let whom = self.any_name();
            self.order(number, whom);
        }
        if self.misfortune(300)
            && let Some(record) = self.lease.clone()
        {
            // A person or another program writes over any state.
            let entitled = self.any_name();
            let holder = self.holders.get(&self.version).copied();
            self.put(Record { entitled, ..record }, holder);
        }
    }

    fn any_name(&mut self) -> Option<ImageDigest> {
        let place = self.roll(u64::try_from(self.orders.names.len()).unwrap());
        self.orders.names[usize::try_from(place).unwrap()].clone()
    }

    /// Ends the work of a leader that yields as soon as possible.
    pub(super) fn yield_if_told(&mut self, number: usize) {
        let now = self.clock(number).tick;
        let replica = &mut self.replicas[number];
        if replica.election.standing(now) == ReplicaRole::Yields && !replica.is_yielding {
            replica.is_yielding = true;
            let takes = self.roll(10 * SECOND);
            self.enter(self.now + takes, number, Happening::WorkEnded);
        }
    }

    /// Checks a write against the stored lease.
    pub(super) fn judge(&mut self, writer: Life, record: &Record) {
        let Some(there) = &self.lease else { return };
        let replica = &self.replicas[writer.0];
        let was_asked = self.orders.given.contains(&(writer, record.entitled.clone()));
        if record.entitled != there.entitled && !was_asked {
            let text = format!("at {} r{} turns {there:?} into {record:?}", self.now, writer.0);
            self.orders.breach.get_or_insert(text);
        }
        let versions = self.orders.former.get(&writer).unwrap_or(&replica.versions);
        let is_barred = there
            .entitled
            .as_ref()
            .is_some_and(|version| !versions.contains(version));
        let takes = !record.holder.is_empty() && (&record.holder, record.acquired) != (&there.holder, there.acquired);
        // Clocks cut off parts of a microsecond.
        let known_for = replica.skew.scale(self.now - self.written) + 2;
        let lasts = u64::try_from(Timing::ORIGINAL.lease.as_micros()).unwrap();
        if takes && is_barred && known_for < lasts {
            let text = format!(
                "r{} takes {there:?} at {}, and it was written at {}",
                writer.0, self.now, self.written
            );
            self.orders.breach.get_or_insert(text);
        }
    }
}
