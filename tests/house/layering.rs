//! Reads every path that leads from one module to another and compares it with the tables in `layers`.
//!
//! It reads `crate::` and `super::`, groups included. It must also recognise a path that climbs
//! to the root by `super::super::`.

use crate::finding::{Finding, assert_none};
use crate::layers::{self, Row, Table};
use crate::repository::{self, TextFile};
use crate::scan;

/// A path in one module that leads to another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) line: usize,
    /// `values`, or `values::merge` when the path names the part.
    pub(crate) to: String,
}

/// The findings about one file of the table's crate.
fn check(table: &Table, file: &TextFile) -> Vec<Finding> {
    let Some(inside) = file.path.strip_prefix(table.folder) else {
        return Vec::new();
    };
    let module = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
    if module == "lib" {
        return check_root(file);
    }
    let Some(row) = table.row(module) else {
        let what = format!("the module `{module}` stands in no row");
        return vec![Finding::new(
            &file.path,
            0,
            what,
            "give it a row in tests/house/layers.rs",
        )];
    };
    let code = scan::blank(&file.text);
    let code = scan::without(&code, &scan::test_items(&code));
    let allowed = |edge: &Edge| {
        let root = edge.to.split("::").next().unwrap_or(&edge.to);
        root == module || row.may_use(root) || row.may_use(&edge.to)
    };
    let breaches = edges(&code, &module_path(inside))
        .into_iter()
        .filter(|edge| !allowed(edge));
    breaches.map(|edge| breach(&file.path, row, &edge)).collect()
}

fn breach(path: &str, row: &Row, edge: &Edge) -> Finding {
    let remedy = format!(
        "`{}` may use {}; move what is shared down, pass it in, or argue for the edge in tests/house/layers.rs",
        row.module,
        row.allowance()
    );
    Finding::new(path, edge.line, format!("`{}` uses `{}`", row.module, edge.to), remedy)
}

/// The root of a crate may only list its modules.
fn check_root(file: &TextFile) -> Vec<Finding> {
    let code = scan::blank(&file.text);
    let uses = scan::words(&code, "use").map(|at| {
        let remedy = "name things where they live; the root only lists the modules";
        Finding::new(
            &file.path,
            scan::line_of(&code, at),
            "a `use` at the root of a crate",
            remedy,
        )
    });
    uses.collect()
}

/// `values/merge.rs` is `values::merge`, two steps below the root.
pub(crate) fn module_path(inside: &str) -> Vec<&str> {
    let mut path: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    if path.last() == Some(&"main") {
        path.pop();
    }
    path
}

/// Every edge in blanked code, in the order of the text.
pub(crate) fn edges(code: &str, module: &[&str]) -> Vec<Edge> {
    let inline = scan::inline_modules(code);
    let mut found: Vec<(usize, String)> = Vec::new();
    for name in ["crate", "addon_operator"] {
        for at in scan::words(code, name) {
            if let Some(next) = behind_colons(code, at + name.len()) {
                read_tree(code, next, &mut found);
            }
        }
    }
    for at in scan::words(code, "super").filter(|&at| !code[..at].trim_end().ends_with("::")) {
        let depth = module.len() + inline.iter().filter(|body| body.contains(&at)).count();
        if let Some(next) = climb(code, at, depth) {
            read_tree(code, next, &mut found);
        }
    }
    found.sort();
    found
        .into_iter()
        .map(|(at, to)| Edge {
            line: scan::line_of(code, at),
            to,
        })
        .collect()
}

/// Where a path goes on, if it goes on at all.
fn behind_colons(code: &str, at: usize) -> Option<usize> {
    let at = skip_space(code, at);
    code[at..].starts_with("::").then(|| skip_space(code, at + 2))
}

/// Follows `super::super::` from `at`. Returns the position where the path goes on at the root of the crate, if it
/// climbs that far.
fn climb(code: &str, mut at: usize, depth: usize) -> Option<usize> {
    for _ in 0..depth {
        if !code[at..].starts_with("super") {
            return None;
        }
        at = behind_colons(code, at + "super".len())?;
    }
    Some(at)
}

fn skip_space(code: &str, at: usize) -> usize {
    at + code[at..].len() - code[at..].trim_start().len()
}

/// Reads the names in a `use` tree at the root of the crate: a module, a module and its part, or a group of these.
fn read_tree(code: &str, at: usize, found: &mut Vec<(usize, String)>) {
    for element in elements(code, at) {
        let name = word(code, element);
        match behind_colons(code, element + name.len()) {
            Some(next) if !name.is_empty() => {
                let parts = elements(code, next).into_iter().map(|part| (part, word(code, part)));
                found.extend(parts.map(|(part, inner)| match inner {
                    "" | "self" => (part, name.to_owned()),
                    inner => (part, format!("{name}::{inner}")),
                }));
            }
            _ if name.is_empty() => found.push((element, "*".to_owned())),
            _ => found.push((element, name.to_owned())),
        }
    }
}

/// The beginnings of a group's elements. A path without a group is a single element.
fn elements(code: &str, at: usize) -> Vec<usize> {
    if !code[at..].starts_with('{') {
        return vec![at];
    }
    let end = scan::closing(code, at);
    let mut starts = Vec::new();
    let mut next = skip_space(code, at + 1);
    while next < end {
        starts.push(next);
        next = skip_space(code, element_end(code, next, end) + 1);
    }
    starts
}

