//! Long texts on a terminal, shown by a pager as git shows them.
//!
//! Must never page into a file or a pipe, nor lose a text because the pager is not there.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Child, Command, Stdio};

use settings::Environment;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{CommandError, print};

/// The pager of people who name none.
const USUAL: &str = "less";
/// Its settings: it ends at once if one screen shows all, it passes colours on, and it leaves the text on the screen.
const SETTINGS: &str = "FRX";
/// The exit codes of a shell that cannot run its command, or does not find it.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Shows a text for people: by their pager if standard output is a terminal, otherwise as `print` does.
pub fn show(text: &str, environment: &Environment) -> Result<(), CommandError> {
    if io::stdout().is_terminal()
        && let Some(mut pager) = start(environment)
    {
        let _deaf = deaf();
        if let Some(mut input) = pager.stdin.take() {
            // A person may end the pager before the end of the text.
            drop(input.write_all(text.as_bytes()));
        }
        let not_run = |code| (NOT_EXECUTABLE..=NOT_FOUND).contains(&code);
        if pager.wait().is_ok_and(|status| !status.code().is_some_and(not_run)) {
            return Ok(());
        }
    }
    print(text)
}

/// While this exists, and after it, an interrupt is for the pager alone.
fn deaf() -> Option<(Runtime, Signal)> {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let interrupt = runtime.block_on(async { signal(SignalKind::interrupt()) });
    Some((runtime, interrupt.ok()?))
}

fn start(environment: &Environment) -> Option<Child> {
    if environment.get("TERM").is_none_or(|term| term == "dumb") {
        return None;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the pager belongs to the person, and ends before this command"
    )]
    let mut command = match environment.get("PAGER") {
        Some(pager) if pager == "cat" => return None,
        // People write flags into the variable.
        Some(pager) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(pager);
            shell
        }
        None => Command::new(USUAL),
    };
    if environment.get("LESS").is_none() {
        command.env("LESS", SETTINGS);
    }
    command.stdin(Stdio::piped()).spawn().ok()
}
