//! `queue`: what waits, and what runs.

use clap::{Args, Subcommand};

use super::{Caller, CommandError, Output, Target, print};

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
    },
    /// Show the tasks of the queue `main`
    Main,
}

impl Queue {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let extension = self.output.extension();
        let path = match self.command {
            QueueCommand::List { show_empty: false } => format!("/queue/list.{extension}"),
            QueueCommand::List { show_empty: true } => format!("/queue/list.{extension}?showEmpty=true"),
            QueueCommand::Main => format!("/queue/main.{extension}"),
        };
        print(&self.target.socket(caller)?.get(&path)?)
    }
}
