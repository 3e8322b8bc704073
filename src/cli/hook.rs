//! `hook`: hooks by name, their snapshots of the cluster, and records of their runs.

mod records;

use clap::{Args, Subcommand};
use command::{Caller, CommandError, Output, Target, show};

use self::records::{Record, Records, Replay};

#[derive(Debug, Args)]
pub(super) struct Hook {
    #[command(subcommand)]
    command: HookCommand,
    #[command(flatten)]
    target: Target,
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
    /// Record the next runs of a hook: the files that it is given, and those that it writes
    Record(Record),
    /// List the records of hook runs, or print one
    Records(Records),
    /// Run a recorded hook again with the same files, and compare the results; needs no operator and no cluster
    Replay(Replay),
}

impl Hook {
    /// The operator that the command asks, unless it only reads a file.
    pub(super) fn asked(&self) -> Option<&Target> {
        match self.command {
            HookCommand::List | HookCommand::Snapshot { .. } | HookCommand::Record(_) | HookCommand::Records(_) => {
                Some(&self.target)
            }
            HookCommand::Replay(_) => None,
        }
    }

    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let extension = self.output.extension();
        let path = match self.command {
            HookCommand::List => format!("/hook/list.{extension}"),
            HookCommand::Snapshot { name } => format!("/hook/{name}/snapshots.{extension}"),
            HookCommand::Record(record) => return record.run(&self.target.socket(caller)?),
            HookCommand::Records(records) => {
                return records.run(&self.target.socket(caller)?, self.output, caller);
            }
            HookCommand::Replay(replay) => return replay.run(caller),
        };
        show(&self.target.socket(caller)?.get(&path)?)
    }
}
