//! `module enable` and `module disable`: edit the flag of a module, after a question.

use clap::Args;
use command::question::{ask, change, say};
use command::{Caller, CommandError, Target, print};

use super::module::status::{self, Status};
use crate::app::switch::Plan;

/// The arguments: the module and its ConfigMap.
#[derive(Debug, Args)]
pub(super) struct Switch {
    /// Name of the module
    module: String,
    /// Skip the question whether to go on
    #[arg(short, long)]
    yes: bool,
    /// Name of the ConfigMap [env: ADDON_OPERATOR_CONFIG_MAP] [default: addon-operator]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    config_map: Option<String>,
}

/// Whether the module is switched on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    On,
    Off,
}

impl Switch {
    pub(super) fn run(self, way: Way, target: &Target, caller: &Caller<'_>) -> Result<(), CommandError> {
        let needy = self.needy(target, caller)?;
        let Self {
            module,
            yes,
            config_map,
        } = self;
        let args = target.start_args(config_map);
        let plan = Plan::new(&args, caller.environment, &module, way == Way::On)?;
        let edit = plan.edit();
        if edit.is_done() {
            return print(&format!("{} is {} already", edit.key, edit.wanted()));
        }
        say(&describe(&plan))?;
        if way == Way::Off && !needy.is_empty() {
            say(&format!(
                "Modules that need it wait from then on: {}\n",
                needy.join(", ")
            ))?;
        }
        if !yes {
            ask()?;
        }
        plan.carry_out()?;
        print(&format!("{} is {} now", edit.key, edit.wanted()))
    }
}

impl Switch {
    /// The running modules that need this one, according to the operator in this pod. Without an operator, or if the
    /// flags name another cluster, none are known.
    fn needy(&self, target: &Target, caller: &Caller<'_>) -> Result<Vec<String>, CommandError> {
        if target.kube_config.is_some() || target.kube_context.is_some() {
            return Ok(Vec::new());
        }
        let Ok(modules) = status::read(&target.socket(caller)?) else {
            return Ok(Vec::new());
        };
        status::find(&modules, &self.module)?;
        let needs_it = |other: &&Status| other.enabled && other.depends_on.contains(&self.module);
        Ok(modules
            .iter()
            .filter(needs_it)
            .map(|other| other.name.clone())
            .collect())
    }
}

/// The change and its effects, for people.
fn describe(plan: &Plan) -> String {
    let change = change(&plan.place(), plan.edit());
    let Some((revision, objects)) = &plan.release else {
        return change;
    };
    let objects = objects.join("\n  ");
    format!(
        "{change}The module's delete hooks run, and its release is deleted with all that is in it (revision {revision}):\n  \
         {objects}\n"
    )
}
