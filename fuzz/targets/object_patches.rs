//! Files of object patches: any text is a list of operations that can be written down again, or an error with a line.

use addon_core::failure::Failure;
use addon_core::object::patch::{self, Operation};
use helm_yaml::yaml;

/// The text is the file. Bytes that are not UTF-8 are skipped, because a file with them is refused before it is parsed.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let operations = match patch::parse(text) {
        Ok(operations) => operations,
        Err(error) => {
            let told = Failure::from(error);
            // YAML knows more than one kind of line break.
            let there = 1..=text.split(['\n', '\r']).count() + 1;
            assert!(lines(&told.report).all(|line| there.contains(&line)), "{}", told.report);
            assert!(lines(&told.report).next().is_some(), "{}", told.report);
            assert!(
                told.hints.iter().any(|hint| !hint.is_empty()),
                "nothing to do about {}",
                told.report
            );
            return;
        }
    };
    let documents: Vec<_> = operations.iter().map(Operation::to_document).collect();
    let json: String = documents.iter().map(ToString::to_string).collect();
    let yaml: Vec<_> = documents.iter().map(yaml::to_string).collect();
    for again in [json, yaml.join("---\n")] {
        assert_eq!(patch::parse(&again).as_ref(), Ok(&operations), "{again}");
    }
    let tolerated = patch::parse_tolerated(text).expect("it could be read before");
    assert!(
        tolerated.iter().all(|one| operations.contains(one)),
        "more than was asked for"
    );
    for operation in &operations {
        assert!(!operation.to_string().is_empty());
    }
}

/// The line numbers in a report.
fn lines(report: &str) -> impl Iterator<Item = usize> {
    report.split("line ").skip(1).filter_map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    })
}
