//! The claims of the documents: their commands and link targets exist, and their tables equal those of `layers`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::{Finding, assert_none};
use crate::layers;
use crate::repository::{self, TextFile};

const BEGIN: &str = "<!-- layers:begin (tests/house/layers.rs; UPDATE=1 make layers) -->\n";
/// The page that shows the tables to people.
const LAYERS: &str = "docs/why/layers.md";

const END: &str = "<!-- layers:end -->";

/// The targets of a Makefile.
fn targets(makefile: &str) -> BTreeSet<&str> {
    let rules = makefile.lines().filter(|line| !line.starts_with([' ', '\t', '#', '.']));
    let heads = rules
        .filter_map(|line| line.split_once(':'))
        .filter(|(_, rest)| !rest.starts_with('='));
    heads.flat_map(|(names, _)| names.split_whitespace()).collect()
}

/// Finds `make` commands in code, inline or in blocks, whose target does not exist.
fn check_commands(document: &TextFile, targets: &BTreeSet<&str>) -> Vec<Finding> {
    let mut in_block = false;
    let mut findings = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        let codes: Vec<&str> = if in_block {
            vec![line]
        } else {
            line.split('`').skip(1).step_by(2).collect()
        };
        let unknown = codes
            .into_iter()
            .filter_map(make_target)
            .filter(|target| !targets.contains(target));
        findings.extend(unknown.map(|target| {
            let what = format!("`make {target}` is no target of the Makefile");
            Finding::new(&document.path, index + 1, what, "correct the text or add the target")
        }));
    }
    findings
}

/// The target in a `make target` command, whatever variables and options it has.
fn make_target(code: &str) -> Option<&str> {
    let mut words = code
        .trim_start_matches(['$', ' '])
        .split_whitespace()
        .skip_while(|word| word.contains('='));
    (words.next() == Some("make")).then(|| words.find(|word| !word.contains('=')))?
}

/// Finds links to files of the repository that do not exist.
fn check_links(document: &TextFile, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
    let mut findings = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split(')').next().unwrap_or("");
            let file = target.split('#').next().unwrap_or("");
            if !file.is_empty() && !target.contains("://") && !exists(&folder.join(file)) {
                let what = format!("a link to {file}, which does not exist");
                findings.push(Finding::new(&document.path, index + 1, what, "correct the link"));
            }
        }
    }
    findings
}

/// The document with its generated part renewed; nothing if the markers are missing.
fn with_tables(document: &str, tables: &str) -> Option<String> {
    let start = document.find(BEGIN)? + BEGIN.len();
    let end = start + document[start..].find(END)?;
    Some(format!("{}\n{tables}\n{}", &document[..start], &document[end..]))
}

/// The texts of the repository, without test data.
fn texts() -> Vec<TextFile> {
    let files = repository::text_files().into_iter();
    files
        .filter(|file| {
            Path::new(&file.path)
                .extension()
                .is_some_and(|extension| extension == "md")
        })
        .collect()
}

#[test]
fn commands_in_the_documents_exist() {
    let makefile = fs_err::read_to_string(repository::root().join("Makefile")).expect("the repository has a Makefile");
    let targets = targets(&makefile);
    assert!(targets.contains("help"), "a Makefile with `help`: {targets:?}");
    let findings: Vec<Finding> = texts().iter().flat_map(|text| check_commands(text, &targets)).collect();
    assert_none("commands", &findings);
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let exists = |path: &Path| repository::root().join(path).exists();
    let findings: Vec<Finding> = texts().iter().flat_map(|text| check_links(text, exists)).collect();
    assert_none("links", &findings);
}

#[test]
fn the_page_of_layers_quotes_the_tables() {
    let path = repository::root().join(LAYERS);
    let text = fs_err::read_to_string(&path).expect("the repository has a page of layers");
    let wanted = with_tables(&text, &layers::markdown()).expect("the page has the markers of the tables");
    if std::env::var_os("UPDATE").is_some() {
        fs_err::write(&path, &wanted).expect("the page can be written");
        return;
    }
    assert!(
        text == wanted,
        "{LAYERS} does not quote tests/house/layers.rs; run `UPDATE=1 make layers`"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        let makefile = "A := b\n.PHONY: all\nall: fmt lint ## everything\nfmt lint:\n\tcargo x: y\n# c: d\n";
        assert_eq!(targets(makefile), BTreeSet::from(["all", "fmt", "lint"]));
    }

    #[test]
    fn unknown_commands_are_found() {
        let text = "Run `make demo` or `make nothing`.\n```\n$ make fmt\nA=1 make gone B=2\ncargo make x\n```\nwe make haste\n";
        let findings = check_commands(&TextFile::new("README.md", text), &BTreeSet::from(["demo", "fmt"]));
        let found: Vec<(usize, &str)> = findings
            .iter()
            .map(|finding| (finding.line, finding.what.as_str()))
            .collect();
        let wanted = [
            (1, "`make nothing` is no target of the Makefile"),
            (4, "`make gone` is no target of the Makefile"),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn dead_links_are_found() {
        let text = "[a](b.md), [c](d.md#e), [f](https://g/h), [i](#j)";
        let findings = check_links(&TextFile::new("docs/k.md", text), |path| path == Path::new("docs/b.md"));
        assert_eq!(
            findings.iter().map(|finding| finding.what.as_str()).collect::<Vec<_>>(),
            ["a link to d.md, which does not exist"]
        );
    }

    #[test]
    fn tables_are_put_between_the_markers() {
        let text = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let wanted = format!("before\n{BEGIN}\nnew\n\n{END}\nafter\n");
        assert_eq!(with_tables(&text, "new\n").as_deref(), Some(wanted.as_str()));
        assert_eq!(with_tables(&wanted, "new\n").as_deref(), Some(wanted.as_str()));
        assert_eq!(with_tables("no markers", "new"), None);
    }
}
