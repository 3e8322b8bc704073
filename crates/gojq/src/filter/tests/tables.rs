//! Compares filters with tables that were recorded from the original's engine.
//!
//! Every row with another result is listed in `oracles/jq_differences.jsonl` with a reason. A new difference fails the
//! test, and so does a row in the list that agrees, so that the list stays true. docs/reference/compatibility.md describes the
//! effect of each class of reasons for users.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use super::super::{Filter, FilterError, Limits};

/// One row of a table.
#[derive(Debug, Clone, Deserialize)]
struct Row {
    filter: String,
    input: String,
    output: Vec<String>,
}

/// A row with another result, and the reason.
#[derive(Debug, Clone, Deserialize)]
struct Difference {
    filter: String,
    /// The input; `None` for all inputs of the row.
    input: Option<String>,
    reason: String,
}

const TABLES: [(&str, &str); 2] = [
    ("jq", include_str!("../../../tests/oracles/jq.jsonl")),
    ("jq_suite", include_str!("../../../tests/oracles/jq_suite.jsonl")),
];

const DIFFERENCES: &str = include_str!("../../../tests/oracles/jq_differences.jsonl");

fn lines<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The result of a row in a form that can be compared: the outputs, and whether an error comes.
#[derive(Debug, PartialEq)]
enum Answer {
    NoFilter,
    Fails,
    Gives(Vec<Value>),
}

fn expected(row: &Row) -> Answer {
    if row.output.iter().any(|output| output.starts_with("ERR")) {
        return Answer::Fails;
    }
    if row
        .output
        .iter()
        .any(|output| output.starts_with("PARSE") || output.starts_with("COMPILE"))
    {
        return Answer::NoFilter;
    }
    Answer::Gives(
        row.output
            .iter()
            .map(|output| serde_json::from_str(output).unwrap())
            .collect(),
    )
}

fn answered(row: &Row, filters: &mut BTreeMap<String, Result<Filter, FilterError>>) -> Answer {
    let compiled = filters
        .entry(row.filter.clone())
        .or_insert_with(|| Filter::compile(&row.filter));
    let Ok(filter) = compiled else { return Answer::NoFilter };
    let input: Value = serde_json::from_str(&row.input).unwrap();
    let limits = Limits {
        stack: STACK - (2 << 20),
        ..Limits::default()
    };
    match filter.outputs_within(&input, &limits, Some(1_700_000_000.5)) {
        Ok(outputs) => Answer::Gives(outputs),
        Err(_) => Answer::Fails,
    }
}

fn is_hook_idiom(row: &Row) -> bool {
    let input: Value = serde_json::from_str(&row.input).unwrap();
    input.get("metadata").is_some() && matches!(expected(row), Answer::Gives(_))
}

/// One row recurses a hundred calls deep, which needs more stack than a test has, if the build is not optimised.
const STACK: usize = 16 << 20;

#[test]
fn the_tables_agree_but_for_what_is_listed() {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, compare_the_tables)
            .unwrap();
    });
}

fn compare_the_tables() {
    let mut filters = BTreeMap::new();
    let listed: Vec<Difference> = lines(DIFFERENCES);
    assert!(
        listed.iter().all(|difference| difference.reason.len() > 20),
        "a reason in words"
    );
    let mut used = vec![false; listed.len()];
    let mut report = String::new();
    let (mut agreeing, mut all) = (0_u32, 0_u32);
    let (mut idioms_agreeing, mut idioms) = (0_u32, 0_u32);
    for (name, text) in TABLES {
        let (mut here, mut rows) = (0_u32, 0_u32);
        for row in lines::<Row>(text) {
            rows += 1;
            let (expected, answer) = (expected(&row), answered(&row, &mut filters));
            let agrees = expected == answer;
            here += u32::from(agrees);
            if name == "jq" && is_hook_idiom(&row) {
                idioms += 1;
                idioms_agreeing += u32::from(agrees);
            }
            if agrees {
                continue;
            }
            let known = listed.iter().position(|difference| {
                difference.filter == row.filter && difference.input.as_ref().is_none_or(|input| *input == row.input)
            });
            match known {
                Some(index) => used[index] = true,
                None => writeln!(report, "{name}: {row:?}\n    ours: {answer:?}").unwrap(),
            }
        }
        println!("{name}: {here} of {rows} rows agree");
        agreeing += here;
        all += rows;
    }
    println!("hook idioms: {idioms_agreeing} of {idioms}");
    for (difference, _) in listed.iter().zip(&used).filter(|(_, used)| !**used) {
        writeln!(report, "agrees by now, and is still listed: {difference:?}").unwrap();
    }
    assert!(report.is_empty(), "{report}");
    assert!(f64::from(agreeing) >= 0.91 * f64::from(all), "{agreeing} of {all}");
    assert_eq!(idioms_agreeing, idioms, "every idiom of hooks");
}
