//! `module upgrade`: the reason for which an upgrade is held, and a person's confirmation that lets it go on.

use std::fmt::Write as _;

use clap::Args;
use command::{Caller, CommandError, Target, print};

use super::confirm::{ConfirmError, HeldUpgrade, Reason};

/// The arguments: the module, and what its upgrade may do.
#[derive(Debug, Args)]
pub struct Upgrade {
    /// Name of the module
    module: String,
    /// Let the upgrade delete what it would delete now
    #[arg(long)]
    confirm: bool,
    /// Let the next upgrade delete this object and make it anew, because nobody can change a field of it; may be repeated
    #[arg(long, value_name = "KIND/NAME", conflicts_with = "confirm")]
    replace: Vec<String>,
    /// Let the upgrade be tried again that was taken back because its objects did not do their work
    #[arg(long, conflicts_with_all = ["confirm", "replace"])]
    again: bool,
}

impl Upgrade {
    pub fn run(self, target: &Target, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            module,
            confirm,
            replace,
            again,
        } = self;
        let args = target.start_args(None);
        let Some(upgrade) = HeldUpgrade::find(&args, caller.environment, &module)? else {
            if confirm || again || !replace.is_empty() {
                return Err(ConfirmError::NothingHeld { module }.into());
            }
            return print(&format!("No upgrade of module '{module}' is held"));
        };
        if again {
            upgrade.again()?;
            return print(&format!(
                "The upgrade of module '{module}' is tried again: the module's next try does it"
            ));
        }
        if !replace.is_empty() {
            upgrade.replace(&replace)?;
            let named = replace.join(", ");
            return print(&format!("{named} may be made anew once: the module's next try does it"));
        }
        if confirm {
            upgrade.confirm()?;
        }
        let (mut text, is_of_deletions) = (upgrade.text(), matches!(upgrade.reason, Reason::Deletions(_)));
        if confirm {
            text.push_str("\nIt is confirmed: the module's next try does it");
        } else if is_of_deletions {
            let _ = write!(
                text,
                "\nIt is held until `addon-operator module upgrade {module} --confirm`"
            );
        }
        print(&text)
    }
}
