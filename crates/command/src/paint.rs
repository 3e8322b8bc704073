//! Colours for a person at a terminal. Never used in files or pipes, or if `NO_COLOR` is set.

use std::io::{self, IsTerminal as _};

use settings::Environment;

/// Whether colours are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Colours,
}

/// The meaning of a text, which determines its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// No particular meaning; printed without a colour.
    Neutral,
    /// The state is as it should be.
    Good,
    /// Work is under way.
    Waiting,
    /// A person should look at the state.
    Bad,
    /// The thing is absent on purpose.
    Faint,
}

/// The number of columns of the terminal on standard output; none if it is no terminal.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

impl Paint {
    pub fn of(environment: &Environment) -> Self {
        let refused =
            environment.get("NO_COLOR").is_some() || environment.get("TERM").is_some_and(|term| term == "dumb");
        if !refused && io::stdout().is_terminal() {
            Self::Colours
        } else {
            Self::Plain
        }
    }

    /// The text in the colour of its tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
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
