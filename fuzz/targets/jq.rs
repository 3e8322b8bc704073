//! Filters of hooks: any text, applied to any value, must come to an end without a panic.

use gojq::filter::Filter;
use gojq::limits::Limits;
use serde_json::Value;

/// Small limits, so that many texts can be tried.
const LIMITS: Limits = Limits {
    steps: 50_000,
    cells: 100_000,
    stack: 1200 * 1024,
    output: 50_000,
};

/// The last line is the input if it is JSON, and the input is null otherwise. The lines before it are the filter.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, input) = match text.trim_end_matches('\n').rsplit_once('\n') {
        Some((filter, last)) => match serde_json::from_str(last) {
            Ok(input) => (filter, input),
            Err(_) => (text, Value::Null),
        },
        None => (text, Value::Null),
    };
    let Ok(filter) = Filter::compile(text) else { return };
    let outputs = filter.outputs_within(&input, &LIMITS, None);
    let same = Filter::compile(".").expect("a dot is a filter");
    for output in outputs.into_iter().flatten() {
        same.apply(&output).expect("what comes out of a filter can go into one");
    }
}
