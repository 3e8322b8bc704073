//! The newest resource versions that were observed.
//!
//! They show that the API server's store was restored from a backup. After a restore the store's version begins lower,
//! but may already have passed the last observed one. The version of the `ConfigMap` itself shows the restore even
//! then, because otherwise it never becomes lower. A late answer must never count as a restore, so only lists are
//! compared: they are as new as the store was when they were requested.

use addon_core::operator::event::ConfigRead;

/// The versions as numbers; 0 if unknown.
#[derive(Debug, Default)]
pub(super) struct History {
    store: u64,
    object: u64,
}

impl History {
    /// The newest version of the store.
    pub(super) fn newest(&self) -> u64 {
        self.store
    }

    /// Takes over the versions of a list. Returns whether the store is older than the last observed versions.
    pub(super) fn listed(&mut self, store: u64, read: &ConfigRead) -> bool {
        let object = version(read);
        let went_back = store < self.store || object.is_some_and(|object| object < self.object);
        self.store = store;
        self.object = object.unwrap_or(if went_back { 0 } else { self.object });
        went_back
    }

    /// Takes over the versions of a change. The watch guarantees that each change is newer than the one before.
    pub(super) fn followed(&mut self, store: u64, read: &ConfigRead) {
        self.marked(store);
        self.object = version(read).unwrap_or(self.object);
    }

    /// Notes that nothing has changed up to this version of the store.
    pub(super) fn marked(&mut self, store: u64) {
        self.store = self.store.max(store);
    }
}

fn version(read: &ConfigRead) -> Option<u64> {
    match read {
        ConfigRead::Present { version, .. } if *version > 0 => Some(*version),
        ConfigRead::Present { .. } | ConfigRead::Missing => None,
    }
}

#[cfg(test)]
mod tests {
    use addon_core::operator::provenance::Provenance;

    use super::*;

    fn at(version: u64) -> ConfigRead {
        ConfigRead::Present {
            version,
            data: [].into(),
            provenance: Provenance::default(),
        }
    }

    #[test]
    fn a_store_went_back_if_it_or_the_object_is_older_than_what_was_seen() {
        let seen = || {
            let mut history = History::default();
            assert!(!history.listed(10, &at(5)), "nothing was seen before");
            history.followed(20, &at(20));
            history.marked(25);
            history
        };
        assert!(seen().listed(24, &at(20)), "the store is older");
        assert!(
            seen().listed(40, &at(5)),
            "the store has climbed past what was seen, the object has not"
        );
        assert!(!seen().listed(40, &at(30)), "it was edited");
        assert!(!seen().listed(40, &ConfigRead::Missing), "it was deleted");
        let mut deleted = seen();
        assert!(
            !deleted.listed(40, &ConfigRead::Missing) && deleted.listed(50, &at(5)),
            "it is there as it was"
        );
        let mut restored = seen();
        assert!(
            restored.listed(24, &at(5)) && !restored.listed(26, &at(5)),
            "it went back once"
        );
    }
}
