//! Files for child processes: values, contexts, and output. Other users cannot read them. The next start deletes files
//! of killed runs. Only files of hooks without modules stay after a kill: the contract defines their directory, so no
//! name shows which process made them.

pub mod left;

use std::fs::Permissions;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use tempfile::TempPath;

use left::LeftError;
use settings::TmpFiles;

const RUN: &str = "run-";

/// The directory for files of one life of the process. The life before may still be ending.
#[derive(Debug)]
pub struct TmpDir {
    /// The directory of this run, which other users cannot enter.
    run: PathBuf,
    /// The directory for files of hooks: inside of `run`, or the one that the contract defines.
    dir: PathBuf,
    files: TmpFiles,
}

/// A temporary file. Dropping it deletes the file, unless a setting keeps files.
#[derive(Debug)]
pub struct TmpFile(Option<TempPath>, PathBuf);

impl TmpFile {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.1
    }

    /// The content of the file after the run.
    pub fn read(&self) -> Result<String, LeftError> {
        left::read(&self.1)
    }
}

impl Drop for TmpFile {
    fn drop(&mut self) {
        if let Some(path) = self.0.take()
            && let Err(error) = path.close()
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "cannot remove a temporary file");
        }
    }
}

impl TmpDir {
    /// Creates a directory for this run below the given one, and deletes the directories of runs that have ended.
    pub fn prepare(parent: &Path, files: TmpFiles) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        if files == TmpFiles::Removed {
            sweep(parent);
        }
        let run = parent.join(name_of_run());
        let dir = run.clone();
        let this = Self { run, dir, files };
        this.private()?;
        Ok(this)
    }

    /// Creates a directory for hooks without modules. Their files are in the given directory itself.
    pub fn prepare_flat(parent: &Path, files: TmpFiles) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        if files == TmpFiles::Removed {
            sweep(parent);
        }
        let run = parent.join(name_of_run());
        let dir = parent.to_owned();
        Ok(Self { run, dir, files })
    }

    /// The directory that other users cannot enter.
    pub fn private(&self) -> io::Result<&Path> {
        fs::create_dir_all(&self.run)?;
        fs::set_permissions(&self.run, Permissions::from_mode(0o700))?;
        Ok(&self.run)
    }

    /// The directory for files of hooks.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory of this name below the directory of this run, which other users cannot enter.
    pub fn sub_dir(&self, name: &str) -> io::Result<PathBuf> {
        let dir = self.private()?.join(name);
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Creates a file with this content. The name shows its purpose.
    pub fn file(&self, prefix: &str, suffix: &str, content: &[u8]) -> io::Result<TmpFile> {
        let place = self.dir.join(format!("{prefix}{}{suffix}", unique()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&place)?;
        // From here on the file is deleted if a step fails, such as the write to a full disk.
        let path = TempPath::try_from_path(&place)?;
        file.write_all(content)?;
        Ok(match self.files {
            TmpFiles::Removed => TmpFile(Some(path), place),
            TmpFiles::Kept => {
                path.keep().map_err(|error| error.error)?;
                TmpFile(None, place)
            }
        })
    }
}

impl Drop for TmpDir {
    fn drop(&mut self) {
        if self.files == TmpFiles::Removed
            && self.run.exists()
            && let Err(error) = fs::remove_dir_all(&self.run)
        {
            tracing::warn!(%error, "cannot remove the directory of temporary files");
        }
    }
}

/// 32 digits that no other file name has: scripts of users identify files by them.
fn unique() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

/// The name of a run's directory. The process id shows whether the process still runs, and the rest distinguishes the
/// lives of one process.
fn name_of_run() -> String {
    format!("{RUN}{}-{}", std::process::id(), unique())
}

/// The process id in the name of a run's directory.
fn process_of_run(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(RUN)?;
    rest.split_once('-').map_or(rest, |(number, _)| number).parse().ok()
}

/// Deletes the directories of runs whose process has ended. A directory with this process's id belongs to an earlier
/// life, or to a process before a restart. A directory that cannot be deleted does not prevent the start: a dying child
/// may still write into it, and the next start tries again.
fn sweep(parent: &Path) {
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) => return tracing::warn!(%error, "cannot look for the temporary files of dead runs"),
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(process_of_run) else {
            continue;
        };
        if (pid == std::process::id() || !Path::new("/proc").join(pid.to_string()).exists())
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::warn!(%error, "cannot remove the temporary files of a dead run");
        }
    }
}

/// A text with only characters that are safe in a file name.
pub fn safe(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_swept_does_not_keep_us_from_starting() {
        let parent = tempfile::tempdir().unwrap();
        // No process has this id, and the file is no directory, so it cannot be deleted.
        let stubborn = parent.path().join(format!("{RUN}{}", u32::MAX));
        fs::write(&stubborn, b"").unwrap();
        let tmp = TmpDir::prepare(parent.path(), TmpFiles::Removed).unwrap();
        assert!(tmp.dir().is_dir() && stubborn.exists());
    }

    #[test]
    fn a_file_is_private_and_gone_after_use() {
        let parent = tempfile::tempdir().unwrap();
        let tmp = TmpDir::prepare(parent.path(), TmpFiles::Removed).unwrap();
        let file = tmp.file("one.module-values-", ".json", b"{}").unwrap();
        let path = file.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(file.read().unwrap(), "{}");
        drop(file);
        assert!(!path.exists());
        drop(tmp);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_of_hooks_that_stand_alone_lie_in_the_directory_itself() {
        let parent = tempfile::tempdir().unwrap();
        let tmp = TmpDir::prepare_flat(parent.path(), TmpFiles::Removed).unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        let file = tmp.file("hook-a-", ".json", b"").unwrap();
        assert_eq!(file.path().parent(), Some(parent.path()));
        let name = file.path().file_stem().unwrap().to_str().unwrap();
        assert!(name.len() == "hook-a-".len() + 32 && name != "hook-a-", "{name}");
        drop(file);
        tmp.sub_dir("own").unwrap();
        drop(tmp);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_are_kept_when_asked() {
        let parent = tempfile::tempdir().unwrap();
        let tmp = TmpDir::prepare(parent.path(), TmpFiles::Kept).unwrap();
        let path = tmp.file("a-", ".json", b"1").unwrap().path().to_owned();
        drop(tmp);
        assert_eq!(fs::read_to_string(path).unwrap(), "1");
    }

    #[test]
    fn only_directories_of_ended_runs_are_swept_away() {
        let parent = tempfile::tempdir().unwrap();
        // The kernel gives no process an id above 4194304.
        let gone = ["run-4999999".to_owned(), "run-4999999-a-1".to_owned(), name_of_run()];
        for name in gone
            .iter()
            .map(String::as_str)
            .chain(["run-1", "run-1-a", "run-x", "other"])
        {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        let _tmp = TmpDir::prepare(parent.path(), TmpFiles::Removed).unwrap();
        for name in gone {
            assert!(!parent.path().join(&name).exists(), "{name}");
        }
        for name in ["run-1", "run-1-a", "run-x", "other"] {
            assert!(parent.path().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn a_life_that_is_buried_late_takes_nothing_from_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let before = TmpDir::prepare(parent.path(), TmpFiles::Removed).unwrap();
        let next = TmpDir::prepare(parent.path(), TmpFiles::Removed).unwrap();
        let file = next.file("a-", ".json", b"1").unwrap();
        drop(before);
        assert_eq!(file.read().unwrap(), "1");
    }

    #[test]
    fn names_become_file_names() {
        assert_eq!(safe("hooks/sub dir/010-x.sh"), "hooks-sub-dir-010-x.sh");
    }
}
