//! The machines of the core's operator: which of them may name which, that none uses the whole operator, and which
//! files of the whole's methods may call which.
//!
//! `layers` checks only modules at the root of a crate. Inside of `operator`, methods of the whole need no import, so
//! `layers` cannot see cycles there. A machine is a struct with private fields in a file of its name; its row lists the
//! machines it may name. Methods of the whole are only in the files called ways, and a way calls only ways above it in
//! its list.

use std::collections::BTreeMap;

use crate::finding::{Finding, assert_none};
use crate::layering;
use crate::layers::{Row, Table, row};
use crate::repository::{self, TextFile};
use crate::scan;

const FOLDER: &str = "crates/addon-core/src/operator/";
const WHOLE: &str = "Operator";
/// The file of the whole operator: its fields and its methods for the shell.
const ROOT: &str = "crates/addon-core/src/operator.rs";

/// The modules with the types that all machines share: events, effects, questions, tasks, and the types in them.
const WORDS: &str = "edit effect event policy provenance query task ticket";

/// From bottom to top: a row may name only rows above it in this list.
pub(crate) const MACHINES: Table = Table {
    title: "The machines of the operator, in `crates/addon-core/src/operator`, beside the words that all of them share",
    folder: FOLDER,
    rows: &[
        row("cx", ""),
        row("jobs", "cx"),
        row("bindings", ""),
        row("loops", ""),
        row("lanes", "cx jobs bindings"),
        row("monitors", "bindings loops"),
        row("schedule", "cx bindings"),
        row("modules", ""),
        row("directories", "modules"),
        row("removal", ""),
        row("commits", ""),
        row("config", "cx modules commits"),
        row("health", ""),
        row("supply", "health"),
        row("verdicts", "cx jobs modules config supply"),
        row("converge", "cx lanes"),
        row("drift", ""),
        row("warmth", "cx jobs bindings monitors modules"),
        row("reviews", "cx jobs bindings lanes monitors modules"),
        row("chores", "cx"),
        row("startup", "chores"),
        row("trial", ""),
        row("standing", "cx jobs"),
        row("stand_ins", ""),
        row(
            "certainty",
            "bindings lanes modules directories removal config supply verdicts stand_ins",
        ),
        row("survey", "lanes monitors modules health certainty"),
        row("patience", "modules monitors converge survey"),
        row("pulse", "health converge survey"),
        // `pulse` is the machine whose report answers one of the questions; a question names its answer.
        row("explain", "lanes modules health converge survey pulse"),
    ],
};

/// The machine that reads the whole operator. All read-only code uses it, and it changes nothing.
const SURVEY: &str = "survey";

/// From bottom to top: the methods of the whole in one file call those of files above it in this list.
pub(crate) const WAYS: Table = Table {
    title: "The ways between the machines, in `operator/ways`: whose methods each of them calls",
    folder: "crates/addon-core/src/operator/ways/",
    rows: &[
        row("views", ""),
        row("requests", "views"),
        row("loops", "requests"),
        row("objects", "loops"),
        row("hooks", "views objects loops"),
        row("supplying", "requests"),
        row("healing", "requests supplying"),
        row("sections", "views requests supplying"),
        row("removals", "views requests"),
        row("restoring", "views requests"),
        row("reviewing", "views"),
        row("warming", "objects"),
        row("failures", "sections supplying"),
        row("trials", "requests sections"),
        row("readings", "views removals sections"),
        row("enabling", "views objects hooks failures"),
        row("ran", "requests loops objects sections failures"),
        row("standing_in", "views hooks ran"),
        row("releases", "failures trials"),
        row("waves", "views objects removals trials supplying"),
        row("commits", "sections readings ran"),
        row(
            "runs",
            "views requests loops objects hooks sections failures enabling releases supplying",
        ),
        row("renewals", "requests objects readings runs supplying"),
        row("deletions", "objects sections runs"),
        row(
            "converging",
            "views requests loops hooks removals sections warming releases waves standing_in",
        ),
        row("starting", "requests hooks warming readings trials commits"),
        row(
            "outcomes",
            "objects removals warming failures readings enabling releases commits deletions starting supplying",
        ),
        row(
            "advance",
            "requests healing loops objects hooks removals restoring reviewing enabling standing_in converging runs renewals deletions starting outcomes",
        ),
    ],
};

/// The path inside of the operator's folder, without the file extension; nothing for tests and other files.
fn inside(file: &TextFile) -> Option<&str> {
    let inside = file.path.strip_prefix(FOLDER)?.strip_suffix(".rs")?;
    (!file.is_test()).then_some(inside)
}

