//! Scripts that complete commands and flags in a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use command::{CommandError, print};

#[derive(Debug, Args)]
pub(super) struct Completion {
    /// Which shell
    #[arg(value_parser = clap::value_parser!(Shell))]
    shell: Shell,
}

impl Completion {
    /// Prints the completion script for the program with this command line.
    pub(super) fn run<C: CommandFactory>(&self) -> Result<(), CommandError> {
        let mut command = C::command();
        let name = command.get_name().to_owned();
        if self.shell != Shell::Bash {
            return print(&script(self.shell, &mut command, &name));
        }
        // The generator for bash spells a dash in two ways, so that parts of its script do not match. So the script is
        // made for a name without a dash, and only the lines that bind it to the program get the real name.
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
