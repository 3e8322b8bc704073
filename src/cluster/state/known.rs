//! The state Secrets as this process last read or wrote them, so that a write needs no read before.
//!
//! A write always names the version that it replaces, so an outdated copy only costs a refusal and a read. A copy must
//! never replace a read: only a read shows that nothing has to be written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;

/// The size in bytes up to which a Secret is kept in memory. Larger Secrets are seldom written.
const LONGEST: usize = 64 << 10;

/// The last known states of Secrets, by name.
#[derive(Debug, Clone, Default)]
pub struct Known(Arc<Mutex<BTreeMap<String, Last>>>);

/// The last known state of a Secret.
#[derive(Debug, Clone)]
pub(super) enum Last {
    /// The Secret does not exist.
    Absent,
    /// The Secret exists with the given content.
    Is(Box<Secret>),
}

impl Known {
    /// Takes the copy of a Secret out of the memory. A concurrent writer then has to read the Secret first.
    pub(super) fn take(&self, name: &str) -> Option<Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    pub(super) fn note(&self, name: &str, secret: Option<&Secret>) {
        let is_short = secret.is_none_or(|secret| length(secret) <= LONGEST);
        let last = secret.map_or(Last::Absent, |secret| Last::Is(Box::new(secret.clone())));
        if is_short {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(name.to_owned(), last);
        }
    }
}

fn length(secret: &Secret) -> usize {
    let data = secret.data.iter().flatten();
    data.map(|(key, value)| key.len() + value.0.len()).sum()
}
