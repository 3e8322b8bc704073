//! Files of object patches that must be refused, each with the error for its author.
//!
//! `UPDATE=1 cargo test --test object_patches` writes the errors anew.

use std::path::{Path, PathBuf};

use addon_core::failure::Failure;
use addon_core::object::patch;
use fs_err as fs;

fn corpus() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/object-patches");
    let entries: Result<Vec<_>, _> = fs::read_dir(dir).and_then(Iterator::collect);
    let entries = entries.expect("the corpus is part of the sources");
    let mut paths: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    paths
}

/// The report, and the hint below it.
fn answer(text: &str) -> Option<String> {
    let failure = Failure::from(patch::parse(text).err()?);
    Some(format!("{}\nhint: {}\n", failure.report, failure.hints.join("; ")))
}

#[test]
fn every_bad_file_is_refused_and_its_author_is_told_why() {
    let update = std::env::var_os("UPDATE").is_some();
    let paths = corpus();
    let (files, answers): (Vec<_>, Vec<_>) = paths
        .iter()
        .partition(|path| path.extension().is_some_and(|ext| ext == "in"));
    let mut wrong = Vec::new();
    for path in &files {
        let Some(found) = answer(&fs::read_to_string(path).unwrap()) else {
            wrong.push(format!("{}: nothing is wrong with it", path.display()));
            continue;
        };
        let expected = path.with_extension("err");
        if update {
            fs::write(&expected, &found).unwrap();
        }
        let same = fs::read_to_string(&expected).is_ok_and(|expected| expected == found);
        if !same || !found.contains("line ") {
            wrong.push(format!("{}:\n{found}", path.display()));
        }
    }
    let orphans = answers.iter().filter(|path| !path.with_extension("in").exists());
    wrong.extend(orphans.map(|path| format!("{}: an answer to nothing", path.display())));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() >= 60, "files were lost: {}", files.len());
}
