//! `module test`: plays the cases of modules and prints the results.

use std::path::PathBuf;

use clap::Args;

use super::{Caller, CommandError, print};
use crate::app::cases;

/// The arguments of `module test`.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Directory of a module, or of modules
    dir: PathBuf,
    /// Play only cases with this text in their names; without it all
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Write the results to this file, too, in the XML format of JUnit
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl Test {
    pub(super) fn run(&self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let report = cases::test(&self.dir, self.case.as_deref(), caller.environment)?;
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
            Err(CommandError::Failing)
        }
    }
}
