//! `global`: what is about no single module.

use clap::{Args, Subcommand};

use super::{Caller, CommandError, Output, Target, show};

#[derive(Debug, Args)]
pub(super) struct Global {
    #[command(subcommand)]
    command: GlobalCommand,
    #[command(flatten)]
    pub(super) target: Target,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "yaml", global = true)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum GlobalCommand {
    /// List the global hooks
    List,
    /// Print the global values in force
    Values,
    /// Print the global section of the ConfigMap
    Config,
    /// Print what hooks changed in the global values
    Patches,
    /// Print what global hooks know of the cluster
    Snapshots,
}

impl Global {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let document = match self.command {
            GlobalCommand::List => "list",
            GlobalCommand::Values => "values",
            GlobalCommand::Config => "config",
            GlobalCommand::Patches => "patches",
            GlobalCommand::Snapshots => "snapshots",
        };
        let path = format!("/global/{document}.{}", self.output.extension());
        show(&self.target.socket(caller)?.get(&path)?)
    }
}
