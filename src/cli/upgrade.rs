//! `module upgrade`: the objects that a held upgrade would delete, and its confirmation.

use clap::Args;

use super::{Caller, CommandError, Target, print};
use crate::app::confirm::HeldUpgrade;

/// The arguments: the module and the confirmation.
#[derive(Debug, Args)]
pub(super) struct Upgrade {
    /// Name of the module
    module: String,
    /// Let the upgrade delete what it would delete now
    #[arg(long)]
    confirm: bool,
}

impl Upgrade {
    pub(super) fn run(self, target: &Target, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self { module, confirm } = self;
        let args = target.start_args(None);
        let Some(upgrade) = HeldUpgrade::find(&args, caller.environment, &module)? else {
            if confirm {
                return Err(CommandError::NothingHeld { module });
            }
            return print(&format!("No upgrade of module '{module}' is held"));
        };
        if confirm {
            upgrade.confirm()?;
        }
        let held = &upgrade.held;
        let mut lines = vec![format!(
            "The upgrade of module '{module}' deletes {} of {} objects:",
            held.taken, held.of
        )];
        lines.extend(held.takes.iter().map(|object| format!("  {object}")));
        if held.taken > held.takes.len() {
            lines.push(format!("  and {} more", held.taken - held.takes.len()));
        }
        lines.push(if confirm {
            "It is confirmed: the module's next try does it".to_owned()
        } else {
            format!("It is held until `addon-operator module upgrade {module} --confirm`")
        });
        print(&lines.join("\n"))
    }
}
