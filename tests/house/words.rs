//! The words that CONTRIBUTING.md bans because they hide the noun: in texts of the program, in heads of files and in
//! the docs.
//!
//! It must never ban a word that has a right use: "what" and "who" are allowed inside of a sentence.

use std::path::Path;

use crate::finding::{Finding, assert_none};
use crate::repository::{self, TextFile};
use crate::scan;

const BANNED: [&str; 4] = ["somebody", "whoever", "anybody", "but for"];

/// Crates that are no part of the program. The texts and heads of all others are checked.
const TOOLS: [&str; 3] = ["crates/addon-sim/", "crates/image/", "crates/testbed/"];

/// Exempt, because the help of metrics is recorded in the contract.
const RECORDED: [&str; 1] = ["crates/telling/src/meters/"];

/// Pages that quote recorded texts or the originals word by word.
const QUOTING: [&str; 5] = [
    "docs/why/adr/",
    "docs/guides/building.md",
    "docs/reference/compatibility.md",
    "docs/start/install.md",
    "docs/reference/metrics.md",
];

/// Beginnings of a head that hide its subject.
const BEGINNINGS: [&str; 4] = ["What ", "Who ", "Whose ", "Whom "];

fn is_one_of(file: &TextFile, places: &[&str]) -> bool {
    places.iter().any(|place| file.path.starts_with(place))
}

fn is_of_program(file: &TextFile) -> bool {
    let is_source = file.path.starts_with("src/") || file.path.starts_with("crates/") && file.path.contains("/src/");
    is_source && !is_one_of(file, &TOOLS) && !is_one_of(file, &RECORDED) && !file.is_test()
}

/// The banned words in a text, each with its line from 1.
fn banned(text: &str) -> Vec<(usize, &'static str)> {
    let lower = text.to_ascii_lowercase();
    let found = BANNED.into_iter().flat_map(|word| {
        let places: Vec<usize> = scan::words(&lower, word).collect();
        places.into_iter().map(move |at| (scan::line_of(text, at), word))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    found
}

fn findings(file: &TextFile, text: &str) -> Vec<Finding> {
    let found = banned(text).into_iter().map(|(line, word)| {
        let remedy = "name the person, program or thing; write \"except\" in the place of \"but for\"";
        Finding::new(&file.path, line, format!("the word `{word}`"), remedy)
    });
    found.collect()
}

/// Checks the string literals of the program without its tests.
fn check_texts(file: &TextFile) -> Vec<Finding> {
    let code = scan::blank(&file.text);
    let tests = scan::test_items(&code);
    let texts = scan::only_texts(&file.text);
    findings(file, &scan::without(&texts, &tests))
}

fn check_beginning(file: &TextFile) -> Option<Finding> {
    let head = file.text.strip_prefix("//! ")?;
    let beginning = BEGINNINGS.into_iter().find(|beginning| head.starts_with(beginning))?;
    let remedy = "begin with the noun that the file is about";
    Some(Finding::new(
        &file.path,
        1,
        format!("a head that begins with `{}`", beginning.trim_end()),
        remedy,
    ))
}

#[test]
fn texts_of_the_program_name_their_subject() {
    let files = repository::rust_files();
    let program = files.iter().filter(|file| is_of_program(file));
    assert_none(
        "words of the program",
        &program.flat_map(check_texts).collect::<Vec<_>>(),
    );
}

#[test]
fn heads_of_files_name_their_subject() {
    let files = repository::rust_files();
    let program = files.iter().filter(|file| is_of_program(file));
    assert_none(
        "beginnings of heads",
        &program.filter_map(check_beginning).collect::<Vec<_>>(),
    );
}

#[test]
fn pages_name_their_subject() {
    let files = repository::text_files();
    let pages = files.iter().filter(|file| {
        let is_page = file.path == "README.md" || file.path.starts_with("docs/");
        is_page
            && Path::new(&file.path)
                .extension()
                .is_some_and(|extension| extension == "md")
            && !is_one_of(file, &QUOTING)
    });
    let found: Vec<Finding> = pages.flat_map(|file| findings(file, &file.text)).collect();
    assert_none("words of the docs", &found);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_words_are_found_in_texts_alone() {
        let source = "//! Somebody.\nfn a() {\n    // whoever\n    say(\"Whoever it is, but for us\");\n}\n\
                      #[cfg(test)]\nmod tests {\n    const A: &str = \"somebody\";\n}\n";
        let found = check_texts(&TextFile::new("src/a.rs", source));
        let lines: Vec<_> = found
            .iter()
            .map(|finding| (finding.line, finding.what.as_str()))
            .collect();
        assert_eq!(lines, [(4, "the word `but for`"), (4, "the word `whoever`")]);
        assert_eq!(
            check_texts(&TextFile::new("src/a.rs", "const A: &str = \"a body\";\n")),
            []
        );
    }

    #[test]
    fn banned_words_are_found_on_pages() {
        let found = findings(&TextFile::new("docs/a.md", ""), "# A\n\nSomebody else.\n");
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [3]);
        assert_eq!(banned("everybody, nobody, but forty"), []);
    }

    #[test]
    fn heads_without_a_noun_are_found() {
        assert!(check_beginning(&TextFile::new("src/a.rs", "//! What it is.\n")).is_some());
        assert!(check_beginning(&TextFile::new("src/a.rs", "//! The lease: what it is.\n")).is_none());
    }
}
