//! Writes files of modules and hooks. Must never know their contents.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fs_err as fs;

/// Writes a file and the folders above it. A file that begins with `#!` becomes executable.
pub fn put(folder: &Path, path: impl AsRef<Path>, text: &str) -> io::Result<()> {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    fs::write(&path, text)?;
    if text.starts_with("#!") {
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_becomes_a_program_and_other_texts_do_not() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "hooks/a.sh", "#!/bin/sh\n").unwrap();
        put(folder.path(), "values.yaml", "a: 1\n").unwrap();
        let is_program = |path| {
            let mode = fs::metadata(folder.path().join(path)).unwrap().permissions().mode();
            mode & 0o111 != 0
        };
        assert!(is_program("hooks/a.sh") && !is_program("values.yaml"));
    }
}
