//! Files of metrics: any text is a list of operations that produce a page for Prometheus, or an error with a line.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;

use addon_core::metric::escape::Escaping;
use addon_core::metric::{self, BadMetrics, Operation, Store, exposition};
use names::{HookId, HookName, Owner};

/// The text is the file. Bytes that are not UTF-8 are skipped, because a file with them is refused before it is parsed.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = match metric::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => return told(&error, text),
    };
    let lines = 1..=text.lines().count();
    for dropped in &parsed.dropped {
        assert!(lines.contains(&dropped.place.line), "{dropped}");
    }
    let kept = serde_json::to_string(&parsed.operations).expect("operations can be kept");
    let read: Vec<Operation> = serde_json::from_str(&kept).expect("what was kept can be read");
    assert_eq!(read, parsed.operations);
    let mut store = Store::default();
    let hook = HookId {
        owner: Owner::Global,
        name: HookName::parse("hook.sh").expect("a name"),
    };
    // The second round meets series that exist already.
    for operations in [parsed.operations, read] {
        drop(store.apply(&hook, operations));
        for escaping in Escaping::ALL {
            page(&exposition::page(&store, escaping, |value| Cow::Borrowed(value)));
        }
    }
    store.forget(&Owner::Global);
    assert_eq!(exposition::text(&store), "");
}

fn told(error: &BadMetrics, text: &str) {
    let lines = 1..=text.lines().count() + 1;
    match error {
        BadMetrics::Syntax(at) => assert!(lines.contains(&at.line()), "{at}"),
        BadMetrics::Operation { place, problem } => {
            assert!(lines.contains(&place.line), "{error}");
            assert!(!problem.to_string().is_empty());
        }
    }
    assert!(error.source().is_some(), "nothing was wrong");
}

/// The page as Prometheus reads it: comments, and lines with a series and a number, no series twice.
fn page(text: &str) {
    let mut seen = BTreeSet::new();
    for line in text.split_terminator('\n') {
        if line.starts_with("# HELP ") || line.starts_with("# TYPE ") {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a line has a series and a value");
        assert!(series.ends_with('}') && series.contains('{'), "{line}");
        let number = matches!(value, "+Inf" | "-Inf" | "NaN") || value.parse::<f64>().is_ok();
        assert!(number, "{line}");
        assert!(seen.insert(series), "{line} is there twice");
    }
}
