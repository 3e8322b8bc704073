//! The records on disk: a file each, and the oldest are deleted for the newest.
//!
//! Must never hold more than its limits, and never leave half a record under a record's name.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::{Deserialize, Serialize};

use super::NotKept;
use super::record::End;

/// The ending of a record's file.
const ENDING: &str = ".json";

/// The limits of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The number of records.
    pub runs: usize,
    /// The bytes of all records.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            runs: 20,
            bytes: 64 << 20,
        }
    }
}

/// The bytes of each file that a record holds.
pub(super) const LONGEST_FILE: usize = 4 << 20;

/// A record in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub id: String,
    pub bytes: u64,
    /// The contents; none if the file cannot be read.
    #[serde(flatten)]
    pub run: Option<Outline>,
}

/// The parts of a record that a list shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outline {
    pub hook: String,
    pub module: Option<String>,
    pub cause: String,
    pub binding: String,
    pub began: String,
    pub seconds: f64,
    pub end: End,
    pub failure: Option<String>,
}

#[derive(Debug)]
pub(super) struct Ring {
    dir: PathBuf,
    limits: Limits,
}

/// The records to delete, so that one more of this size fits. `kept` is sorted from the oldest to the newest.
fn surplus(kept: &[(String, u64)], more: u64, limits: Limits) -> &[(String, u64)] {
    let mut bytes: u64 = more + kept.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let mut runs = kept.len() + 1;
    let fits = kept.iter().position(|(_, size)| {
        let fits = runs <= limits.runs && bytes <= limits.bytes;
        bytes -= size;
        runs -= 1;
        fits
    });
    &kept[..fits.unwrap_or(kept.len())]
}

/// Whether the text is the identifier of a record, and therefore not a path.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

impl Ring {
    pub(super) fn new(dir: PathBuf, limits: Limits) -> Self {
        Self { dir, limits }
    }

    /// Writes a record. If there is no room, the oldest records are deleted before.
    pub(super) fn keep(&self, id: &str, text: &[u8]) -> Result<(), NotKept> {
        let bytes = text.len() as u64;
        if bytes > self.limits.bytes {
            let limit = self.limits.bytes;
            return Err(NotKept::TooLarge { bytes, limit });
        }
        fs::create_dir_all(&self.dir)?;
        fs::set_permissions(&self.dir, Permissions::from_mode(0o700))?;
        for (old, _) in surplus(&self.sizes()?, bytes, self.limits) {
            match fs::remove_file(self.path(old)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        // A process that dies here leaves this file, and the next record overwrites it.
        let partial = self.dir.join(format!("partial-{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&partial)?;
        let written = file.write_all(text).and_then(|()| fs::rename(&partial, self.path(id)));
        if written.is_err() {
            // The first error is the one to report.
            drop(fs::remove_file(&partial));
        }
        Ok(written?)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}{ENDING}"))
    }

    /// The records and their sizes, oldest first.
    fn sizes(&self) -> io::Result<Vec<(String, u64)>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut sizes = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(ENDING));
            // A file that is gone meanwhile takes no room.
            if let (Some(id), Ok(found)) = (id.filter(|id| is_id(id)), entry.metadata()) {
                sizes.push((id.to_owned(), found.len()));
            }
        }
        sizes.sort();
        Ok(sizes)
    }

    /// The records, oldest first.
    pub(super) fn entries(&self) -> io::Result<Vec<Entry>> {
        let entry = |(id, bytes): (String, u64)| {
            let text = fs::read_to_string(self.path(&id)).unwrap_or_default();
            Entry {
                id,
                bytes,
                run: serde_json::from_str(&text).ok(),
            }
        };
        Ok(self.sizes()?.into_iter().map(entry).collect())
    }

    pub(super) fn text(&self, id: &str) -> io::Result<Option<String>> {
        if !is_id(id) {
            return Ok(None);
        }
        match fs::read_to_string(self.path(id)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { runs: 3, bytes: 100 };

    fn dropped(sizes: &[u64], more: u64) -> usize {
        let kept: Vec<(String, u64)> = sizes
            .iter()
            .enumerate()
            .map(|(at, size)| (at.to_string(), *size))
            .collect();
        surplus(&kept, more, LIMITS).len()
    }

    #[test]
    fn the_oldest_go_until_the_newest_fits() {
        let rows: [(&[u64], u64, usize); 8] = [
            (&[], 100, 0),
            (&[10, 10], 10, 0),
            (&[10, 10, 10], 10, 1),
            (&[10, 10, 10, 10, 10], 10, 3),
            (&[90, 5], 10, 1),
            (&[50, 50], 50, 1),
            (&[50, 50], 51, 2),
            (&[1, 1], 100, 2),
        ];
        for (sizes, more, expected) in rows {
            assert_eq!(dropped(sizes, more), expected, "{sizes:?} {more}");
        }
    }

    #[test]
    fn the_ring_keeps_the_newest_and_nothing_else_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let ring = Ring::new(dir.path().join("ring"), LIMITS);
        assert_eq!(ring.entries().unwrap(), []);
        for number in 1..=5 {
            ring.keep(&format!("2026-{number}"), b"{}").unwrap();
            fs::write(dir.path().join("ring/other.json"), "x").unwrap();
        }
        let ids: Vec<String> = ring.entries().unwrap().into_iter().map(|entry| entry.id).collect();
        assert_eq!(ids, ["2026-3", "2026-4", "2026-5"]);
        assert_eq!(ring.text("2026-4").unwrap().as_deref(), Some("{}"));
        for gone in ["2026-1", "../2026-4", "other", ""] {
            assert_eq!(ring.text(gone).unwrap(), None, "{gone}");
        }
        assert!(dir.path().join("ring/other.json").exists());
        let mode = fs::metadata(dir.path().join("ring/2026-5.json"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_record_above_the_limit_of_all_drops_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let ring = Ring::new(dir.path().to_owned(), LIMITS);
        ring.keep("1", b"{}").unwrap();
        let error = ring.keep("2", &[b' '; 101]).unwrap_err();
        assert!(matches!(error, NotKept::TooLarge { bytes: 101, limit: 100 }), "{error}");
        assert_eq!(ring.entries().unwrap().len(), 1);
    }
}