fn code_of(file: &TextFile) -> String {
    let code = scan::blank(&file.text);
    scan::without(&code, &scan::test_items(&code))
}

/// A machine names only the machines of its row, and never the whole operator.
fn check_machine(file: &TextFile) -> Vec<Finding> {
    let Some(inside) = inside(file) else { return Vec::new() };
    let path = layering::module_path(inside);
    let Some(machine) = path.first().and_then(|part| MACHINES.row(part)) else {
        return Vec::new();
    };
    let code = code_of(file);
    let whole = scan::words(&code, WHOLE)
        .filter(|_| machine.module != SURVEY)
        .map(|at| {
            let what = format!("the machine `{}` names the whole operator", machine.module);
            let remedy = "take what it needs as an argument, and return what it decides";
            Finding::new(&file.path, scan::line_of(&code, at), what, remedy)
        });
    let edges = layering::edges(&code, &path).into_iter().filter_map(|edge| {
        let to = edge.to.strip_prefix("operator::").unwrap_or(&edge.to);
        let to = to.split("::").next().unwrap_or(to);
        let is_of_operator = edge.to.starts_with("operator::") || MACHINES.row(to).is_some() || to == "ways";
        let may = to == machine.module || machine.may_use(to) || WORDS.split(' ').any(|word| word == to) || to == WHOLE;
        (is_of_operator && !may).then(|| {
            let what = format!("the machine `{}` names `{to}`", machine.module);
            let remedy = "hand it in or return it, or argue for the edge in tests/house/machines.rs";
            Finding::new(&file.path, edge.line, what, remedy)
        })
    });
    whole.chain(edges).collect()
}

/// The parts of a file that define methods of the whole operator.
fn methods_of_the_whole(code: &str) -> Vec<std::ops::Range<usize>> {
    let whole = scan::words(code, WHOLE).filter(|at| code[..*at].trim_end().ends_with("impl"));
    let bodies = whole.filter_map(|at| {
        let open = at + code[at..].find('{')?;
        Some(open..scan::closing(code, open))
    });
    bodies.collect()
}

/// Methods of the whole operator are only in the operator's own file and in the ways.
fn check_methods(file: &TextFile) -> Option<Finding> {
    let inside = inside(file)?;
    let code = code_of(file);
    let body = methods_of_the_whole(&code).into_iter().next()?;
    let way = inside.strip_prefix("ways/");
    (way.is_none_or(|way| WAYS.row(way).is_none())).then(|| {
        Finding::new(
            &file.path,
            scan::line_of(&code, body.start),
            "methods of the whole operator",
            "make it a method of a machine, or of a way: docs/why/adr/0017-machines-of-the-operator.md",
        )
    })
}

/// The row of ways to which a file belongs.
fn way_of(file: &TextFile) -> Option<&'static Row> {
    WAYS.row(inside(file)?.strip_prefix("ways/")?)
}

/// The methods of the whole operator, each with its way.
fn methods(files: &[TextFile]) -> BTreeMap<String, &'static str> {
    let mut all = BTreeMap::new();
    for file in files {
        let Some(way) = way_of(file) else { continue };
        let code = code_of(file);
        for body in methods_of_the_whole(&code) {
            let text = &code[body];
            let names = scan::words(text, "fn").map(|at| text[at + 2..].trim_start());
            all.extend(names.map(|name| (name[..scan::word_end(name.as_bytes(), 0)].to_owned(), way.module)));
        }
    }
    all
}

/// A way calls only methods of the ways in its row.
fn check_calls(file: &TextFile, methods: &BTreeMap<String, &'static str>) -> Vec<Finding> {
    let Some(way) = way_of(file) else { return Vec::new() };
    let code = code_of(file);
    let mut findings = Vec::new();
    for body in methods_of_the_whole(&code) {
        for receiver in ["self", "this", "Self"] {
            for at in scan::words(&code[body.clone()], receiver).map(|at| body.start + at) {
                let Some(name) = called(&code, at + receiver.len()) else {
                    continue;
                };
                let Some(to) = methods.get(name).filter(|to| **to != way.module && !way.may_use(to)) else {
                    continue;
                };
                let what = format!("the way `{}` calls `{name}` of the way `{to}`", way.module);
                let remedy = "return what it decides to the way that called it, or argue for the edge in tests/house/machines.rs";
                findings.push(Finding::new(&file.path, scan::line_of(&code, at), what, remedy));
            }
        }
    }
    findings
}

