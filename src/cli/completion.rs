//! What a shell needs to complete our commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{CommandError, print};

#[derive(Debug, Args)]
pub(super) struct Completion {
    /// Which shell
    #[arg(value_parser = clap::value_parser!(Shell))]
    shell: Shell,
}

impl Completion {
    /// Prints the script for the program with this command line.
    pub(super) fn run<C: CommandFactory>(&self) -> Result<(), CommandError> {
        let mut command = C::command();
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
