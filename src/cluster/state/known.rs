//! The Secrets of our own state as this process has read or written them last, so that the next write need not read first.
//!
//! A write always names the version that it replaces: an outdated version costs a refusal and another read. Must never
//! be taken for the Secret itself: only a read can tell that nothing needs to be written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;

/// Longer ones are read again: their writes are rare, and memory is not for that.
const LONGEST: usize = 64 << 10;

/// By name.
#[derive(Debug, Clone, Default)]
pub struct Known(Arc<Mutex<BTreeMap<String, Last>>>);

/// A Secret as it was last.
#[derive(Debug, Clone)]
pub(super) enum Last {
    /// It did not exist.
    Absent,
    /// It was like this.
    Is(Box<Secret>),
}

impl Known {
    /// Hands it out once: others that write at the same time read first.
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