/// The name after `.` or `::`.
fn called(code: &str, at: usize) -> Option<&str> {
    let rest = code[at..].trim_start();
    let rest = rest.strip_prefix("::").or_else(|| rest.strip_prefix('.'))?.trim_start();
    Some(&rest[..scan::word_end(rest.as_bytes(), 0)])
}

/// Fields of a machine must be private to the machine.
fn check_fields(file: &TextFile) -> Vec<Finding> {
    if file.path != ROOT {
        return Vec::new();
    }
    let code = code_of(file);
    let Some(at) = code.find("pub struct Operator {") else {
        return vec![Finding::new(
            &file.path,
            1,
            "the whole operator is not here",
            "tell tests/house/machines.rs where it is",
        )];
    };
    let open = at + code[at..].find('{').expect("the declaration ends with it");
    let fields = &code[open..scan::closing(&code, open)];
    let public = scan::words(fields, "pub").map(|at| {
        let line = scan::line_of(&code, open + at);
        Finding::new(
            &file.path,
            line,
            "a public field of the whole operator",
            "give it a method",
        )
    });
    public.collect()
}

#[test]
fn machines_name_those_below_them() {
    let findings: Vec<Finding> = repository::rust_files().iter().flat_map(check_machine).collect();
    assert_none("machines", &findings);
}

#[test]
fn methods_of_the_whole_stand_in_the_ways() {
    let files = repository::rust_files();
    let findings = files
        .iter()
        .filter_map(check_methods)
        .chain(files.iter().flat_map(check_fields));
    assert_none("machines", &findings.collect::<Vec<_>>());
}

#[test]
fn ways_call_those_below_them() {
    let files = repository::rust_files();
    let methods = methods(&files);
    let findings: Vec<Finding> = files.iter().flat_map(|file| check_calls(file, &methods)).collect();
    assert_none("ways", &findings);
}

#[test]
fn every_row_is_a_file() {
    let files = repository::rust_files();
    for table in [MACHINES, WAYS] {
        for row in table.rows {
            let path = format!("{}{}.rs", table.folder, row.module);
            assert!(files.iter().any(|file| file.path == path), "{path} is in no commit");
        }
    }
}

#[test]
fn a_row_names_only_rows_above_it() {
    for table in [MACHINES, WAYS] {
        for (at, row) in table.rows.iter().enumerate() {
            let above: Vec<&str> = table.rows[..at].iter().map(|row| row.module).collect();
            for name in row.uses.split(' ').filter(|name| !name.is_empty()) {
                assert!(above.contains(&name), "`{}` names `{name}`", row.module);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = check_machine(&TextFile::new(&format!("{FOLDER}{path}"), text));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_edge_that_no_row_allows_is_found() {
        let text = "use super::cx::Cx;\nuse super::converge::Converge;\nuse crate::operator::monitors::Monitors;\nuse crate::name::HookId;\n";
        assert_eq!(lines("lanes.rs", text), [2, 3]);
        assert_eq!(
            lines(
                "lanes/rate.rs",
                "use super::Lanes;\nuse super::super::converge::Look;\n"
            ),
            [2]
        );
    }

    #[test]
    fn a_machine_that_reaches_back_is_found() {
        let text = "impl Lanes {\n    fn a(&self, whole: &Operator) {}\n}\n";
        assert_eq!(lines("lanes.rs", text), [2]);
        assert_eq!(lines("survey.rs", text), [0; 0]);
    }

    #[test]
    fn methods_of_the_whole_elsewhere_are_found() {
        let file = |path: &str| TextFile::new(&format!("{FOLDER}{path}"), "impl Operator {\n    fn a(&self) {}\n}\n");
        assert!(check_methods(&file("lanes/slots.rs")).is_some());
        assert!(check_methods(&file("ways/shortcuts.rs")).is_some());
        assert!(check_methods(&file("ways/outcomes.rs")).is_none());
        assert!(check_methods(&file("tests/converge.rs")).is_none());
    }

    #[test]
    fn a_call_that_climbs_is_found() {
        let file = |way: &str, text: &str| TextFile::new(&format!("{FOLDER}ways/{way}.rs"), text);
        let low =
            "impl Operator {\n    fn low(&mut self) {\n        self.high();\n        self.lanes.high();\n    }\n}\n";
        let high = "impl Operator {\n    fn high(&mut self) {\n        self\n            .low();\n        x(Self::low)\n    }\n}\n";
        let files = [file("sections", low), file("runs", high)];
        let methods = methods(&files);
        let found = |file: &TextFile| {
            check_calls(file, &methods)
                .iter()
                .map(|finding| finding.line)
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&files[0]), [3]);
        assert_eq!(found(&files[1]), [0; 0]);
    }
}
