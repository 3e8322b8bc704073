//! The names of files, their heads, and texts that they must not contain.

use crate::finding::{Finding, assert_none};
use crate::repository::{self, TextFile};

/// Names that say nothing about the contents.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "types", "misc"];

/// Folders of a developer's machine. They are written in halves, so that this file passes its own check.
const MACHINE_FOLDERS: [&str; 4] = [
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
];
/// A folder of the image of werf, which Jobs of the module bundles mount files into.
const HOME_IN_IMAGE: &str = "/home/build";

/// Marks of postponed work. Each is written in halves too, so that this file does not contain it.
const PUT_OFF: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];

fn check_name(file: &TextFile) -> Vec<Finding> {
    let parts: Vec<&str> = file.path.trim_end_matches(".rs").split('/').collect();
    let empty = parts
        .iter()
        .filter(|part| EMPTY_NAMES.contains(part) || part.ends_with("manager"));
    let mut findings: Vec<Finding> = empty
        .map(|part| {
            Finding::new(
                &file.path,
                0,
                format!("the name `{part}` says nothing"),
                "name it after what it is about",
            )
        })
        .collect();
    if parts.last() == Some(&"mod") {
        let remedy = "call it after its folder and put it beside the folder";
        findings.push(Finding::new(&file.path, 0, "a file called mod.rs", remedy));
    }
    findings
}

/// The `tests.rs` beside a module belongs to that module, which has its own head.
fn check_head(file: &TextFile) -> Option<Finding> {
    let told = file.text.starts_with("//!") || file.path.ends_with("/tests.rs");
    (!told).then(|| {
        Finding::new(
            &file.path,
            1,
            "does not begin with `//!`",
            "say what it is for and what it must never do",
        )
    })
}

fn check_machine(file: &TextFile) -> Vec<Finding> {
    let breaches = file.text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.replace(HOME_IN_IMAGE, "");
        let folder = MACHINE_FOLDERS.iter().find(|folder| begins_a_path(&line, folder))?;
        let remedy = "take the path from an argument, the environment or the place of the file";
        Some(Finding::new(
            &file.path,
            index + 1,
            format!("a path of one machine: {folder}"),
            remedy,
        ))
    });
    breaches.collect()
}

/// Whether a path begins here: `/a/` begins one in ` /a/b` and `"/a/b"`, not in `@TMP@/a/b` or `x/a/b`.
fn begins_a_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|letter| !letter.is_alphanumeric() && !"@_-.~/})*>]$".contains(letter))
    })
}

fn check_put_off(file: &TextFile) -> Vec<Finding> {
    let breaches = file.text.lines().enumerate().filter_map(|(index, line)| {
        let mark = PUT_OFF.iter().find(|mark| line.contains(*mark))?;
        Some(Finding::new(
            &file.path,
            index + 1,
            format!("a {mark}"),
            "do it, or open an issue and leave no trace here",
        ))
    });
    breaches.collect()
}

#[test]
fn names_say_what_is_in_the_file() {
    let findings: Vec<Finding> = repository::rust_files().iter().flat_map(check_name).collect();
    assert_none("names", &findings);
}

#[test]
fn every_file_says_what_it_is_for() {
    let findings: Vec<Finding> = repository::rust_files().iter().filter_map(check_head).collect();
    assert_none("heads", &findings);
}

#[test]
fn no_file_knows_somebodys_machine() {
    let findings: Vec<Finding> = repository::text_files().iter().flat_map(check_machine).collect();
    assert_none("machine paths", &findings);
}

#[test]
fn nothing_is_put_off() {
    let findings: Vec<Finding> = repository::rust_files().iter().flat_map(check_put_off).collect();
    assert_none("put off", &findings);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found() {
        for path in [
            "src/utils.rs",
            "src/common/a.rs",
            "src/queue_manager.rs",
            "src/types.rs",
            "src/a/mod.rs",
        ] {
            assert_eq!(check_name(&TextFile::new(path, "")).len(), 1, "{path}");
        }
        for path in ["src/queue.rs", "src/module.rs", "src/model.rs", "src/commonplace.rs"] {
            assert_eq!(check_name(&TextFile::new(path, "")), [], "{path}");
        }
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        assert!(check_head(&TextFile::new("src/a.rs", "// no\nfn a() {}")).is_some());
        assert!(check_head(&TextFile::new("src/a.rs", "//! Yes.\n")).is_none());
        assert!(check_head(&TextFile::new("src/a/tests.rs", "use super::*;\n")).is_none());
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        for folder in MACHINE_FOLDERS {
            let text = format!("fine\nlet path = \"{folder}me/target\";\n");
            let findings = check_machine(&TextFile::new("src/a.rs", &text));
            assert_eq!(
                findings.iter().map(|finding| finding.line).collect::<Vec<_>>(),
                [2],
                "{folder}"
            );
            let text = format!("wait: @TMP@{folder}busy, $TMP{folder}x, a{folder}b");
            assert_eq!(check_machine(&TextFile::new("a.yaml", &text)), [], "{folder}");
        }
    }

    #[test]
    fn what_is_put_off_is_found() {
        for mark in PUT_OFF {
            assert_eq!(
                check_put_off(&TextFile::new("src/a.rs", &format!("//! A.\n// {mark} later\n")))[0].line,
                2
            );
        }
    }
}
