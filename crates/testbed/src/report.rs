//! How something is told to a person: of an error what was attempted, why it failed and what to do about it.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use crate::find::FindError;
use crate::space::SpaceError;

/// The causes, one a line, and the hints of the one that has some.
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

/// Tells a figure also of a test that passes: what `eprintln` says of such a one is kept back by the harness.
pub fn tell(line: &str) {
    // Who reads along may have gone.
    let _ = writeln!(io::stderr(), "{line}");
}
