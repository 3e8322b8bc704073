//! The longest allowed files and functions. Tests do not count. An exception needs a reason, and is removed when it is
//! no longer needed.

use crate::finding::{Finding, assert_none};
use crate::repository::{self, TextFile};
use crate::scan;

/// A longer file needs an exception.
const FILE_RULE: usize = 400;
/// No file may be longer, not even with an exception.
const FILE_LIMIT: usize = 600;
/// A longer function needs an exception.
const FUNCTION_RULE: usize = 60;

/// An exception for a file between the rule and the limit.
struct LongFile {
    path: &'static str,
    reason: &'static str,
}

/// An exception for a function above the rule.
struct LongFunction {
    path: &'static str,
    name: &'static str,
    reason: &'static str,
}

const LONG_FILES: &[LongFile] = &[];
const LONG_FUNCTIONS: &[LongFunction] = &[
    LongFunction {
        path: "crates/telling/src/notices.rs",
        name: "log",
        reason: "one arm a notice: a single exhaustive match is what makes the compiler ask for the next one",
    },
    LongFunction {
        path: "crates/telling/src/notices/metered.rs",
        name: "count",
        reason: "one arm a notice, likewise",
    },
    LongFunction {
        path: "crates/addon-sim/src/run/events.rs",
        name: "happen",
        reason: "one arm for each thing that may come, likewise",
    },
    LongFunction {
        path: "crates/addon-sim/src/world.rs",
        name: "undergo",
        reason: "one arm an action, likewise",
    },
    LongFunction {
        path: "crates/addon-sim/src/world/jobs.rs",
        name: "carry_out",
        reason: "one arm a kind of job, likewise",
    },
    LongFunction {
        path: "src/dispatch.rs",
        name: "run",
        reason: "one arm a kind of job, likewise",
    },
];

fn check_file(file: &TextFile, excused: &[LongFile]) -> Option<Finding> {
    let code = scan::blank(&file.text);
    let lines = file.text.lines().count() - scan::lines_in(&code, &scan::test_items(&code));
    let excuse = excused.iter().find(|long| long.path == file.path);
    let finding = |what: String, remedy: &str| Some(Finding::new(&file.path, 0, what, remedy));
    match excuse {
        _ if lines > FILE_LIMIT => finding(
            format!("{lines} lines without tests, the limit is {FILE_LIMIT}"),
            "split it: a folder beside it takes the parts",
        ),
        None if lines > FILE_RULE => finding(
            format!("{lines} lines without tests, the rule is {FILE_RULE}"),
            "split it, or give it a reason in LONG_FILES of tests/house/sizes.rs",
        ),
        Some(_) if lines <= FILE_RULE => finding(
            format!("{lines} lines, and yet it stands in LONG_FILES"),
            "take it off the list",
        ),
        Some(long) if long.reason.trim().is_empty() => finding(
            "stands in LONG_FILES without a reason".to_owned(),
            "say why it is one thing",
        ),
        _ => None,
    }
}

fn check_functions(file: &TextFile, excused: &[LongFunction]) -> Vec<Finding> {
    let code = scan::blank(&file.text);
    let code = scan::without(&code, &scan::test_items(&code));
    let long = scan::functions(&code)
        .into_iter()
        .filter(|function| function.lines > FUNCTION_RULE);
    let unexcused = long.filter(|function| {
        !excused
            .iter()
            .any(|entry| entry.path == file.path && entry.name == function.name && !entry.reason.is_empty())
    });
    let findings = unexcused.map(|function| {
        let what = format!(
            "`{}` has {} lines, the rule is {FUNCTION_RULE}",
            function.name, function.lines
        );
        let remedy =
            "split it where the story has a joint, or give it a reason in LONG_FUNCTIONS of tests/house/sizes.rs";
        Finding::new(&file.path, function.line, what, remedy)
    });
    findings.collect()
}

