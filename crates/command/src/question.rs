//! The question before a change: shows the change, and asks the person.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::CommandError;
use crate::edit::Edit;

/// The text that shows the edit of a key.
pub fn change(place: &str, edit: &Edit) -> String {
    let (key, current, wanted) = (&edit.key, edit.current(), edit.wanted());
    format!("{place}\n  {key}: {current} -> {wanted}\n")
}

/// Prints a message to standard error.
pub fn say(text: &str) -> Result<(), CommandError> {
    write!(io::stderr(), "{text}").map_err(CommandError::Print)
}

/// Asks the person. Without a terminal it fails.
pub fn ask() -> Result<(), CommandError> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Err(CommandError::NobodyToAsk);
    }
    say("Go on? [y/N] ")?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(CommandError::Print)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(CommandError::NotWanted),
    }
}
