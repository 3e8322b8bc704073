//! Messages for a person. For an error they say what was attempted, why it failed and what to do about it.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use crate::find::FindError;
use crate::space::SpaceError;

/// An error and its causes, one a line, and the hints of the cause that has some.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut hints = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<FindError>() {
            hints = error.hints();
        }
        if let Some(error) = error.downcast_ref::<SpaceError>() {
            hints = error.hints();
        }
        next = error.source();
        if let Some(source) = next {
            let _ = write!(text, "\n  because {source}");
        }
    }
    for hint in hints {
        let _ = write!(text, "\nhint: {hint}");
    }
    text
}

/// Prints a figure even if the test passes: the test harness would suppress `eprintln` in that case.
pub fn tell(line: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr(), "{line}");
}
