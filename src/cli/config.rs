//! `config`: settings that can be changed while the operator runs.

use authoring::command::lint::Check;
use clap::{Args, Subcommand};
use command::{Caller, CommandError, Output, Target, show};

#[derive(Debug, Args)]
pub(super) struct Config {
    #[command(subcommand)]
    command: ConfigCommand,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// List the parameters and their values
    List {
        /// Format of the answer
        #[arg(short, long, value_enum, default_value = "text")]
        output: Output,
    },
    /// Check a ConfigMap as the operator would, without a cluster
    Check(Check),
    /// List the releases whose modules are held because their configuration is lost
    Lost {
        /// Continue these modules with the values of files and hooks alone
        #[arg(long)]
        confirm: bool,
        /// Format of the answer
        #[arg(short, long, value_enum, default_value = "text")]
        output: Output,
    },
    /// Set a parameter
    Set {
        /// Name of the parameter, for example log.level
        name: String,
        /// New value of the parameter, for example debug
        value: String,
        /// Time after which the old value returns, for example 10m; without it the new value stays
        duration: Option<String>,
    },
}

impl Config {
    /// The operator that the command asks, unless it only reads files.
    pub(super) fn asked(&self) -> Option<&Target> {
        match self.command {
            ConfigCommand::List { .. } | ConfigCommand::Lost { .. } | ConfigCommand::Set { .. } => Some(&self.target),
            ConfigCommand::Check(_) => None,
        }
    }

    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let socket = || self.target.socket(caller);
        match self.command {
            ConfigCommand::List { output } => show(&socket()?.get(&format!("/config/list.{}", output.extension()))?),
            ConfigCommand::Lost { confirm: true, .. } => show(&socket()?.post("/config/lost", &[])?),
            ConfigCommand::Lost { output, .. } => {
                show(&socket()?.get(&format!("/config/lost.{}", output.extension()))?)
            }
            ConfigCommand::Check(check) => check.run(caller),
            ConfigCommand::Set { name, value, duration } => {
                let mut fields = vec![("name", name.as_str()), ("value", value.as_str())];
                fields.extend(duration.as_deref().map(|duration| ("duration", duration)));
                show(&socket()?.post("/config/set", &fields)?)
            }
        }
    }
}
