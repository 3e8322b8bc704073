//! The common parts of all commands: the flags that name an operator, the connection to it, an edit of its ConfigMap,
//! the question before a change, and the output to the terminal.
//!
//! ```text
//!    channel · sources · releases · authoring · the program's own      each with its commands
//!        │ Target, Caller: flags and environment
//!        ├── socket ────────▶ the debug socket of an operator here
//!        ├── outside ───────▶ the same command in the pod of an operator elsewhere
//!        ├── reach ─────────▶ the cluster, without an operator
//!        ├── edit ──────────▶ one key of the ConfigMap, shown before, never over the text of another writer
//!        ├── question ──────▶ the person
//!        └── print, table, watch ──▶ the terminal;  CommandError: why it failed, with hints
//! ```
//!
//! Must never know the purpose of a command: each capability has its own commands.
//!
//! Begin with [`Target`], then [`edit`].
#![expect(clippy::doc_markdown, reason = "the doc comments of flags are the text of --help")]

pub mod edit;
mod failure;
pub mod outside;
pub mod pager;
pub mod paint;
pub mod question;
pub mod reach;
pub mod socket;
pub mod table;
pub mod watch;

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use settings::{Environment, Program, StartArgs};

pub use failure::{CommandError, Hinted};
use outside::Outside;
use socket::Socket;

/// The flags that name the running operator.
#[derive(Debug, Args)]
pub struct Target {
    /// Socket of the running operator [env: DEBUG_UNIX_SOCKET] [default: /var/run/PROGRAM/debug.socket]
    #[arg(long, value_name = "FILE", global = true)]
    pub debug_unix_socket: Option<String>,
    /// Show secrets in values, snapshots and charts; without it they are masked
    #[arg(long, global = true)]
    pub show_secrets: bool,
    /// Namespace of the operator. With a flag of this group the command asks the operator's pod through the API server
    /// [default: the kubeconfig's]
    #[arg(long, global = true, help_heading = "Cluster")]
    pub namespace: Option<String>,
    /// Name of the operator's pod; without it the one with the operator's labels
    #[arg(long, value_name = "NAME", global = true, help_heading = "Cluster")]
    pub pod: Option<String>,
    /// Path of the kubeconfig file [env: KUBE_CONFIG, then KUBECONFIG]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Cluster")]
    pub kube_config: Option<String>,
    /// Context of the kubeconfig [env: KUBE_CONTEXT] [default: its current context]
    #[arg(long, value_name = "NAME", global = true, help_heading = "Cluster")]
    pub kube_context: Option<String>,
}

/// The output format. The variants need no help text of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Text,
    Json,
    Yaml,
    Wide,
}

impl Output {
    /// The name of the format for the operator; the widest table is requested as text.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Text | Self::Wide => "text",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// The name by which the program was called, and its environment.
#[derive(Debug)]
pub struct Caller<'a> {
    pub program: Program,
    /// Whether kubectl has started the program. Then the operator is that of the kubeconfig's cluster.
    pub is_plugin: bool,
    pub environment: &'a Environment,
}

impl Caller<'_> {
    /// The place of the operator that a command asks, if it runs elsewhere.
    pub fn place(&self, target: &Target) -> Option<Outside> {
        let is_elsewhere = self.is_plugin && target.debug_unix_socket.is_none();
        target.outside().or_else(|| is_elsewhere.then(Outside::default))
    }

    /// A text with our commands as this person types them.
    pub fn worded(&self, text: &str) -> String {
        if self.is_plugin {
            text.replace("`addon-operator ", "`kubectl addons ")
        } else {
            text.to_owned()
        }
    }
}

impl Target {
    /// The start arguments that lead to the same cluster, for commands that edit its ConfigMap themselves.
    pub fn start_args(&self, config_map: Option<String>) -> StartArgs {
        let mut args = StartArgs {
            namespace: self.namespace.clone(),
            config_map,
            ..StartArgs::default()
        };
        args.shared.kube_config.clone_from(&self.kube_config);
        args.shared.kube_context.clone_from(&self.kube_context);
        args
    }

    /// The place of the operator, if flags name an operator that runs elsewhere.
    pub fn outside(&self) -> Option<Outside> {
        let outside = Outside {
            namespace: self.namespace.clone(),
            pod: self.pod.clone(),
            kube_config: self.kube_config.clone(),
            kube_context: self.kube_context.clone(),
        };
        (outside != Outside::default()).then_some(outside)
    }

    pub fn socket(&self, caller: &Caller<'_>) -> Result<Socket, CommandError> {
        let flag = self.debug_unix_socket.as_deref();
        let path = settings::debug_socket(caller.program, flag, caller.environment)?;
        Ok(Socket::new(path, self.show_secrets))
    }
}

/// Prints the operator's answer with an additional line break, as the original does.
pub fn show(answer: &str) -> Result<(), CommandError> {
    print(&format!("{answer}\n"))
}

/// Prints data, with a line break at its end.
pub fn print(data: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let end = if data.is_empty() || data.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    write!(out, "{data}{end}")
        .and_then(|()| out.flush())
        .map_err(CommandError::Print)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_of_kubectl_names_commands_as_kubectl_does() {
        let environment = Environment::default();
        let caller = |is_plugin| Caller {
            program: Program::AddonOperator,
            is_plugin,
            environment: &environment,
        };
        let hint = "`addon-operator why web` tells why, and the addon-operator goes on";
        assert_eq!(caller(false).worded(hint), hint);
        let worded = "`kubectl addons why web` tells why, and the addon-operator goes on";
        assert_eq!(caller(true).worded(hint), worded);
    }
}
