//! The files of the repository as git lists them: tracked, or new and not ignored. Build output does not occur.
#![expect(
    clippy::disallowed_methods,
    reason = "git is asked for the files; process.rs belongs to the program"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// One text file.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    /// The path from the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|extension| extension == "rs")
    }

    /// Is the whole file test code: an integration test, or the `tests.rs` beside a module?
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file, in the order of git.
pub(crate) fn text_files() -> Vec<TextFile> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git is installed wherever this repository is cloned");
    assert!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listing = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let paths = listing.split('\0').filter(|path| !path.is_empty());
    // A deleted file is still listed until the deletion is staged. A binary file is skipped.
    let files: Vec<TextFile> = paths
        .filter_map(|path| {
            fs_err::read_to_string(root().join(path))
                .ok()
                .map(|text| TextFile::new(path, &text))
        })
        .collect();
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "git listed no Cargo.toml"
    );
    files
}

pub(crate) fn rust_files() -> Vec<TextFile> {
    text_files().into_iter().filter(TextFile::is_rust).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_are_told_from_code() {
        for path in [
            "tests/house/main.rs",
            "crates/addon-core/src/values/tests.rs",
            "crates/addon-sim/tests/run.rs",
        ] {
            assert!(TextFile::new(path, "").is_test(), "{path}");
        }
        for path in ["src/main.rs", "crates/testbed/src/lib.rs", "src/latests.rs"] {
            assert!(!TextFile::new(path, "").is_test(), "{path}");
        }
    }
}
