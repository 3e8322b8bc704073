//! The tests that the documents name as proofs of promises exist.
//!
//! Only code that the two documents quote is read. A name without a test was renamed or removed, and then nothing
//! checks the promise beside it.

use std::path::Path;

use crate::finding::{Finding, assert_none};
use crate::repository::{self, TextFile};
use crate::scan;

const PROMISES: &str = "docs/why/reliability.md";
const MENDS: &str = "bench/campaigns/mends.md";

/// A piece of quoted code that names tests.
#[derive(Debug, PartialEq, Eq)]
enum Quoted<'a> {
    Test(&'a str),
    /// The path of a module: all tests below it.
    Module(&'a str),
    File(&'a str),
}

/// A quoted name, and the kind of test that precedes it, as in `cluster: a_test`.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    kind: Option<&'a str>,
    quoted: Quoted<'a>,
}

impl<'a> Named<'a> {
    /// Names of tests are sentences. Other quoted words have fewer than two underscores.
    fn of(code: &'a str) -> Option<Self> {
        let (kind, name) = match code.split_once(": ") {
            Some((kind, name)) => (Some(kind), name),
            None => (None, code),
        };
        let is_word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        };
        let quoted = if Path::new(name).extension().is_some_and(|extension| extension == "rs") {
            Quoted::File(name)
        } else if name.contains("::") && name.split("::").all(is_word) {
            Quoted::Module(name)
        } else if is_word(name) && (kind.is_some() || name.matches('_').count() > 1) {
            Quoted::Test(name)
        } else {
            return None;
        };
        Some(Self { kind, quoted })
    }

    fn is_in(&self, files: &[Tests]) -> bool {
        files
            .iter()
            .filter(|file| file.is_of(self.kind))
            .any(|file| match self.quoted {
                Quoted::Test(name) => file.names.iter().any(|own| own == name),
                Quoted::Module(path) => !file.names.is_empty() && file.is_below(&path.replace("::", "/")),
                Quoted::File(path) => Path::new(&file.path).ends_with(path),
            })
    }
}

/// The tests of one file.
#[derive(Debug)]
struct Tests {
    path: String,
    names: Vec<String>,
}

impl Tests {
    fn of(file: &TextFile) -> Self {
        let code = scan::blank(&file.text);
        let mut names = Vec::new();
        let mut is_test = false;
        for line in code.lines().map(str::trim) {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            if let Some((_, rest)) = line.split_once("fn ")
                && std::mem::take(&mut is_test)
            {
                names.extend(rest.split(['(', '<']).next().map(str::to_owned));
            }
        }
        Self {
            path: file.path.clone(),
            names,
        }
    }

    fn is_of(&self, kind: Option<&str>) -> bool {
        match kind {
            None => true,
            Some("src") => self.path.starts_with("src/"),
            Some("core") => self.path.starts_with("crates/addon-core/"),
            Some(name) => ["crates/", "tests/"].iter().any(|folder| {
                let inner = self
                    .path
                    .strip_prefix(folder)
                    .and_then(|inner| inner.strip_prefix(name));
                inner.is_some_and(|rest| rest.starts_with(['/', '.']))
            }),
        }
    }

    /// Whether this file is the Rust module of that path, or one inside it.
    fn is_below(&self, module: &str) -> bool {
        let path = format!("/{}", self.path.trim_end_matches(".rs"));
        path.ends_with(&format!("/{module}")) || path.contains(&format!("/{module}/"))
    }
}

fn check(document: &TextFile, files: &[Tests]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        for code in line.split('`').skip(1).step_by(2) {
            if Named::of(code).is_some_and(|named| !named.is_in(files)) {
                let what = format!("`{code}` is no test");
                let remedy = "name the test that holds us to this promise";
                findings.push(Finding::new(&document.path, index + 1, what, remedy));
            }
        }
    }
    findings
}

#[test]
fn tests_that_promises_name_exist() {
    let files = repository::text_files();
    let tests: Vec<Tests> = files.iter().filter(|file| file.is_rust()).map(Tests::of).collect();
    let findings = [PROMISES, MENDS].iter().flat_map(|path| {
        let document = files.iter().find(|file| file.path == *path);
        check(document.unwrap_or_else(|| panic!("there is no {path}")), &tests)
    });
    assert_none("promises", &findings.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_function_that_is_run_as_a_test_is_one() {
        let text = "#[test]\n#[expect(clippy::x, reason = \"y\")]\nfn it_holds() {}\nfn it_helps() {}\n\
                    #[tokio::test(flavor = \"multi_thread\")]\nasync fn it_waits() {}\n// #[test]\nfn it_was() {}\n";
        assert_eq!(
            Tests::of(&TextFile::new("src/a.rs", text)).names,
            ["it_holds", "it_waits"]
        );
    }

    #[test]
    fn names_that_lead_nowhere_are_found() {
        let file = |path: &str| Tests::of(&TextFile::new(path, "#[test]\nfn it_holds_well() {}\n"));
        let files = [
            file("src/a/b.rs"),
            file("tests/cluster/c.rs"),
            file("crates/addon-core/src/d/tests.rs"),
        ];
        for (code, is_found) in [
            ("it_holds_well", true),
            ("it_held_well", false),
            ("src: it_holds_well", true),
            ("cluster: it_holds_well", true),
            ("clust: it_holds_well", false),
            ("image: it_holds_well", false),
            ("core: d::tests", true),
            ("src: d::tests", false),
            ("src: a", false),
            ("a::b", true),
            ("a::c", false),
            ("a/b.rs", true),
            ("tests/cluster/c.rs", true),
            ("tests/cluster/b.rs", false),
            ("x.rs", false),
            ("values.yaml", true),
            ("make soak", true),
            ("a_metric", true),
        ] {
            let document = TextFile::new("docs/a.md", &format!("| `why` | `{code}` |"));
            assert_eq!(check(&document, &files).is_empty(), is_found, "{code}");
        }
    }
}
