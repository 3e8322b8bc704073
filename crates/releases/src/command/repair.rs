//! `module release`: the damage among helm's records of a release, and its repair.

use clap::{Args, Subcommand};
use command::{Caller, CommandError, Hinted, Target, print};
use thiserror::Error;

use super::records::RecordRepair;

/// A repair that was confirmed, of records without damage.
#[derive(Debug, Error)]
#[error("the records of module '{module}' need no repair")]
struct NothingToRepair {
    module: String,
}

impl Hinted for NothingToRepair {}

/// The arguments of `module release`.
#[derive(Debug, Args)]
pub struct Release {
    #[command(subcommand)]
    command: ReleaseCommand,
}

#[derive(Debug, Subcommand)]
enum ReleaseCommand {
    /// Show the damage among helm's records of a release and its repair, or repair it; no object is touched
    Repair(Repair),
}

/// The arguments: the module and the confirmation.
#[derive(Debug, Args)]
struct Repair {
    /// Name of the module
    module: String,
    /// Do the repair
    #[arg(long)]
    confirm: bool,
}

impl Release {
    pub fn run(self, target: &Target, caller: &Caller<'_>) -> Result<(), CommandError> {
        let ReleaseCommand::Repair(Repair { module, confirm }) = self.command;
        let args = target.start_args(None);
        let found = RecordRepair::find(&args, caller.environment, &module)?;
        let Some(repair) = found else {
            return print(&format!("Module '{module}' has no release"));
        };
        if confirm && !repair.is_needed() {
            return Err(NothingToRepair { module }.into());
        }
        if confirm {
            repair.carry_out()?;
        }
        let mut lines = vec![format!("Records of release '{module}':")];
        lines.extend(repair.lines().into_iter().map(|line| format!("  {line}")));
        lines.extend(repair.left());
        lines.push(match (confirm, repair.is_needed()) {
            (true, _) => "It is done: the module's next try works with the records".to_owned(),
            (false, true) => {
                format!("Nothing is changed until `addon-operator module release repair {module} --confirm`")
            }
            (false, false) => "There is nothing to repair".to_owned(),
        });
        print(&lines.join("\n"))
    }
}
