//! The program `addon-operator`: parses its command line, runs the command, and ends with its exit code.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use addon_operator::cli::{self, HooksCli};
use addon_operator::{heap, hosts};
use command::outside::typed::PLUGIN;
use settings::Environment;

fn main() -> ExitCode {
    heap::settle();
    hosts::settle();
    let environment = Environment::of_process();
    let called = std::env::args_os().next();
    let name = called.as_deref().and_then(|program| Path::new(program).file_name());
    if name == Some(OsStr::new(cli::OF_HOOKS)) {
        cli::parse::<HooksCli>().map_or_else(|error| misunderstood(&error, name), |cli| cli.run(&environment))
    } else {
        let is_plugin = name == Some(OsStr::new(PLUGIN));
        let parsed = if is_plugin { cli::parse_plugin() } else { cli::parse() };
        parsed.map_or_else(
            |error| misunderstood(&error, name),
            |cli| cli::run(cli, is_plugin, &environment),
        )
    }
}

/// Prints help to standard output and errors to standard error. If that fails, only the exit code is left.
fn misunderstood(error: &clap::Error, name: Option<&OsStr>) -> ExitCode {
    drop(error.print());
    let words = std::env::args_os().skip(1);
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(hint) = cli::hint(error, name, &words) {
        drop(writeln!(std::io::stderr(), "hint: {hint}"));
    }
    if error.use_stderr() {
        ExitCode::from(cli::USAGE)
    } else {
        ExitCode::SUCCESS
    }
}
