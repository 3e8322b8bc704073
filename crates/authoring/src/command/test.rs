//! `module test` and `global test`: play the cases of modules or of global hooks, and print the results.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

use std::path::PathBuf;

use clap::Args;
use command::{Caller, CommandError, print};

use super::Unsound;
use crate::cases::{self, Tried};

/// The arguments of `module test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Directory of a module, or of modules
    dir: PathBuf,
    #[command(flatten)]
    choice: Choice,
}

/// The arguments of `global test`.
#[derive(Debug, Args)]
pub struct GlobalTest {
    /// Directory of global hooks
    dir: PathBuf,
    /// Modules directory whose values.yaml has the global values; without it there are none
    #[arg(long, value_name = "DIR")]
    modules: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
}

#[derive(Debug, Args)]
struct Choice {
    /// Play only cases with this text in their names; without it all
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Write the results to this file, too, in the XML format of JUnit
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl Test {
    pub fn run(&self, caller: &Caller<'_>) -> Result<(), CommandError> {
        self.choice.play(Tried::Modules(&self.dir), caller)
    }
}

impl GlobalTest {
    pub fn run(&self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let tried = Tried::GlobalHooks {
            dir: &self.dir,
            modules: self.modules.as_deref(),
        };
        self.choice.play(tried, caller)
    }
}

impl Choice {
    fn play(&self, tried: Tried<'_>, caller: &Caller<'_>) -> Result<(), CommandError> {
        let report = cases::test(tried, self.case.as_deref(), caller.environment)?;
        if let Some(file) = &self.junit {
            fs_err::write(file, report.junit()).map_err(|source| CommandError::Write {
                file: file.clone(),
                source,
            })?;
        }
        print(&report.to_string())?;
        if report.is_good() {
            Ok(())
        } else {
            Err(Unsound::Failing.into())
        }
    }
}
