//! Switches a module on or off for a person, by its flag in the ConfigMap.
//!
//! Objects that this would delete are shown before. A flag that another person has changed meanwhile is not written.

use command::edit::{self, Edit, EditError, config_map, failed};
use command::reach;
use helm_yaml::yaml;
use kube_access::Cluster;
use objects::key;
use releases::revisions;
use settings::{Environment, StartArgs};
use tokio::runtime::Runtime;

/// The planned edit and its effects.
#[derive(Debug)]
pub struct Plan {
    edit: Edit,
    config_map: String,
    cluster: Cluster,
    runtime: Runtime,
    /// The release that would be removed: its revision and its objects; none if no release would be removed.
    pub release: Option<(u32, Vec<String>)>,
}

impl Plan {
    /// Reads the cluster and plans the edit; changes nothing.
    pub fn new(args: &StartArgs, environment: &Environment, module: &str, wanted: bool) -> Result<Self, EditError> {
        let (module, settings, runtime, cluster) = reach::with_module(args, environment, module)?;
        let config_map = config_map(&settings);
        let data = edit::read(&runtime, &cluster, &config_map)?;
        let release = if wanted {
            None
        } else {
            runtime.block_on(release(&cluster, module.as_str()))?
        };
        let key = module.enabled_key();
        Ok(Self {
            edit: Edit {
                current: data.get(&key).cloned(),
                wanted: Some(if wanted { "true" } else { "false" }.to_owned()),
                key,
            },
            config_map,
            cluster,
            runtime,
            release,
        })
    }

    /// The edit of the flag.
    pub fn edit(&self) -> &Edit {
        &self.edit
    }

    /// The ConfigMap's name and namespace, for people.
    pub fn place(&self) -> String {
        edit::place(&self.cluster, &self.config_map)
    }

    /// Writes the flag, unless it was changed since the plan was made.
    pub fn carry_out(&self) -> Result<(), EditError> {
        self.edit.carry_out(&self.runtime, &self.cluster, &self.config_map)
    }
}

/// The revision and the objects of the release with this name, if a removal would delete it.
async fn release(cluster: &Cluster, name: &str) -> Result<Option<(u32, Vec<String>)>, EditError> {
    let newest = revisions::newest_revision(cluster, name).await.map_err(failed)?;
    let Some(revision) = newest.filter(|revision| revision.newest.ours && !revision.is_handed_over) else {
        return Ok(None);
    };
    let manifest = revisions::manifest(cluster, &revision).await.map_err(failed)?;
    // A manifest that is not YAML was never applied.
    let documents = yaml::documents_v2(&manifest).unwrap_or_default();
    let objects = key::keys_of(&documents).iter().map(ToString::to_string).collect();
    Ok(Some((revision.newest.revision, objects)))
}
