//! The patches with the simulator's faults fit the core: the lines that each patch changes are found exactly once.
//!
//! A patch finds its place by the lines around its change. When these lines are edited the patch does not apply any
//! more, which would be noticed only at the next run of all faults. A patch that applies at another place would be
//! another fault. The files are read from the work tree, committed or not. This check must never change one.

use std::path::Path;

use crate::finding::{Finding, assert_none};
use crate::repository::{self, TextFile};

const FAULTS: &str = "crates/addon-sim/mutants/";
const REMEDY: &str =
    "make the same fault where its code is now and write the diff of it here; if that code is gone, delete the patch";

/// One place that a patch changes.
#[derive(Debug, Default)]
struct Hunk<'a> {
    path: &'a str,
    /// The line of the patch at which the hunk begins.
    line: usize,
    /// The numbers of lines that the hunk's head states, before the change and after it.
    says: Option<(usize, usize)>,
    /// The hunk's lines before the change.
    before: Vec<&'a str>,
    /// The number of the hunk's lines after the change.
    after: usize,
}

/// The numbers of lines in `@@ -2,7 +2,6 @@`. A single line has no number.
fn counts(head: &str) -> Option<(usize, usize)> {
    let mut ranges = head.split(' ').skip(1);
    let mut count = |sign: char| {
        let range = ranges.next()?.strip_prefix(sign)?;
        range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok())
    };
    Some((count('-')?, count('+')?))
}

fn hunks(patch: &str) -> Vec<Hunk<'_>> {
    let (mut hunks, mut path, mut inside) = (Vec::<Hunk>::new(), "", false);
    for (index, line) in patch.lines().enumerate() {
        if let Some(other) = line.strip_prefix("+++ b/") {
            path = other;
        } else if line.starts_with("@@ ") {
            inside = true;
            hunks.push(Hunk {
                path,
                line: index + 1,
                says: counts(line),
                ..Hunk::default()
            });
        } else if line.starts_with("--- a/") || line.starts_with("diff ") {
            inside = false;
        } else if let Some(hunk) = hunks.last_mut().filter(|_| inside) {
            let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
            hunk.before.extend((sign != "+").then_some(text));
            hunk.after += usize::from(sign != "-");
        }
    }
    hunks
}

/// How many times these lines occur in a file.
fn places(text: &str, lines: &[&str]) -> usize {
    let text: Vec<&str> = text.lines().collect();
    text.windows(lines.len().max(1))
        .filter(|window| *window == lines)
        .count()
}

/// The reasons for which a patch cannot be applied at its place.
fn check(patch: &TextFile, files: &[TextFile]) -> Vec<Finding> {
    let finding = |line, what: String| Finding::new(&patch.path, line, what, REMEDY);
    let hunks = hunks(&patch.text);
    if hunks.is_empty() {
        return vec![finding(0, "it changes nothing".to_owned())];
    }
    let misfit = |hunk: &Hunk<'_>| {
        let path = hunk.path;
        if hunk.says != Some((hunk.before.len(), hunk.after)) {
            return Some("its lines are not as many as it says".to_owned());
        }
        let Some(file) = files.iter().find(|file| file.path == path) else {
            return Some(format!("there is no {path}"));
        };
        match places(&file.text, &hunk.before) {
            0 => Some(format!("its lines do not stand in {path}")),
            1 => None,
            many => Some(format!("its lines stand in {many} places of {path}")),
        }
    };
    let misfits = hunks.iter().filter_map(|hunk| Some(finding(hunk.line, misfit(hunk)?)));
    misfits.collect()
}

#[test]
fn every_fault_fits_the_core() {
    let files = repository::text_files();
    let is_fault = |file: &&TextFile| {
        let is_patch = Path::new(&file.path)
            .extension()
            .is_some_and(|extension| extension == "patch");
        is_patch && file.path.starts_with(FAULTS)
    };
    let faults: Vec<&TextFile> = files.iter().filter(is_fault).collect();
    assert!(!faults.is_empty(), "no faults in {FAULTS}");
    let findings: Vec<Finding> = faults.into_iter().flat_map(|fault| check(fault, &files)).collect();
    assert_none("faults", &findings);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "# A fault.\n--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,2 @@\n one\n-two\n three\n\
                         --- a/b.rs\n+++ b/b.rs\n@@ -7 +7,2 @@ fn f()\n-four\n+five\n+six\n";

    /// The findings about a patch and two files, by the lines of the patch.
    fn found(patch: &str, a: &str, b: &str) -> Vec<(usize, String)> {
        let files = [TextFile::new("a.rs", a), TextFile::new("b.rs", b)];
        let findings = check(&TextFile::new("a.patch", patch), &files).into_iter();
        findings.map(|finding| (finding.line, finding.what)).collect()
    }

    #[test]
    fn a_fault_fits_where_its_lines_stand() {
        assert_eq!(found(PATCH, "zero\none\ntwo\nthree\n", "four\n"), []);
    }

    #[test]
    fn a_fault_that_does_not_fit_is_found() {
        let lines = |a, b| found(PATCH, a, b);
        assert_eq!(
            lines("one\nthree\n", "four\n"),
            [(4, "its lines do not stand in a.rs".to_owned())]
        );
        assert_eq!(
            lines("one\ntwo\nthree\n", "four\nfour\n"),
            [(10, "its lines stand in 2 places of b.rs".to_owned())]
        );
        assert_eq!(lines("one\ntwo\nthree\n", "forty-four\n").len(), 1);
        let elsewhere = PATCH.replace("b.rs", "c.rs");
        assert_eq!(
            found(&elsewhere, "one\ntwo\nthree\n", ""),
            [(10, "there is no c.rs".to_owned())]
        );
    }

    #[test]
    fn a_patch_that_is_none_is_found() {
        let short = PATCH.replace("-1,3", "-1,4");
        let wrong = [(4, "its lines are not as many as it says".to_owned())];
        assert_eq!(found(&short, "one\ntwo\nthree\n", "four\n"), wrong);
        assert_eq!(found("# A fault.\n", "", ""), [(0, "it changes nothing".to_owned())]);
    }
}