/// Exceptions that are no longer needed.
fn stale(files: &[TextFile], long_files: &[LongFile], long_functions: &[LongFunction]) -> Vec<Finding> {
    let is_long = |entry: &LongFunction| {
        let file = files.iter().find(|file| file.path == entry.path);
        file.is_some_and(|file| {
            let functions = scan::functions(&scan::blank(&file.text));
            functions
                .iter()
                .any(|function| function.name == entry.name && function.lines > FUNCTION_RULE)
        })
    };
    let functions = long_functions.iter().filter(|entry| !is_long(entry)).map(|entry| {
        Finding::new(
            entry.path,
            0,
            format!("`{}` stands in LONG_FUNCTIONS and is not long", entry.name),
            "take it off the list",
        )
    });
    let gone = long_files
        .iter()
        .filter(|long| !files.iter().any(|file| file.path == long.path));
    let gone = gone.map(|long| {
        Finding::new(
            long.path,
            0,
            "stands in LONG_FILES and does not exist",
            "take it off the list",
        )
    });
    functions.chain(gone).collect()
}

fn measured() -> Vec<TextFile> {
    repository::rust_files()
        .into_iter()
        .filter(|file| !file.is_test())
        .collect()
}

#[test]
fn files_are_short() {
    let findings: Vec<Finding> = measured()
        .iter()
        .filter_map(|file| check_file(file, LONG_FILES))
        .collect();
    assert_none("file size", &findings);
}

#[test]
fn functions_are_short() {
    let findings: Vec<Finding> = measured()
        .iter()
        .flat_map(|file| check_functions(file, LONG_FUNCTIONS))
        .collect();
    assert_none("function size", &findings);
}

#[test]
fn exceptions_are_needed() {
    assert_none("exceptions", &stale(&measured(), LONG_FILES, LONG_FUNCTIONS));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: usize, tests: usize) -> TextFile {
        let tests = if tests == 0 {
            String::new()
        } else {
            format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(tests - 3))
        };
        TextFile::new("src/a.rs", &("// a line\n".repeat(lines) + &tests))
    }

    fn what(finding: Option<Finding>) -> String {
        finding.map(|finding| finding.what).unwrap_or_default()
    }

    #[test]
    fn long_files_are_found_and_tests_do_not_count() {
        const EXCUSED: &[LongFile] = &[LongFile {
            path: "src/a.rs",
            reason: "one table",
        }];
        const NO_REASON: &[LongFile] = &[LongFile {
            path: "src/a.rs",
            reason: " ",
        }];
        assert_eq!(what(check_file(&file(400, 500), &[])), "");
        assert_eq!(
            what(check_file(&file(401, 500), &[])),
            "401 lines without tests, the rule is 400"
        );
        assert_eq!(what(check_file(&file(600, 0), EXCUSED)), "");
        assert_eq!(
            what(check_file(&file(601, 0), EXCUSED)),
            "601 lines without tests, the limit is 600"
        );
        assert_eq!(
            what(check_file(&file(400, 0), EXCUSED)),
            "400 lines, and yet it stands in LONG_FILES"
        );
        assert_eq!(
            what(check_file(&file(500, 0), NO_REASON)),
            "stands in LONG_FILES without a reason"
        );
    }

    #[test]
    fn long_functions_are_found() {
        const EXCUSED: &[LongFunction] = &[LongFunction {
            path: "src/a.rs",
            name: "long",
            reason: "a table of arms",
        }];
        let text = |lines: usize| {
            TextFile::new(
                "src/a.rs",
                &format!("\nfn long() {{\n{}}}\n", "    a();\n".repeat(lines - 2)),
            )
        };
        assert_eq!(check_functions(&text(60), &[]), []);
        let findings = check_functions(&text(61), &[]);
        assert_eq!(
            (findings[0].line, findings[0].what.as_str()),
            (2, "`long` has 61 lines, the rule is 60")
        );
        assert_eq!(check_functions(&text(61), EXCUSED), []);
        assert_eq!(stale(&[text(61)], &[], EXCUSED), []);
        assert_eq!(stale(&[text(60)], &[], EXCUSED).len(), 1);
    }

    #[test]
    fn an_exception_for_a_file_that_is_gone_is_found() {
        let gone = [LongFile {
            path: "src/gone.rs",
            reason: "none",
        }];
        assert_eq!(stale(&[file(1, 0)], &gone, &[]).len(), 1);
    }
}
