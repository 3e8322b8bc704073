//! Two directories side by side. Must never follow a link.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fs_err as fs;

/// The bit of a file's mode with which its owner may execute it.
const EXECUTABLE: u32 = 0o100;

/// Whether two directories hold the same: names, contents, links, and which files are executable.
pub fn is_equal(one: &Path, other: &Path) -> io::Result<bool> {
    let (of_one, of_other) = (fs::symlink_metadata(one)?, fs::symlink_metadata(other)?);
    if of_one.file_type() != of_other.file_type() {
        return Ok(false);
    }
    if of_one.is_symlink() {
        return Ok(fs::read_link(one)? == fs::read_link(other)?);
    }
    if of_one.is_dir() {
        let names = names(one)?;
        if names != self::names(other)? {
            return Ok(false);
        }
        for name in names {
            if !is_equal(&one.join(&name), &other.join(&name))? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let mode = |of: &std::fs::Metadata| of.permissions().mode() & EXECUTABLE;
    if mode(&of_one) != mode(&of_other) || of_one.len() != of_other.len() {
        return Ok(false);
    }
    Ok(!of_one.is_file() || fs::read(one)? == fs::read(other)?)
}

fn names(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let names: io::Result<Vec<_>> = fs::read_dir(dir)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect();
    let mut names = names?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    fn tree(at: &Path) {
        fs::create_dir_all(at.join("hooks")).unwrap();
        fs::write(at.join("hooks/one.sh"), "one").unwrap();
        std::os::unix::fs::symlink("one.sh", at.join("hooks/link")).unwrap();
    }

    #[test]
    fn contents_names_links_and_the_right_to_execute_are_compared() {
        type Change = fn(&Path);
        let changes: [Change; 5] = [
            |at| fs::write(at.join("hooks/one.sh"), "two").unwrap(),
            |at| fs::write(at.join("hooks/two.sh"), "").unwrap(),
            |at| fs::remove_file(at.join("hooks/one.sh")).unwrap(),
            |at| fs::set_permissions(at.join("hooks/one.sh"), Permissions::from_mode(0o755)).unwrap(),
            |at| {
                fs::remove_file(at.join("hooks/link")).unwrap();
                std::os::unix::fs::symlink("two.sh", at.join("hooks/link")).unwrap();
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let (one, other) = (folder.path().join("one"), folder.path().join("other"));
            tree(&one);
            tree(&other);
            assert!(is_equal(&one, &other).unwrap(), "{number}");
            change(&other);
            assert!(!is_equal(&one, &other).unwrap(), "{number}");
        }
    }
}
