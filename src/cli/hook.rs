//! `hook`: hooks by name, and their snapshots of the cluster.

use clap::{Args, Subcommand};

use super::{Caller, CommandError, Output, Target, show};

#[derive(Debug, Args)]
pub(super) struct Hook {
    #[command(subcommand)]
    command: HookCommand,
    #[command(flatten)]
    pub(super) target: Target,
    /// Format of the answer
    #[arg(short, long, value_enum, default_value = "text", global = true)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// List the hooks
    List,
    /// Show the snapshots that a hook would get if it ran now
    Snapshot {
        /// Name of the hook, as in the answer of `hook list`
        name: String,
    },
}

impl Hook {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let extension = self.output.extension();
        let path = match self.command {
            HookCommand::List => format!("/hook/list.{extension}"),
            HookCommand::Snapshot { name } => format!("/hook/{name}/snapshots.{extension}"),
        };
        show(&self.target.socket(caller)?.get(&path)?)
    }
}
