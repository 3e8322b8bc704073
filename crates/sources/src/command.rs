//! `module source`: shows and steers the versions of modules that come from registries.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

mod edits;

use clap::{Args, Subcommand};
use command::outside::typed;
use command::question::{ask, change, say};
use command::socket::encode;
use command::watch::Watching;
use command::{Caller, CommandError, Output, Target, print, show};
use serde_json::Value;

use edits::{Deed, Plan, SourceEditError};

/// The arguments of `module source`.
#[derive(Debug, Args)]
pub struct Source {
    #[command(subcommand)]
    command: SourceCommand,
}

#[derive(Debug, Subcommand)]
enum SourceCommand {
    /// Show the version of each module that comes from a registry, the wanted version, and the reasons of a wait
    Status {
        /// Name of the module; without it all modules with a source
        module: Option<String>,
        #[command(flatten)]
        watching: Watching,
    },
    /// Make the operator ask the registry of a module at once, and show the status
    Check {
        /// Name of the module
        module: String,
    },
    /// Approve a version of a module: it skips mode, delay and the memory of its failures, but still waits for a window
    Approve {
        /// Name of the module
        module: String,
        /// Digest of the version; without it the available version
        digest: Option<String>,
        /// Withdraw the approval
        #[arg(long)]
        take_back: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Hold a version of a module until `module source resume`
    Pin {
        /// Name of the module
        module: String,
        /// Digest of the version to hold; without it the version in use
        digest: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Return to the version of a module that was in use before, and hold it
    Rollback {
        /// Name of the module
        module: String,
        #[command(flatten)]
        place: Place,
    },
    /// Follow the wanted version of a module again after a pin or a rollback
    Resume {
        /// Name of the module
        module: String,
        #[command(flatten)]
        place: Place,
    },
}

/// The flags that name the ConfigMap.
#[derive(Debug, Args)]
struct Place {
    /// Skip the question whether to go on
    #[arg(short, long)]
    yes: bool,
    /// Name of the ConfigMap [env: ADDON_OPERATOR_CONFIG_MAP] [default: addon-operator]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    config_map: Option<String>,
}

impl Source {
    /// Whether the command asks the operator and edits nothing.
    pub fn only_asks(&self) -> bool {
        matches!(self.command, SourceCommand::Status { .. } | SourceCommand::Check { .. })
    }

    pub fn run(self, target: &Target, output: Option<Output>, caller: &Caller<'_>) -> Result<(), CommandError> {
        match self.command {
            SourceCommand::Status { module, watching } => {
                let socket = target.socket(caller)?;
                let path = status_path(module.as_deref(), output.unwrap_or(Output::Text));
                watching.print(|| Ok(socket.get(&path)?))
            }
            SourceCommand::Check { module } => {
                let socket = target.socket(caller)?;
                socket.post_patiently("/source/check", &[("module", &module)])?;
                let path = status_path(Some(&module), output.unwrap_or(Output::Text));
                show(socket.get(&path)?.trim_end_matches('\n'))
            }
            SourceCommand::Approve {
                module,
                digest,
                take_back,
                place,
            } => {
                let deed = if take_back { Deed::TakeBack } else { Deed::Approve };
                let digest = given(digest, target, caller, &module, "available")?;
                place.carry_out(target, caller, &module, deed, &digest)
            }
            SourceCommand::Pin { module, digest, place } => {
                let digest = given(digest, target, caller, &module, "running")?;
                place.carry_out(target, caller, &module, Deed::Pin, &digest)
            }
            SourceCommand::Rollback { module, place } => {
                let digest = given(None, target, caller, &module, "former")?;
                place.carry_out(target, caller, &module, Deed::Pin, &digest)
            }
            SourceCommand::Resume { module, place } => place.carry_out(target, caller, &module, Deed::Resume, ""),
        }
    }
}

fn status_path(module: Option<&str>, output: Output) -> String {
    let form = output.extension();
    match module {
        Some(module) => format!("/source/{}/status.{form}", encode(module)),
        None => format!("/source/status.{form}"),
    }
}

/// The digest that the person gave, or the one that the operator reports under this key.
fn given(
    digest: Option<String>,
    target: &Target,
    caller: &Caller<'_>,
    module: &str,
    key: &'static str,
) -> Result<String, CommandError> {
    if let Some(digest) = digest {
        return Ok(digest);
    }
    let path = status_path(Some(module), Output::Json);
    let command = ["module", "source", "status", module, "-o", "json"];
    let text = typed::report(target, caller, &path, &command)?;
    let report: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let digest = report[module][key]["digest"].as_str().map(str::to_owned);
    digest.ok_or_else(|| {
        SourceEditError::NoVersion {
            module: module.to_owned(),
            key,
        }
        .into()
    })
}

impl Place {
    /// Shows the edit, asks the person, and writes it.
    fn carry_out(
        self,
        target: &Target,
        caller: &Caller<'_>,
        module: &str,
        deed: Deed,
        digest: &str,
    ) -> Result<(), CommandError> {
        let args = target.start_args(self.config_map);
        let plan = Plan::new(&args, caller.environment, module, deed, digest)?;
        let edit = plan.edit();
        if edit.is_done() {
            return print(&format!("the source of '{module}' says so already"));
        }
        say(&change(&plan.place(), edit))?;
        if !self.yes {
            ask()?;
        }
        plan.carry_out()?;
        print(&format!("the source of '{module}' is changed"))
    }
}
