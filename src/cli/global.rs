//! `global`: what is about no single module.

use clap::{Args, Subcommand};

use super::{Caller, CommandError, Output, Target, show};

#[derive(Debug, Args)]
pub(super) struct Global {
    #[command(subcommand)]
    command: GlobalCommand,
    #[command(flatten)]
    pub(super) target: Target,
    /// How to print it [default: yaml; of patches: json]
    #[arg(short, long, value_enum, global = true)]
    output: Option<Output>,
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
        let (document, usual) = match self.command {
            GlobalCommand::List => ("list", Output::Yaml),
            GlobalCommand::Values => ("values", Output::Yaml),
            GlobalCommand::Config => ("config", Output::Yaml),
            // As the original: scripts read them with jq.
            GlobalCommand::Patches => ("patches", Output::Json),
            GlobalCommand::Snapshots => ("snapshots", Output::Yaml),
        };
        let form = self.output.unwrap_or(usual).extension();
        let path = format!("/global/{document}.{form}");
        show(&self.target.socket(caller)?.get(&path)?)
    }
}
