//! The hooks on disk: executable files at any depth of a hooks directory, and the rules by which other files are left
//! out. Never runs one: whether an executable is a hook shows in its own output.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use names::HookName;
use walkdir::{DirEntry, WalkDir};

use super::{Fault, Problem, Severity, look};

const DIR: &str = "hooks";
const LIB: &str = "lib";
/// The directory of a module's Python packages.
const VENV: &str = "venv";
/// The extensions of documents beside hooks, which are often executable by mistake.
const NO_HOOK_EXTENSIONS: [&str; 4] = ["yaml", "json", "md", "txt"];

/// An executable that may be a hook; its output for `--config` decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFile {
    pub name: HookName,
    pub path: PathBuf,
}

/// A directory to search, and the prefix of its hooks' names.
pub(super) struct Root {
    dir: PathBuf,
    /// The prefix for the path inside of the directory.
    prefix: &'static str,
    skipped: &'static [&'static str],
    if_missing: Missing,
}

#[derive(PartialEq, Eq)]
enum Missing {
    NoHooks,
    Refused,
}

impl Root {
    /// Global hooks: in the directory itself, or in a `hooks` directory in it.
    pub(super) fn global(dir: &Path) -> Result<Self, Problem> {
        let inner = dir.join(DIR);
        let dir = match look::at(&inner) {
            Ok(Some(found)) if found.is_dir() => inner,
            Ok(_) => dir.to_owned(),
            // If the directory is missing or a file, the fault is reported for the directory itself.
            Err(_) if !fs_err::metadata(dir).is_ok_and(|found| found.is_dir()) => dir.to_owned(),
            Err(fault) => return Err(Problem::new(Severity::Fatal, inner, fault)),
        };
        let prefix = if dir.file_name() == Some(OsStr::new(DIR)) {
            "hooks/"
        } else {
            ""
        };
        Ok(Self {
            dir,
            prefix,
            skipped: &[LIB],
            if_missing: Missing::Refused,
        })
    }

    /// Hooks without modules; their names begin in the directory itself.
    pub(super) fn alone(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            prefix: "",
            skipped: &[LIB],
            if_missing: Missing::Refused,
        }
    }

    pub(super) fn module(module: &Path) -> Self {
        Self {
            dir: module.join(DIR),
            prefix: "hooks/",
            skipped: &[LIB, VENV],
            if_missing: Missing::NoHooks,
        }
    }

    fn skips(&self, name: &OsStr) -> bool {
        is_hidden(name) || self.skipped.iter().any(|skipped| name == *skipped)
    }
}

/// The hooks of a directory, sorted by path. A problem with a single file may be an error, because a module without one
/// of its hooks may do harm.
pub(super) fn find(root: &Root, warnings: &mut Vec<Problem>) -> Result<Vec<HookFile>, Problem> {
    let fatal = |path: &Path, fault| Problem::new(Severity::Fatal, path, fault);
    // The walk does not follow links, but the directory itself may be a link.
    let dir = match fs_err::canonicalize(&root.dir) {
        Ok(dir) => match look::is_dir(&dir) {
            Ok(true) => dir,
            Ok(false) => return Err(fatal(&root.dir, Fault::Missing)),
            Err(fault) => return Err(fatal(&root.dir, fault)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound && !root.dir.is_symlink() => {
            return match root.if_missing {
                Missing::NoHooks => Ok(Vec::new()),
                Missing::Refused => Err(fatal(&root.dir, Fault::Missing)),
            };
        }
        Err(error) => return Err(fatal(&root.dir, Fault::Unreadable(error))),
    };
    let mut hooks = Vec::new();
    let mut walk = WalkDir::new(&dir).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(&dir).to_owned();
            fatal(&path, Fault::Unreadable(error.into()))
        })?;
        if entry.depth() > 0 && entry.file_type().is_dir() && root.skips(entry.file_name()) {
            walk.skip_current_dir();
            if entry.file_name() == LIB {
                warn_of_lib(entry.path(), warnings);
            }
        } else if !entry.file_type().is_dir() && is_candidate(&entry) {
            hooks.extend(look_at(root, &dir, entry.path(), warnings)?);
        }
    }
    hooks.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(hooks)
}

/// The hook at a path; none if the file is skipped.
fn look_at(root: &Root, dir: &Path, path: &Path, warnings: &mut Vec<Problem>) -> Result<Option<HookFile>, Problem> {
    let fatal = |fault| Problem::new(Severity::Fatal, path, fault);
    let passed_over = match fs_err::metadata(path) {
        Ok(found) if found.is_dir() => Fault::LinkedDirectory,
        Ok(found) if !is_executable(&found) => Fault::NotExecutable,
        Ok(_) => {
            let relative = path
                .strip_prefix(dir)
                .unwrap_or(path)
                .to_str()
                .ok_or_else(|| fatal(Fault::NameNotUnicode))?;
            let name = HookName::parse(&format!("{}{relative}", root.prefix))
                .map_err(|error| fatal(Fault::HookName(error)))?;
            return Ok(Some(HookFile {
                name,
                path: path.to_owned(),
            }));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(fatal(Fault::DanglingLink)),
        Err(error) => return Err(fatal(Fault::Unreadable(error))),
    };
    warnings.push(Problem::warning(path, passed_over));
    Ok(None)
}

/// Warns of executables in `lib`, which may have been meant as hooks.
fn warn_of_lib(lib: &Path, warnings: &mut Vec<Problem>) {
    let entries = WalkDir::new(lib).sort_by_file_name().into_iter().filter_map(Result::ok);
    let executables = entries.filter(|entry| {
        entry.file_type().is_file() && is_candidate(entry) && entry.metadata().is_ok_and(|found| is_executable(&found))
    });
    warnings.extend(executables.map(|entry| Problem::warning(entry.path(), Fault::ExecutableInLib)));
}

fn is_candidate(entry: &DirEntry) -> bool {
    let extension = entry.path().extension();
    let is_document = NO_HOOK_EXTENSIONS
        .iter()
        .any(|known| extension == Some(OsStr::new(known)));
    !is_hidden(entry.file_name()) && !is_document
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

pub(super) fn is_executable(found: &Metadata) -> bool {
    found.is_file() && found.permissions().mode() & 0o111 != 0
}
