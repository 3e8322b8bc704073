//! `object health`: the health of objects that are given as text, for hooks and scripts.
//!
//! Must never ask a cluster.

mod input;
mod report;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use command::paint::{Paint, columns};
use command::{Caller, CommandError, Hinted, print};
use jiff::Timestamp;

use input::InputError;

/// `object`: questions about objects that are given as text.
#[derive(Debug, Args)]
pub struct Object {
    #[command(subcommand)]
    command: ObjectCommand,
}

#[derive(Debug, Subcommand)]
enum ObjectCommand {
    /// Print the health of objects, by the rules by which modules are judged, without a cluster
    #[command(after_help = "Exit code 0: all objects were read, whatever their health.")]
    Health(Health),
}

#[derive(Debug, Args)]
struct Health {
    /// Files with objects as `kubectl get` prints them, JSON or YAML, - for standard input [default: standard input]
    files: Vec<PathBuf>,
    /// File with objects that have to be there, absent ones are printed, may be given again [default: none]
    #[arg(long, value_name = "FILE")]
    expected: Vec<PathBuf>,
    /// File with the pods, ReplicaSets and Events that tell the cause, may be given again [default: none]
    #[arg(long, value_name = "FILE")]
    around: Vec<PathBuf>,
    /// Format of the answer
    #[arg(short, long, value_enum, default_value = "text")]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

impl Hinted for InputError {}

impl Object {
    pub fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let ObjectCommand::Health(health) = self.command;
        health.run(caller)
    }
}

impl Health {
    fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            mut files,
            expected,
            around,
            output,
        } = self;
        if files.is_empty() {
            files.push(PathBuf::from(input::STANDARD));
        }
        let objects = input::objects(&files)?;
        let (expected, around) = (input::objects(&expected)?, input::objects(&around)?);
        let rows = report::judged(&objects, &expected, &around, Timestamp::now());
        match output {
            Form::Text => print(&report::table(rows).fitted(Paint::of(caller.environment), columns())),
            Form::Json => print(&serde_json::to_string(&rows).expect("rows are plain texts")),
        }
    }
}
