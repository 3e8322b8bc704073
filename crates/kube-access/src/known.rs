//! The state Secrets as this process last read or wrote them, so that a write needs no read before.
//!
//! A write always names the version that it replaces, so an outdated copy only costs a refusal and a read. A copy must
//! never replace a read: only a read shows that nothing has to be written.
//!
//! The memory also has those intents of this process whose children have ended, and which are still in their Secret.
//! The next write removes these intents, so that a run of helm costs one write for its intent and not two.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

/// The size in bytes up to which a Secret is kept in memory. Larger Secrets are seldom written.
const LONGEST: usize = 64 << 10;

/// The contents of a Secret.
pub type Data = BTreeMap<String, ByteString>;

/// The keys of a Secret, each with its new contents; `None` removes the key.
pub type Changes = BTreeMap<String, Option<Vec<u8>>>;

/// The last known states of Secrets, by name.
#[derive(Debug, Clone, Default)]
pub struct Known(Arc<Memory>);

#[derive(Debug, Default)]
struct Memory {
    last: Mutex<BTreeMap<String, Last>>,
    ended: Mutex<Ended>,
}

/// Intents whose children have ended: the text of each by its key.
#[derive(Debug, Clone, Default)]
pub struct Ended(BTreeMap<String, Vec<u8>>);

impl Ended {
    /// The changes that remove the intents that are still in the Secret. A key with another text is the intent of
    /// another process.
    pub fn still_in(&self, data: &Data) -> Changes {
        let is_there = |(key, text): &(&String, &Vec<u8>)| data.get(*key).is_some_and(|own| own.0 == **text);
        let removed = self.0.iter().filter(is_there);
        removed.map(|(key, _)| (key.clone(), None)).collect()
    }
}

/// The last known state of a Secret.
#[derive(Debug, Clone)]
pub enum Last {
    /// The Secret does not exist.
    Absent,
    /// The Secret exists with the given content.
    Is(Box<Secret>),
}

impl Known {
    /// Takes the copy of a Secret out of the memory. A concurrent writer then has to read the Secret first.
    pub fn take(&self, name: &str) -> Option<Last> {
        self.last().remove(name)
    }

    pub fn note(&self, name: &str, secret: Option<&Secret>) {
        let is_short = secret.is_none_or(|secret| length(secret) <= LONGEST);
        let last = secret.map_or(Last::Absent, |secret| Last::Is(Box::new(secret.clone())));
        if is_short {
            self.last().insert(name.to_owned(), last);
        }
    }

    /// Notes that the child of an intent has ended.
    pub fn end(&self, key: String, text: Vec<u8>) {
        self.ends().0.insert(key, text);
    }

    /// The intents whose children have ended and that may still be stored.
    pub fn ended(&self) -> Ended {
        self.ends().clone()
    }

    /// Whether the child of this intent has ended.
    pub fn has_ended(&self, key: &str, text: &[u8]) -> bool {
        self.ends().0.get(key).is_some_and(|own| own == text)
    }

    /// Forgets intents that are no longer stored.
    pub fn are_removed(&self, removed: &Ended) {
        self.ends().0.retain(|key, text| removed.0.get(key) != Some(text));
    }

    fn last(&self) -> MutexGuard<'_, BTreeMap<String, Last>> {
        self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self) -> MutexGuard<'_, Ended> {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn length(secret: &Secret) -> usize {
    let data = secret.data.iter().flatten();
    data.map(|(key, value)| key.len() + value.0.len()).sum()
}
