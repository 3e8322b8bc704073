//! Records of hook runs: the files that a hook was given and those that it wrote, so that the run can be repeated elsewhere.
//!
//! Runs are recorded only on demand. A recording must never make a run fail or wait, and a record must never hold a
//! known secret.

mod hiding;
mod reading;
pub mod record;
mod ring;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

pub use hiding::{Inputs, Printed, Raw, RawFile};
use names::HookId;
pub use reading::Damage;
use record::Record;
use report::Chain;
use report::secrets::Secrets;
use ring::Ring;
pub use ring::{Entry, Limits};
use thiserror::Error;

/// The directory of the records, below the directory for temporary files.
pub const DIR: &str = "hook-records";

/// Why a run is not recorded.
#[derive(Debug, Error)]
enum NotKept {
    #[error("the record has {bytes} bytes, and all records together may have {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Records runs of hooks on demand. Clones share the demand.
#[derive(Debug, Clone)]
pub struct Recorder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ring: Mutex<Ring>,
    /// The number of further runs to record, by hook.
    wanted: Mutex<BTreeMap<HookId, u32>>,
    secrets: Secrets,
}

impl Recorder {
    /// A recorder that keeps its records in this directory. The first record creates it.
    pub fn new(dir: PathBuf, secrets: Secrets) -> Self {
        Self::limited(dir, secrets, Limits::default())
    }

    fn limited(dir: PathBuf, secrets: Secrets, limits: Limits) -> Self {
        Self(Arc::new(Shared {
            ring: Mutex::new(Ring::new(dir, limits)),
            wanted: Mutex::default(),
            secrets,
        }))
    }

    /// Records the next runs of a hook; 0 ends the recording.
    pub fn want(&self, hook: HookId, runs: u32) {
        let mut wanted = self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if runs == 0 {
            wanted.remove(&hook);
        } else {
            wanted.insert(hook, runs);
        }
    }

    /// The number of further runs to record, by hook.
    pub fn wanted(&self) -> BTreeMap<HookId, u32> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether this run of the hook is recorded. If so, one run less is left to record.
    pub fn begins(&self, hook: &HookId) -> bool {
        let mut wanted = self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        match wanted.get_mut(hook) {
            None => false,
            Some(runs) => {
                *runs -= 1;
                if *runs == 0 {
                    wanted.remove(hook);
                }
                true
            }
        }
    }

    /// Adds the run again to the runs that are left to record, because it did not happen.
    pub fn did_not_begin(&self, hook: &HookId) {
        let mut wanted = self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        *wanted.entry(hook.clone()).or_default() += 1;
    }

    /// Masks and writes the record of a run. If that fails, a warning says so.
    pub fn keep(&self, raw: Raw) {
        let hook = raw.hook.clone();
        if let Err(error) = self.try_keep(raw) {
            let error = Chain(&error).to_string();
            let (name, module) = (hook.name.as_str(), hook.owner.module().map(ToString::to_string));
            tracing::warn!(hook = name, module, error, "Run of a hook is not recorded");
        }
    }

    fn try_keep(&self, raw: Raw) -> Result<(), NotKept> {
        let record = hiding::hidden(raw, &self.0.secrets);
        self.ring().keep(&record.id, record.to_text().as_bytes())
    }

    /// The records, oldest first.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        self.ring().entries()
    }

    /// The text of a record; none if there is no such record any more.
    pub fn text(&self, id: &str) -> io::Result<Option<String>> {
        self.ring().text(id)
    }

    fn ring(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the text of a record.
pub fn read(text: &str) -> Result<Record, Damage> {
    reading::record(text)
}

#[cfg(test)]
mod tests;
