//! The removal of a release.

use std::collections::BTreeSet;

use addon_core::failure::{Class, Failure};
use addon_core::release;

use crate::world::World;

impl World {
    pub(in crate::world) fn delete(&mut self, release: &str) -> Result<(), Failure> {
        self.fault(&format!("delete/{release}"), Class::Unavailable)?;
        if let Some(failure) = release::delay_of_removal(&self.facts(release)) {
            return Err(failure);
        }
        self.remove_release(release);
        Ok(())
    }

    pub(super) fn remove_release(&mut self, release: &str) {
        self.releases.remove(release);
        self.ledger.intents.remove(release);
        self.ledger.taken.remove(release);
        self.ledger.spoilt.remove(release);
        self.consists_of(release, &BTreeSet::new());
    }
}
