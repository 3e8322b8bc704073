//! The program `addon-operator`: understands its command line, and ends with a code that says how it went.

use std::process::ExitCode;

use addon_operator::cli::{self, Cli};
use addon_operator::settings::Environment;
use clap::Parser;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => cli::run(cli, &Environment::of_process()),
        Err(error) => {
            // Help goes to standard output, misuse to standard error; when that is gone, the code has to do.
            drop(error.print());
            if error.use_stderr() {
                ExitCode::from(cli::USAGE)
            } else {
                ExitCode::SUCCESS
            }
        }
    }
}
