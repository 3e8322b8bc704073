//! `queue`: what waits, and what runs, once or again and again.

use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::socket::Socket;
use super::{Caller, CommandError, Output, Target, print, show};
use crate::settings::duration;

/// What a terminal takes for the order to change its screen, or to clear it and go to its top.
const OTHER_SCREEN: &str = "\u{1b}[?1049h";
const FIRST_SCREEN: &str = "\u{1b}[?1049l";
const TOP: &str = "\u{1b}[H\u{1b}[2J";

#[derive(Debug, Args)]
pub(super) struct Queue {
    #[command(subcommand)]
    command: QueueCommand,
    #[command(flatten)]
    target: Target,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", global = true)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// Show the tasks of all queues
    List {
        /// Name empty queues too
        #[arg(short = 'e', long)]
        show_empty: bool,
        /// Show them again and again, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        /// How long to wait in between
        #[arg(short = 't', long = "watchInterval", value_name = "DURATION", default_value = "1s", value_parser = interval)]
        watch_interval: Duration,
    },
    /// Show the tasks of the queue `main`
    Main,
}

fn interval(text: &str) -> Result<Duration, &'static str> {
    let read = duration::parse(text).filter(|read| !read.is_zero());
    read.ok_or("should be a duration above zero such as 1s or 500ms")
}

impl Queue {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let extension = self.output.extension();
        let socket = self.target.socket(caller)?;
        match self.command {
            QueueCommand::List {
                show_empty,
                watch,
                watch_interval,
            } => {
                let wish = if show_empty { "?showEmpty=true" } else { "" };
                let path = format!("/queue/list.{extension}{wish}");
                if watch {
                    show_again(&socket, &path, watch_interval)
                } else {
                    print(&socket.get(&path)?)
                }
            }
            QueueCommand::Main => show(&socket.get(&format!("/queue/main.{extension}"))?),
        }
    }
}

/// Ends with Ctrl-C, or when there is no operator to ask any more; either way the terminal is as it was.
fn show_again(socket: &Socket, path: &str, interval: Duration) -> Result<(), CommandError> {
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
            let answer = socket.get(path)?;
            print(&format!("{TOP}{:.0}\n{answer}", Timestamp::now()))?;
            if runtime.block_on(async { timeout(interval, interrupt.recv()).await.is_ok() }) {
                return Ok(());
            }
        }
    };
    print(OTHER_SCREEN)?;
    let outcome = show();
    print(FIRST_SCREEN)?;
    outcome
}
