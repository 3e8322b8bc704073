//! `global`: commands that are about no single module.

use authoring::command::test::GlobalTest;
use clap::{Args, Subcommand};
use command::{Caller, CommandError, Output, Target, show};

#[derive(Debug, Args)]
pub(super) struct Global {
    #[command(subcommand)]
    command: GlobalCommand,
    #[command(flatten)]
    target: Target,
    /// Format of the answer [default: yaml; of patches: json]
    #[arg(short, long, value_enum, global = true)]
    output: Option<Output>,
}

#[derive(Debug, Subcommand)]
enum GlobalCommand {
    /// List the global hooks
    List,
    /// Print the effective global values
    Values,
    /// Print the global section of the ConfigMap
    Config,
    /// Print the patches of hooks to the global values
    Patches,
    /// Print the snapshots of the global hooks
    Snapshots,
    /// Play the cases in the directory tests of global hooks: hooks, values and schemas, without a cluster
    Test(GlobalTest),
}

impl Global {
    /// The operator that the command asks, unless it needs none.
    pub(super) fn asked(&self) -> Option<&Target> {
        match self.command {
            GlobalCommand::Test(_) => None,
            GlobalCommand::List
            | GlobalCommand::Values
            | GlobalCommand::Config
            | GlobalCommand::Patches
            | GlobalCommand::Snapshots => Some(&self.target),
        }
    }

    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let (document, usual) = match self.command {
            GlobalCommand::List => ("list", Output::Yaml),
            GlobalCommand::Values => ("values", Output::Yaml),
            GlobalCommand::Config => ("config", Output::Yaml),
            // JSON by default as in the original, because scripts read it with jq.
            GlobalCommand::Patches => ("patches", Output::Json),
            GlobalCommand::Snapshots => ("snapshots", Output::Yaml),
            GlobalCommand::Test(test) => return test.run(caller),
        };
        let form = self.output.unwrap_or(usual).extension();
        let path = format!("/global/{document}.{form}");
        show(&self.target.socket(caller)?.get(&path)?)
    }
}
