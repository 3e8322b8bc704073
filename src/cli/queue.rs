//! `queue`: waiting and running tasks, printed once or repeatedly.

use clap::{Args, Subcommand};
use command::watch::Watching;
use command::{Caller, CommandError, Output, Target, show};

#[derive(Debug, Args)]
pub(super) struct Queue {
    #[command(subcommand)]
    command: QueueCommand,
    #[command(flatten)]
    pub(super) target: Target,
    /// Format of the answer
    #[arg(short, long, value_enum, default_value = "text", global = true)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// Show the tasks of all queues
    List {
        /// List empty queues, too
        #[arg(short = 'e', long)]
        show_empty: bool,
        #[command(flatten)]
        watching: Watching,
    },
    /// Show the tasks of the queue `main`
    Main,
}

impl Queue {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let extension = self.output.extension();
        let socket = self.target.socket(caller)?;
        match self.command {
            QueueCommand::List { show_empty, watching } => {
                let wish = if show_empty { "?showEmpty=true" } else { "" };
                let path = format!("/queue/list.{extension}{wish}");
                watching.print(|| Ok(socket.get(&path)?))
            }
            QueueCommand::Main => show(&socket.get(&format!("/queue/main.{extension}"))?),
        }
    }
}
