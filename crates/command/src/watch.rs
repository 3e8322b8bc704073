//! Repeats an output on the terminal's alternate screen until Ctrl-C.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use settings::duration;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::{CommandError, print};

/// The escape sequences that switch to the alternate screen, switch back, and clear the screen.
const OTHER_SCREEN: &str = "\u{1b}[?1049h";
const FIRST_SCREEN: &str = "\u{1b}[?1049l";
const TOP: &str = "\u{1b}[H\u{1b}[2J";

/// Whether the output is printed once or repeated.
#[derive(Debug, Args)]
pub struct Watching {
    /// Repeat the answer until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    /// Pause between two answers with --watch
    #[arg(short = 't', long = "watchInterval", value_name = "DURATION", default_value = "1s", value_parser = interval)]
    watch_interval: Duration,
}

fn interval(text: &str) -> Result<Duration, &'static str> {
    let read = duration::parse(text).filter(|read| !read.is_zero());
    read.ok_or("should be a duration above zero such as 1s or 500ms")
}

impl Watching {
    /// Prints the result of `look`. Repeating ends with Ctrl-C, or when `look` fails. In both cases the terminal is
    /// restored.
    pub fn print(&self, look: impl Fn() -> Result<String, CommandError>) -> Result<(), CommandError> {
        if !self.watch {
            return print(&look()?);
        }
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(CommandError::Watch)?;
        let mut interrupt = {
            let _runtime = runtime.enter();
            signal(SignalKind::interrupt()).map_err(CommandError::Watch)?
        };
        let mut show = || {
            loop {
                print(&format!("{TOP}{:.0}\n{}", Timestamp::now(), look()?))?;
                if runtime.block_on(async { timeout(self.watch_interval, interrupt.recv()).await.is_ok() }) {
                    return Ok(());
                }
            }
        };
        print(OTHER_SCREEN)?;
        let outcome = show();
        print(FIRST_SCREEN)?;
        outcome
    }
}
