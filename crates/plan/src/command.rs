//! `module diff`: the difference of two revisions of a module's release, from helm's records.
//!
//! Must never ask the operator: the records are read with the rights of the person.

use clap::Args;
use command::paint::Paint;
use command::reach::{self, AskError};
use command::{Caller, CommandError, Hinted, Output, Target, pager, print};
use helm_yaml::yaml;
use serde_json::json;

use crate::document::ObjectPlan;
use crate::revisions::{Comparison, NotCompared, between};
use crate::text;

/// The arguments: the module and the revisions.
#[derive(Debug, Args)]
pub struct Diff {
    /// Name of the module
    module: String,
    /// Number of the revision, as `module history` lists it
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    revision: u32,
    /// Number of the revision to compare it with [default: the newest]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    with: Option<u32>,
}

impl Hinted for NotCompared {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoRevision { module, .. } => vec![format!("`addon-operator module history {module}` lists them")],
            Self::NoRelease { .. } | Self::Request(_) => Vec::new(),
        }
    }
}

impl Diff {
    pub fn run(self, target: &Target, output: Option<Output>, caller: &Caller<'_>) -> Result<(), CommandError> {
        let args = target.start_args(None);
        let (module, _, runtime, cluster) =
            reach::with_module(&args, caller.environment, &self.module).map_err(AskError::from)?;
        let compared = runtime.block_on(between(&cluster, module.as_str(), self.revision, self.with));
        let Comparison { from, to, objects } = compared.map_err(|error| match error {
            NotCompared::Request(error) => CommandError::from(AskError::from(*error)),
            error => CommandError::from(error),
        })?;
        let document = json!({"module": module.as_str(), "from": from, "to": to, "objects": objects});
        match output.unwrap_or(Output::Text) {
            Output::Json => print(&document.to_string()),
            Output::Yaml => print(&yaml::to_string(&document)),
            Output::Text | Output::Wide => {
                let text = shown(from, to, &objects, Paint::of(caller.environment));
                pager::show(&text, caller.environment)
            }
        }
    }
}

fn shown(from: u32, to: u32, changes: &[ObjectPlan], paint: Paint) -> String {
    if changes.is_empty() {
        return format!("no object differs between revision {from} and revision {to}\n");
    }
    format!("revision {from} → revision {to}\n{}", text::objects(changes, paint))
}
