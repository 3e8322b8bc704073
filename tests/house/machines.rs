//! The machines of the core's operator: which of them may name which, and that none reaches back to the whole.
//!
//! `layers` sees modules at the root of a crate. Inside of `operator` methods of the whole need no import, so that it saw one room
//! where there were circles. A machine is a struct with private fields in a file of its name; its row says whom it may name.

use crate::finding::{Finding, assert_none};
use crate::layering;
use crate::layers::{Row, row};
use crate::repository::{self, TextFile};
use crate::scan;

const FOLDER: &str = "crates/addon-core/src/operator/";
const WHOLE: &str = "Operator";

/// The words that all machines share: what the world tells, what is asked of it, and what stands in queues.
const WORDS: &str = "effect event policy query task ticket";

/// From bottom to top: a row names only rows above it.
const MACHINES: [Row; 5] = [
    row("cx", ""),
    row("jobs", "cx"),
    row("bindings", ""),
    row("lanes", "cx jobs bindings"),
    row("monitors", "bindings"),
];

/// Parts that still have methods of the whole. One that becomes a machine, or a way between machines, leaves the list; none comes to it.
const NOT_CUT: [&str; 37] = [
    "alone",
    "assess",
    "assess/late",
    "commit",
    "commit/refusal",
    "config",
    "config/channel",
    "config/lost",
    "config/omissions",
    "config/reading",
    "config/sift",
    "converge",
    "conversions",
    "crds",
    "drift",
    "enable",
    "explain",
    "explain/converge",
    "explain/module",
    "health",
    "hooks",
    "modules",
    "patience",
    "removal",
    "removal/brake",
    "removal/certainty",
    "removal/rereading",
    "reviews",
    "reviews/edits",
    "reviews/publication",
    "run",
    "schedule",
    "secrets",
    "sources",
    "standing",
    "startup",
    "trial",
];

/// The files that lead from one machine to others.
const WAYS: [&str; 4] = ["outcomes", "warmth/warming", "watching", "wave"];

/// The file inside of the operator's folder, without its ending; nothing for tests and files elsewhere.
fn inside(file: &TextFile) -> Option<&str> {
    let inside = file.path.strip_prefix(FOLDER)?.strip_suffix(".rs")?;
    (!file.is_test()).then_some(inside)
}

fn code_of(file: &TextFile) -> String {
    let code = scan::blank(&file.text);
    scan::without(&code, &scan::test_items(&code))
}

fn has_methods_of_the_whole(code: &str) -> Option<usize> {
    let mut whole = scan::words(code, WHOLE);
    whole.find(|at| code[..*at].trim_end().ends_with("impl"))
}

/// A machine names what its row allows, and never the whole.
fn check_machine(file: &TextFile) -> Vec<Finding> {
    let Some(inside) = inside(file) else { return Vec::new() };
    let path = layering::module_path(inside);
    let Some(machine) = MACHINES.iter().find(|row| path.first() == Some(&row.module)) else {
        return Vec::new();
    };
    let code = code_of(file);
    let whole = scan::words(&code, WHOLE).map(|at| {
        let what = format!("the machine `{}` names the whole operator", machine.module);
        let remedy = "take what it needs as an argument, and return what it decides";
        Finding::new(&file.path, scan::line_of(&code, at), what, remedy)
    });
    let edges = layering::edges(&code, &path).into_iter().filter_map(|edge| {
        let to = edge.to.strip_prefix("operator::").unwrap_or(&edge.to);
        let to = to.split("::").next().unwrap_or(to);
        let is_of_operator = edge.to.starts_with("operator::") || is_part(to);
        let may = to == machine.module || machine.may_use(to) || WORDS.split(' ').any(|word| word == to);
        (is_of_operator && !may).then(|| {
            let what = format!("the machine `{}` names `{to}`", machine.module);
            let remedy = "hand it in or return it, or argue for the edge in tests/house/machines.rs";
            Finding::new(&file.path, edge.line, what, remedy)
        })
    });
    whole.chain(edges).collect()
}

/// A part of the operator that a path climbs to by `super`.
fn is_part(name: &str) -> bool {
    let parts = NOT_CUT.iter().chain(&WAYS).copied();
    let parts = parts.chain(MACHINES.iter().map(|row| row.module));
    let root = |part: &'static str| part.split('/').next().unwrap_or(part);
    parts.map(root).any(|part| part == name)
}

/// Methods of the whole stand where the lists say.
fn check_methods(file: &TextFile) -> Option<Finding> {
    let inside = inside(file)?;
    let code = code_of(file);
    let at = has_methods_of_the_whole(&code)?;
    let is_listed = NOT_CUT.contains(&inside) || WAYS.contains(&inside);
    (!is_listed).then(|| {
        Finding::new(
            &file.path,
            scan::line_of(&code, at),
            "methods of the whole operator",
            "make it a machine with fields of its own: docs/adr/0017-machines-of-the-operator.md",
        )
    })
}

#[test]
fn machines_name_those_below_them() {
    let findings: Vec<Finding> = repository::rust_files().iter().flat_map(check_machine).collect();
    assert_none("machines", &findings);
}

#[test]
fn no_new_part_has_methods_of_the_whole() {
    let findings: Vec<Finding> = repository::rust_files().iter().filter_map(check_methods).collect();
    assert_none("machines", &findings);
}

#[test]
fn the_lists_are_about_files_that_have_such_methods() {
    let files = repository::rust_files();
    let has = |part: &str| {
        let mut of_part = files.iter().filter(|file| inside(file) == Some(part));
        of_part.any(|file| has_methods_of_the_whole(&code_of(file)).is_some())
    };
    let done: Vec<&str> = NOT_CUT.iter().chain(&WAYS).copied().filter(|part| !has(part)).collect();
    assert_eq!(
        done, [""; 0],
        "they are cut: take them from the lists of tests/house/machines.rs"
    );
}

#[test]
fn a_machine_names_only_machines_above_it_in_the_list() {
    for (at, machine) in MACHINES.iter().enumerate() {
        let above: Vec<&str> = MACHINES[..at].iter().map(|row| row.module).collect();
        let named = machine.uses.split(' ').filter(|name| !name.is_empty());
        for name in named {
            assert!(above.contains(&name), "`{}` names `{name}`", machine.module);
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
    }

    #[test]
    fn methods_of_the_whole_in_a_new_file_are_found() {
        let file = |path: &str| TextFile::new(&format!("{FOLDER}{path}"), "impl Operator {\n    fn a(&self) {}\n}\n");
        assert!(check_methods(&file("lanes/slots.rs")).is_some());
        assert!(check_methods(&file("outcomes.rs")).is_none());
        assert!(check_methods(&file("tests/converge.rs")).is_none());
    }
}
