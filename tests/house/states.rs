//! Matches over states of the core name every state, so that the compiler points to each of them when a state is added.
//!
//! `matches!` would silently return `false` for a new state. Only states that a new feature is likely to extend are
//! checked.

use std::ops::Range;

use crate::finding::{Finding, assert_none};
use crate::repository::{self, TextFile};
use crate::scan;

/// The checked types, each with the file that declares it. In that file they are also called `Self`.
const STATES: [(&str, &str); 3] = [
    ("Lifecycle", "crates/addon-core/src/module/lifecycle.rs"),
    ("Task", "crates/addon-core/src/operator/task.rs"),
    ("Turn", "crates/addon-core/src/operator/modules/turn.rs"),
];

const ASKED: &str = "matches!(";

/// The state type that a piece of code names.
fn state_in(file: &TextFile, part: &str) -> Option<&'static str> {
    let names = |name: &str| scan::words(part, name).any(|at| part[at + name.len()..].starts_with("::"));
    let asks = |(state, home): &&(&str, &str)| names(state) || file.path == *home && names("Self");
    STATES.iter().find(asks).map(|(state, _)| *state)
}

fn check(file: &TextFile) -> Vec<Finding> {
    let code = scan::blank(&file.text);
    let tests = scan::test_items(&code);
    let code = scan::without(&code, &tests);
    let asked = code.match_indices(ASKED).map(|(at, _)| {
        let open = at + ASKED.len() - 1;
        open..scan::closing(&code, open)
    });
    let finding = |range: Range<usize>| {
        let state = state_in(file, &code[range.clone()])?;
        Some(Finding::new(
            &file.path,
            scan::line_of(&code, range.start),
            format!("`matches!` over `{state}`"),
            "ask a method of it, and let that match on every state",
        ))
    };
    asked.filter_map(finding).collect()
}

#[test]
fn every_state_is_named_where_it_matters() {
    let files = repository::rust_files();
    let of_core = files
        .iter()
        .filter(|file| file.path.starts_with("crates/addon-core/src/") && !file.is_test());
    let findings: Vec<Finding> = of_core.flat_map(check).collect();
    assert_none("states", &findings);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&TextFile::new(path, text));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_match_that_leaves_states_out_is_found() {
        let text = "fn a(turn: &Turn) -> bool {\n    matches!(\n        turn,\n        Turn::Out\n    )\n}\n\
                    fn b(t: &T) -> bool { f(|| matches!(t, T(Task::Run { .. }))) }\n";
        assert_eq!(lines("crates/addon-core/src/operator/wave.rs", text), [2, 7]);
        let home = "impl Task {\n    fn is_run(&self) -> bool { matches!(self, Self::Run) }\n}\n";
        assert_eq!(lines(STATES[1].1, home), [2]);
    }

    #[test]
    fn other_questions_are_none_of_our_business() {
        let text = "fn a(s: &State) -> bool { matches!(s, State::Ready) && matches!(s, Self::Ready) }\n\
                    // matches!(turn, Turn::Out)\n#[cfg(test)]\nmod tests {\n    fn c() { assert!(matches!(a, Task::B)); }\n}\n";
        assert_eq!(lines("crates/addon-core/src/operator/wave.rs", text), [0; 0]);
    }
}
