//! Claims: the release that each object belongs to.
//!
//! Two modules that render the same object would take it from each other for ever, so the second is refused before helm
//! applies anything. The rendered objects are known only inside of a helm call, and two calls may run at once. So the
//! post-renderer claims them, in a file that the operator and all post-renderers share under a lock. The file must
//! never outlive the process that created it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::TryLockError;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use addon_core::failure::{Class, Failure};
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use fs_err::{File, OpenOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The timeout for the lock. A change takes milliseconds; a process that holds the lock longer is stopped, or waits for
/// a disk.
const LOCK_WITHIN: Duration = Duration::from_secs(30);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The identity of an object in the cluster, independent of the API version that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(String);

impl Object {
    /// The object with these names. `namespace` is that of the releases if the manifest names none.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self::of_group(group, kind, namespace, name)
    }

    /// The object by its group, without a version.
    pub fn of_group(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self(format!("{kind}.{group}/{namespace}/{name}"))
    }

    /// The text form of the identity.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The identity of an object in a manifest; none for an invalid one, which helm reports.
    pub fn of(manifest: &Value, namespace: &str) -> Option<Self> {
        let metadata = manifest.get("metadata")?;
        let own = metadata.get("namespace").and_then(Value::as_str);
        Some(Self::new(
            manifest.get("apiVersion")?.as_str()?,
            manifest.get("kind")?.as_str()?,
            own.filter(|own| !own.is_empty()).unwrap_or(namespace),
            metadata.get("name")?.as_str()?,
        ))
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.0.splitn(3, '/');
        let kind = parts.next().unwrap_or_default().trim_end_matches('.');
        let (namespace, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        write!(f, "{kind} '{name}' of namespace '{namespace}'")
    }
}

/// Why a claim was refused: another release has the object, or this release renders it twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub object: Object,
    /// The release that the object belongs to.
    pub owner: String,
}

impl Refusal {
    /// The error for the module that rendered the object second.
    pub fn failure(&self, release: &str) -> Failure {
        let Self { object, owner } = self;
        if owner == release {
            let report = format!("module '{release}' renders {object} twice");
            return Failure::new(Class::Invalid, report).hint("let only one of its templates render it");
        }
        let report = format!("module '{release}' renders {object}, which belongs to module '{owner}'");
        Failure::new(Class::Invalid, report).hint("let only one of the two modules render it, or disable one of them")
    }

    /// The same error if the module of the first release is gone: that release will be removed, and then the object is
    /// free.
    pub fn until_removed(&self, release: &str) -> Failure {
        let Self { object, owner } = self;
        let report = format!(
            "module '{release}' renders {object}, which belongs to the release '{owner}' until that is removed: its module is gone"
        );
        Failure::new(Class::Invalid, report).hint(format!(
            "nothing has to be done unless that removal is held; then uninstall '{owner}' with helm, or put its module back"
        ))
    }
}

/// The contents of the file with the claims.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ledger {
    /// The release of each object.
    owners: BTreeMap<Object, String>,
    /// The last refused claim of each release, until the refusal is read.
    refusals: BTreeMap<String, Refusal>,
}

/// The file with all claims. Clones and post-renderers share it.
#[derive(Debug, Clone)]
pub struct Claims {
    path: PathBuf,
    /// The timeout for the lock.
    patience: Duration,
}

impl Claims {
    /// The claims in this file, which need not exist.
    pub fn at(path: PathBuf) -> Self {
        let patience = LOCK_WITHIN;
        Self { path, patience }
    }

    /// The path of the file with the claims.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces all claims by the objects of the cluster's releases.
    pub fn begin(&self, releases: &BTreeMap<String, BTreeSet<Object>>) -> io::Result<()> {
        self.change(|ledger| {
            *ledger = Ledger::default();
            for (release, objects) in releases {
                for object in objects {
                    ledger.owners.entry(object.clone()).or_insert_with(|| release.clone());
                }
            }
        })
    }

    /// Claims all objects for a release. If one is refused, none is claimed and the refusal is noted.
    pub fn claim(&self, release: &str, objects: &BTreeSet<Object>) -> io::Result<Result<(), Refusal>> {
        self.change(|ledger| {
            let taken = objects.iter().find_map(|object| {
                let owner = ledger.owners.get(object).filter(|owner| *owner != release)?;
                Some(Refusal {
                    object: object.clone(),
                    owner: owner.clone(),
                })
            });
            if let Some(refusal) = taken {
                ledger.refusals.insert(release.to_owned(), refusal.clone());
                return Err(refusal);
            }
            let claimed = objects.iter().map(|object| (object.clone(), release.to_owned()));
            ledger.owners.extend(claimed);
            Ok(())
        })
    }

    /// Notes that a release renders an object twice.
    pub fn refuse_twice(&self, release: &str, object: Object) -> io::Result<Refusal> {
        let refusal = Refusal {
            object,
            owner: release.to_owned(),
        };
        self.change(|ledger| ledger.refusals.insert(release.to_owned(), refusal.clone()))?;
        Ok(refusal)
    }

    /// Sets the objects of a release; none if it is gone.
    pub fn settle(&self, release: &str, objects: &BTreeSet<Object>) -> io::Result<()> {
        self.change(|ledger| {
            ledger
                .owners
                .retain(|object, owner| owner != release || objects.contains(object));
            for object in objects {
                let owner = ledger.owners.entry(object.clone());
                owner.or_insert_with(|| release.to_owned());
            }
        })
    }

    /// Takes the noted refusal of a release, to explain the failure of its helm call.
    pub fn take_refusal(&self, release: &str) -> io::Result<Option<Refusal>> {
        self.change(|ledger| ledger.refusals.remove(release))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> io::Result<T> {
        // Closing the file releases the lock.
        let _turn = self.turn()?;
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        // An unreadable file was not written by the operator. The lost claims are restored at the next upgrade of each
        // release, or at the next start.
        let mut ledger: Ledger = serde_json::from_str(&text).unwrap_or_default();
        let outcome = change(&mut ledger);
        let changed = serde_json::to_string(&ledger)?;
        if changed != text {
            self.replace(&changed)?;
        }
        Ok(outcome)
    }

    /// Waits for the lock. A killed helm takes its post-renderer along; a stopped one keeps the lock.
    fn turn(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.beside("lock"))?;
        let until = Instant::now() + self.patience;
        loop {
            match file.file().try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let text = format!("{} is held by another for {:?}", self.path.display(), self.patience);
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Replaces the file atomically, even if this process is killed or the disk is full.
    fn replace(&self, text: &str) -> io::Result<()> {
        let aside = self.beside("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = options
            .open(&aside)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        let replaced = written.and_then(|()| fs::rename(&aside, &self.path));
        if replaced.is_err() {
            // The partial file only uses disk space; the next call overwrites it.
            drop(fs::remove_file(&aside));
        }
        replaced
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".");
        name.push(suffix);
        name.into()
    }
}

#[cfg(test)]
mod tests;
