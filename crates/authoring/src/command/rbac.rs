//! `rbac`: the rights that modules need.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use command::{Caller, CommandError, print};

use super::Unsound;
use crate::findings::{self, Weight};
use crate::rights::{self, Form, Question};

/// The default namespace of releases.
const NAMESPACE: &str = "addon-operator";
/// The default directory of global hooks.
const GLOBAL_HOOKS_DIR: &str = "global-hooks";

#[derive(Debug, Args)]
pub struct Rbac {
    #[command(subcommand)]
    command: RbacCommand,
}

#[derive(Debug, Subcommand)]
enum RbacCommand {
    /// Print the rights that modules need, as values for the operator's chart
    Generate(Generate),
}

#[derive(Debug, Args)]
struct Generate {
    /// Directories with modules, joined by colons
    modules_dir: String,
    /// Directory with global hooks [default: global-hooks, if it is there]
    #[arg(long, value_name = "DIR")]
    global_hooks_dir: Option<PathBuf>,
    /// Name of a module whose rights are printed, may be given again [default: all modules of the directories]
    #[arg(long = "module", value_name = "NAME")]
    modules: Vec<String>,
    /// Namespace of the releases
    #[arg(long, value_name = "NAME", default_value = NAMESPACE)]
    namespace: String,
    /// File with values for charts that need more than their own to render, by `global` and module name
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Format of the answer
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Data,
}

/// The formats that the chart reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Data {
    Yaml,
    Json,
}

impl Rbac {
    pub fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let RbacCommand::Generate(generate) = self.command;
        generate.run(caller)
    }
}

impl Generate {
    fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let usual = || Some(PathBuf::from(GLOBAL_HOOKS_DIR)).filter(|dir| dir.is_dir());
        let question = Question {
            modules_dirs: self.modules_dir.split(':').map(PathBuf::from).collect(),
            global_hooks_dir: self.global_hooks_dir.or_else(usual),
            only: self.modules,
            namespace: self.namespace,
            values: self.values,
        };
        let answer = rights::derive(&question, caller.environment)?;
        // The remarks go to standard error, so that the data can be redirected to a file.
        let told = findings::shown(&answer.findings, findings::Form::Text);
        drop(io::stderr().lock().write_all(told.as_bytes()));
        if answer.findings.iter().any(|found| found.weight == Weight::Error) {
            return Err(Unsound::Found.into());
        }
        let form = match self.output {
            Data::Yaml => Form::Yaml,
            Data::Json => Form::Json,
        };
        print(&rights::shown(&answer, form))
    }
}
