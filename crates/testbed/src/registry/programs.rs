//! Layers of images made of programs of this machine with their shared libraries.
//!
//! A program that cannot be read panics, because the test cannot go on. The layers must never leave this machine.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{environment, process};

/// A layer with the programs in `/bin`, their libraries at the paths where they are looked for, and other files by path
/// and content.
pub fn layer(programs: &[&Path], files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    // Containerd refuses entries with holes.
    builder.sparse(false);
    let mut needed = BTreeSet::new();
    for program in programs {
        let program = found(program);
        needed.extend(libraries(&program));
        let name = Path::new("bin").join(program.file_name().unwrap());
        builder
            .append_path_with_name(fs_err::canonicalize(&program).unwrap(), name)
            .unwrap();
    }
    for library in needed {
        let name = library.strip_prefix("/").unwrap();
        builder
            .append_path_with_name(fs_err::canonicalize(&library).unwrap(), name)
            .unwrap();
    }
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    let mut header = tar::Header::new_gnu();
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1);
    header.set_entry_type(tar::EntryType::Directory);
    header.set_mode(0o1777);
    header.set_size(0);
    builder.append_data(&mut header, "tmp/", std::io::empty()).unwrap();
    builder.into_inner().unwrap()
}

fn found(program: &Path) -> PathBuf {
    if program.is_absolute() {
        return program.to_owned();
    }
    let path = environment::path();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    places
        .find(|file| file.is_file())
        .expect("the programs of the image are on this machine")
}

fn libraries(program: &Path) -> Vec<PathBuf> {
    let mut command = process::command("ldd");
    command.arg(program);
    let output = process::run(command, None).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(|word| PathBuf::from(word.trim_end_matches(':'))).collect()
}
