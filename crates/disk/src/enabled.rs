//! The enabled script of a module, which decides whether the module runs.
//!
//! Must never take a script that cannot be read for an absent one.

use std::io;
use std::path::{Path, PathBuf};

use super::hooks;
use super::{Fault, Problem, Severity};

/// The script's path; `None` if the module has no script, or one that is not executable, which is a warning.
pub(super) fn read_script(module: &Path, warnings: &mut Vec<Problem>) -> Result<Option<PathBuf>, Problem> {
    let path = module.join("enabled");
    match fs_err::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(None),
        Ok(found) if hooks::is_executable(&found) => Ok(Some(path)),
        Ok(_) => {
            warnings.push(Problem::warning(path, Fault::EnabledNotExecutable));
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(error) => Err(Problem::new(Severity::Fatal, path, Fault::Unreadable(error))),
    }
}
