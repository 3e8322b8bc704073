//! `config`: what can be changed while the operator runs.

use clap::{Args, Subcommand};

use super::lint::Check;
use super::{Caller, CommandError, Output, Target, show};

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
        /// How to print it
        #[arg(short, long, value_enum, default_value = "text")]
        output: Output,
    },
    /// Say what the operator would say of a ConfigMap, without a cluster
    Check(Check),
    /// Name the releases that were made with a configuration which is lost, and whose modules are held for that
    Lost {
        /// Let them go on with what is left: the values of files and hooks
        #[arg(long)]
        confirm: bool,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "text")]
        output: Output,
    },
    /// Set a parameter
    Set {
        /// Its name, for example log.level
        name: String,
        /// Its new value, for example debug
        value: String,
        /// After this long the old value returns, for example 10m
        duration: Option<String>,
    },
}

impl Config {
    /// Whom it asks, unless it only looks at files.
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
            ConfigCommand::Check(check) => check.run(),
            ConfigCommand::Set { name, value, duration } => {
                let mut fields = vec![("name", name.as_str()), ("value", value.as_str())];
                fields.extend(duration.as_deref().map(|duration| ("duration", duration)));
                show(&socket()?.post("/config/set", &fields)?)
            }
        }
    }
}
