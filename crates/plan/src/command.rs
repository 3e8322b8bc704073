//! `module diff`: the difference of two revisions of a module's release, from helm's records.
//!
//! Must never ask the operator: the records are read with the rights of the person.

use clap::Args;
use command::paint::Paint;
use command::reach::{self, AskError};
use command::{Caller, CommandError, Hinted, Output, Target, print};
use helm_yaml::yaml;
use kube_access::Cluster;
use releases::revisions::{self, Revision, history};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::document::ObjectPlan;
use crate::revisions::compared;
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

/// Why two revisions cannot be compared.
#[derive(Debug, Error)]
enum DiffError {
    #[error("module '{module}' has no release")]
    NoRelease { module: String },
    #[error("the release of module '{module}' has no record of revision {revision}")]
    NoRevision { module: String, revision: u32 },
    #[error("the manifest of revision {revision} cannot be read: {problem}")]
    Manifest { revision: u32, problem: String },
}

impl Hinted for DiffError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoRevision { module, .. } => vec![format!("`addon-operator module history {module}` lists them")],
            Self::NoRelease { .. } | Self::Manifest { .. } => Vec::new(),
        }
    }
}

impl Diff {
    pub fn run(self, target: &Target, output: Option<Output>, caller: &Caller<'_>) -> Result<(), CommandError> {
        let args = target.start_args(None);
        let (module, _, runtime, cluster) =
            reach::with_module(&args, caller.environment, &self.module).map_err(AskError::from)?;
        let all = runtime
            .block_on(history::all(&cluster, module.as_str()))
            .map_err(AskError::from)?;
        let (from, to) = self.chosen(&all)?;
        let before = documents(&runtime, &cluster, from)?;
        let after = documents(&runtime, &cluster, to)?;
        let changes = compared(before, after, cluster.namespace());
        let (from, to) = (from.newest.revision, to.newest.revision);
        let document = json!({"module": module.as_str(), "from": from, "to": to, "objects": changes});
        match output.unwrap_or(Output::Text) {
            Output::Json => print(&document.to_string()),
            Output::Yaml => print(&yaml::to_string(&document)),
            Output::Text | Output::Wide => print(&shown(from, to, &changes, Paint::of(caller.environment))),
        }
    }

    /// The revisions to compare, the named one first. `all` has the newest one first.
    fn chosen<'a>(&self, all: &'a [Revision]) -> Result<(&'a Revision, &'a Revision), DiffError> {
        let module = &self.module;
        let newest = all
            .first()
            .ok_or_else(|| DiffError::NoRelease { module: module.clone() })?;
        let find = |revision: u32| {
            let found = all.iter().find(|one| one.newest.revision == revision);
            found.ok_or_else(|| DiffError::NoRevision {
                module: module.clone(),
                revision,
            })
        };
        Ok((find(self.revision)?, self.with.map_or(Ok(newest), find)?))
    }
}

/// The objects that a revision's record holds.
fn documents(runtime: &Runtime, cluster: &Cluster, revision: &Revision) -> Result<Vec<Value>, CommandError> {
    let manifest = runtime
        .block_on(revisions::manifest(cluster, revision))
        .map_err(AskError::from)?;
    Ok(yaml::documents_v2(&manifest).map_err(|error| DiffError::Manifest {
        revision: revision.newest.revision,
        problem: error.to_string(),
    })?)
}

fn shown(from: u32, to: u32, changes: &[ObjectPlan], paint: Paint) -> String {
    if changes.is_empty() {
        return format!("no object differs between revision {from} and revision {to}\n");
    }
    format!("revision {from} → revision {to}\n{}", text::objects(changes, paint))
}
