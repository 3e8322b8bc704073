//! `module`: which there are, where each stands and why, what each was given.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Deserialize;

use super::socket::{Socket, SocketError, encode};
use super::table::Table;
use super::{Caller, CommandError, Output, Target, print, show};

#[derive(Debug, Args)]
pub(super) struct Module {
    #[command(subcommand)]
    command: ModuleCommand,
    #[command(flatten)]
    target: Target,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "yaml", global = true)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum ModuleCommand {
    /// List the enabled modules; `-o wide`: all modules, where they stand and what they wait for
    List,
    /// Say where a module stands and what it waits for
    Why {
        /// Name of the module
        module: String,
    },
    /// Print the values in force for a module
    Values(Section),
    /// Print the module's section of the ConfigMap
    Config(Section),
    /// Print what the module's chart renders to now
    Render(Render),
    /// Print what hooks changed in a module's values
    Patches(Named),
    /// Print what a module's hooks know of the cluster
    Snapshots(Named),
}

#[derive(Debug, Args)]
struct Named {
    /// Name of the module
    module: String,
}

#[derive(Debug, Args)]
struct Section {
    /// Name of the module
    module: String,
    /// With the global section beside the module's
    #[arg(short, long)]
    global: bool,
}

#[derive(Debug, Args)]
struct Render {
    /// Name of the module
    module: String,
    /// Also if it is no YAML
    #[arg(long)]
    debug: bool,
    /// How it differs from what is in the cluster, instead
    #[arg(long)]
    diff: bool,
}

/// A module as the socket reports it.
#[derive(Debug, Deserialize)]
struct Status {
    name: String,
    order: u32,
    enabled: bool,
    enabled_by: String,
    state: String,
    waits_for: String,
    error: Option<String>,
    failures: u32,
}

impl Module {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            command,
            target,
            output,
        } = self;
        let socket = target.socket(caller)?;
        let form = output.extension();
        let answer = match command {
            ModuleCommand::List if output == Output::Wide => {
                let modules: Vec<Status> = socket.read("/module/status.json")?;
                return print(&table(&modules));
            }
            ModuleCommand::List => socket.get(&format!("/module/list.{form}")),
            ModuleCommand::Why { module } => {
                let modules: Vec<Status> = socket.read("/module/status.json")?;
                let found = modules.into_iter().find(|status| status.name == module);
                return print(&why(&found.ok_or(CommandError::NoSuchModule { name: module })?));
            }
            ModuleCommand::Values(section) => section.read(&socket, "values", form),
            ModuleCommand::Config(section) => section.read(&socket, "config", form),
            ModuleCommand::Render(render) => render.read(&socket),
            ModuleCommand::Patches(named) => named.read(&socket, "patches", form),
            ModuleCommand::Snapshots(named) => named.read(&socket, "snapshots", form),
        };
        show(&answer?)
    }
}

impl Named {
    fn read(&self, socket: &Socket, document: &str, form: &str) -> Result<String, SocketError> {
        let module = encode(&self.module);
        socket.get(&format!("/module/{module}/{document}.{form}"))
    }
}

impl Section {
    fn read(&self, socket: &Socket, document: &str, form: &str) -> Result<String, SocketError> {
        let Self { module, global } = self;
        let global = if *global { "?global=true" } else { "" };
        let module = encode(module);
        socket.get(&format!("/module/{module}/{document}.{form}{global}"))
    }
}

impl Render {
    fn read(&self, socket: &Socket) -> Result<String, SocketError> {
        let Self { module, debug, diff } = self;
        let module = encode(module);
        socket.get_patiently(&format!("/module/{module}/render?debug={debug}&diff={diff}"))
    }
}

fn table(modules: &[Status]) -> String {
    if modules.is_empty() {
        return "No modules.\n".to_owned();
    }
    let mut table = Table::new(["NAME", "ORDER", "ENABLED", "BY", "STATE", "WAITS FOR"]);
    for status in modules {
        let Status {
            name,
            order,
            enabled,
            enabled_by,
            state,
            waits_for,
            error: _,
            failures: _,
        } = status;
        let enabled = if *enabled { "yes" } else { "no" };
        table.row([
            name,
            &order.to_string(),
            enabled,
            enabled_by,
            state,
            one_line(waits_for),
        ]);
    }
    table.to_string()
}

fn why(status: &Status) -> String {
    let Status {
        name,
        order,
        enabled,
        enabled_by,
        state,
        waits_for,
        error,
        failures,
    } = status;
    let enabled = if *enabled { "yes" } else { "no" };
    let mut text = format!("module: {name}\norder: {order}\nenabled: {enabled}, by {enabled_by}\nstate: {state}\n");
    if !waits_for.is_empty() {
        let _ = writeln!(text, "waits for: {waits_for}");
    }
    if let Some(error) = error {
        let _ = writeln!(text, "last failure, {failures} in a row: {error}");
    }
    text
}

/// The first line: a table has one line a row, the rest is told by `why`.
fn one_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &str, waits_for: &str) -> Status {
        Status {
            name: name.into(),
            order: 20,
            enabled: true,
            enabled_by: "KubeConfig".into(),
            state: "Releasing".into(),
            waits_for: waits_for.into(),
            error: Some("no such chart".into()),
            failures: 3,
        }
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let text = table(&[status("a-long-name", "helm\nmore"), status("b", "")]);
        let expected = "\
NAME         ORDER  ENABLED  BY          STATE      WAITS FOR
a-long-name  20     yes      KubeConfig  Releasing  helm
b            20     yes      KubeConfig  Releasing
";
        assert_eq!(text, expected);
    }

    #[test]
    fn why_tells_everything() {
        assert_eq!(
            why(&status("one", "the next try in 5s")),
            "module: one\norder: 20\nenabled: yes, by KubeConfig\nstate: Releasing\nwaits for: the next try in 5s\n\
             last failure, 3 in a row: no such chart\n"
        );
    }
}