/// The comma after an element, or the end of its group.
fn element_end(code: &str, start: usize, end: usize) -> usize {
    let mut at = start;
    while at < end {
        match code.as_bytes()[at] {
            b',' => return at,
            b'{' => at = scan::closing(code, at),
            _ => {}
        }
        at += 1;
    }
    end
}

fn word(code: &str, at: usize) -> &str {
    &code[at..scan::word_end(code.as_bytes(), at)]
}

#[test]
fn every_edge_stands_in_the_tables() {
    let files: Vec<TextFile> = repository::rust_files()
        .into_iter()
        .filter(|file| !file.is_test())
        .collect();
    let findings: Vec<Finding> = layers::TABLES
        .iter()
        .flat_map(|table| files.iter().flat_map(|file| check(table, file)))
        .collect();
    assert_none("layers", &findings);
}

/// A row without a file allows nothing, and would permit other rows to name a module that does not exist.
#[test]
fn every_row_has_a_file() {
    let files = repository::rust_files();
    let is_there = |table: &Table, module: &str| {
        let file = format!("{}{module}.rs", table.folder);
        files.iter().any(|found| found.path == file)
    };
    let tables = layers::TABLES.iter();
    let findings = tables.flat_map(|table| {
        let lost = table.rows.iter().filter(|row| !is_there(table, row.module));
        lost.map(|row| {
            let what = format!("the row `{}` of {} has no file", row.module, table.folder);
            Finding::new(
                "tests/house/layers.rs",
                0,
                what,
                "remove the row, and its name from the other rows",
            )
        })
    });
    assert_none("layers", &findings.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::row;

    const TABLE: Table = Table {
        title: "made up",
        folder: "src/",
        rows: &[row("low", ""), row("wide", "low"), row("high", "low wide::part")],
    };

    fn breaches(path: &str, text: &str) -> Vec<String> {
        let findings = check(&TABLE, &TextFile::new(path, text));
        findings
            .into_iter()
            .map(|finding| format!("{} {}", finding.line, finding.what))
            .collect()
    }

    #[test]
    fn an_edge_that_stands_in_no_row_is_found() {
        let rows: [(&str, &str, &[&str]); 11] = [
            ("src/low.rs", "use crate::wide::Thing;", &["1 `low` uses `wide::Thing`"]),
            (
                "src/low.rs",
                "\n\nfn a(b: crate::high::B) {}",
                &["3 `low` uses `high::B`"],
            ),
            (
                "src/low.rs",
                "use crate::{low::A,\n wide::{B, C},\n high};",
                &[
                    "2 `low` uses `wide::B`",
                    "2 `low` uses `wide::C`",
                    "3 `low` uses `high`",
                ],
            ),
            (
                "src/low/part.rs",
                "use super::super::high::B;",
                &["1 `low` uses `high::B`"],
            ),
            ("src/low.rs", "use super::high;", &["1 `low` uses `high`"]),
            (
                "src/low.rs",
                "mod a { use super::super::high; }",
                &["1 `low` uses `high`"],
            ),
            ("src/low.rs", "use crate::*;", &["1 `low` uses `*`"]),
            (
                "src/high.rs",
                "use crate::wide::{self, part};",
                &["1 `high` uses `wide`"],
            ),
            ("src/high.rs", "use crate::wide::*;", &["1 `high` uses `wide`"]),
            (
                "src/high.rs",
                "use addon_operator::other::A;",
                &["1 `high` uses `other::A`"],
            ),
            ("src/new.rs", "", &["0 the module `new` stands in no row"]),
        ];
        for (path, text, wanted) in rows {
            assert_eq!(breaches(path, text), wanted, "{path}: {text}");
        }
    }

    #[test]
    fn an_allowed_edge_is_none_of_our_business() {
        let rows = [
            ("src/low.rs", "use crate::low::part; use std::fmt; use super::low::A;"),
            ("src/low/part.rs", "use super::A; use crate::low::B;"),
            ("src/low.rs", "mod inner { use super::A; }"),
            (
                "src/high.rs",
                "use crate::wide::part; use crate::{low, wide::part::A}; use names;",
            ),
            (
                "src/low.rs",
                "// use crate::high;\nconst A: &str = \"crate::high\"; pub(crate) fn b() {}",
            ),
            ("src/low.rs", "#[cfg(test)]\nmod tests { use crate::high::A; }"),
            ("elsewhere/low.rs", "use crate::high::A;"),
            ("src/lib.rs", "pub mod low;\npub mod high;"),
        ];
        for (path, text) in rows {
            assert_eq!(breaches(path, text), [""; 0], "{path}: {text}");
        }
    }

    #[test]
    fn the_root_of_a_crate_re_exports_nothing() {
        assert_eq!(
            breaches("src/lib.rs", "mod low;\npub use low::A;"),
            ["2 a `use` at the root of a crate"]
        );
    }

    #[test]
    fn the_remedy_says_what_is_allowed() {
        let findings = check(&TABLE, &TextFile::new("src/wide.rs", "use crate::high::A;"));
        assert!(
            findings[0]
                .remedy
                .starts_with("`wide` may use low; move what is shared down"),
            "{}",
            findings[0]
        );
    }
}
