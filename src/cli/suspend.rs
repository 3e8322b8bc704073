//! `module suspend` and `module resume`: edit the key by which people maintain the objects of a module.
//!
//! Neither deletes anything, so that neither asks. Must never change a key that another person has changed meanwhile.

use clap::Args;
use command::edit::{self, Edit, config_map};
use command::question::{change, say};
use command::{Caller, CommandError, Target, print, reach};

/// The value with which people maintain the objects.
const SUSPENDED: &str = "NoResourceReconciliation";

/// The arguments: the module and its ConfigMap.
#[derive(Debug, Args)]
pub(super) struct Suspend {
    /// Name of the module
    module: String,
    /// Name of the ConfigMap [env: ADDON_OPERATOR_CONFIG_MAP] [default: addon-operator]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    config_map: Option<String>,
}

impl Suspend {
    /// Writes the key, or removes it if the operator is to maintain the objects again.
    pub(super) fn run(self, is_to_end: bool, target: &Target, caller: &Caller<'_>) -> Result<(), CommandError> {
        let args = target.start_args(self.config_map);
        let (module, settings, runtime, cluster) = reach::with_module(&args, caller.environment, &self.module)?;
        let config_map = config_map(&settings);
        let key = module.maintenance_key();
        let edit = Edit {
            current: edit::read(&runtime, &cluster, &config_map)?.get(&key).cloned(),
            wanted: (!is_to_end).then(|| SUSPENDED.to_owned()),
            key,
        };
        if !edit.is_done() {
            say(&change(&edit::place(&cluster, &config_map), &edit))?;
            edit.carry_out(&runtime, &cluster, &config_map)?;
        }
        print(&if is_to_end {
            format!("module '{module}' is maintained by the operator")
        } else {
            format!("module '{module}' is suspended: its hooks run, and its objects are left as they are")
        })
    }
}
