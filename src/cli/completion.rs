//! Scripts by which a shell completes our commands and flags.

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
        if self.shell != Shell::Bash {
            return print(&script(self.shell, &mut command, &name));
        }
        // The script for bash looks for its parts under two spellings of a dash and finds none of them, so it is made
        // for a name without one; only the lines that bind it to the program say the name.
        let plain = name.replace('-', "_");
        let script = script(self.shell, &mut command, &plain);
        print(&script.replace(&format!(" {plain}\n"), &format!(" {name}\n")))
    }
}

fn script(shell: Shell, command: &mut clap::Command, name: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
