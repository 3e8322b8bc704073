//! Colours for people at a terminal. Never in output for programs: not in files, pipes, or where `NO_COLOR` asks for
//! none.

use std::io::{self, IsTerminal as _};

use crate::settings::Environment;

/// Whether colours are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Colours,
}

/// The meaning of a text, shown as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// A text without a colour.
    Neutral,
    /// As it should be.
    Good,
    /// Under way.
    Waiting,
    /// A person should look at it.
    Bad,
    /// Not there on purpose.
    Faint,
}

impl Paint {
    pub(super) fn of(environment: &Environment) -> Self {
        let refused =
            environment.get("NO_COLOR").is_some() || environment.get("TERM").is_some_and(|term| term == "dumb");
        if !refused && io::stdout().is_terminal() {
            Self::Colours
        } else {
            Self::Plain
        }
    }

    /// The text in the colour of its tone.
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Neutral => return text.to_owned(),
            Tone::Good => 32,
            Tone::Waiting => 33,
            Tone::Bad => 31,
            Tone::Faint => 2,
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Colours => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
