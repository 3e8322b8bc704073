//! An edit of one key of the ConfigMap by a command: it is shown first, then written.
//!
//! Must never overwrite a text that another writer has put under the key since it was shown.

use std::collections::BTreeMap;

use addon_core::failure::Failure;
use addon_core::operator::event::{ConfigRead, Saved};
use config_map::{change_config, read_config};
use kube_access::Cluster;
use settings::{Settings, Work};
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::Hinted;
use crate::reach::ReachError;

/// The number of attempts: another writer may change another key at the same moment.
const ATTEMPTS: usize = 5;

/// Why nothing was edited.
#[derive(Debug, Error)]
pub enum EditError {
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error("{0}")]
    Cluster(Failure),
    #[error("there is no ConfigMap '{name}' in namespace '{namespace}'")]
    NoConfigMap { name: String, namespace: String },
    #[error("{key} was changed meanwhile by another writer, to {found}")]
    Changed { key: String, found: String },
    #[error("the ConfigMap is written to so often that nothing came of {attempts} attempts")]
    Busy { attempts: usize },
}

impl Hinted for EditError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Reach(error) => error.hints(),
            Self::NoConfigMap { .. } => {
                vec!["--namespace and --config-map name it; a missing ConfigMap must be created first".to_owned()]
            }
            Self::Cluster(failure) => failure.hints.clone(),
            Self::Changed { .. } => vec!["look again, and repeat the command if it is still wanted".to_owned()],
            Self::Busy { .. } => Vec::new(),
        }
    }
}

/// Reads all keys of the ConfigMap.
pub fn read(runtime: &Runtime, cluster: &Cluster, config_map: &str) -> Result<BTreeMap<String, String>, EditError> {
    match runtime.block_on(read_config(cluster, config_map)).map_err(failed)? {
        ConfigRead::Present {
            data,
            version: _,
            provenance: _,
        } => Ok(data),
        ConfigRead::Missing => Err(missing(config_map, cluster)),
    }
}

/// An edit of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The key of the ConfigMap.
    pub key: String,
    /// The present text; none if the key is absent.
    pub current: Option<String>,
    /// The new text; none to remove the key.
    pub wanted: Option<String>,
}

impl Edit {
    /// Whether the key already has that value.
    pub fn is_done(&self) -> bool {
        self.current == self.wanted
    }

    /// The present text, for people.
    pub fn current(&self) -> String {
        shown(self.current.as_deref())
    }

    /// The new text, for people.
    pub fn wanted(&self) -> String {
        shown(self.wanted.as_deref())
    }

    /// Writes the key, unless another writer has changed it since it was read.
    pub fn carry_out(&self, runtime: &Runtime, cluster: &Cluster, config_map: &str) -> Result<(), EditError> {
        let (key, base) = (&self.key, self.current.as_deref());
        for _ in 0..ATTEMPTS {
            let save = change_config(cluster, config_map, key, self.wanted.clone(), base, false);
            match runtime.block_on(save).map_err(failed)? {
                Saved::Written { .. } => return Ok(()),
                Saved::Conflict(ConfigRead::Missing) => return Err(missing(config_map, cluster)),
                Saved::Conflict(ConfigRead::Present {
                    data,
                    version: _,
                    provenance: _,
                }) => {
                    let found = data.get(key).map(String::as_str);
                    if found != base {
                        let found = found.map_or_else(|| "nothing".to_owned(), |found| format!("'{found}'"));
                        return Err(EditError::Changed {
                            key: key.clone(),
                            found,
                        });
                    }
                }
            }
        }
        Err(EditError::Busy { attempts: ATTEMPTS })
    }
}

/// The ConfigMap's name and namespace and the API server, for people.
pub fn place(cluster: &Cluster, config_map: &str) -> String {
    let (namespace, server) = (cluster.namespace(), cluster.server());
    format!("ConfigMap '{config_map}' in namespace '{namespace}' of {server}")
}

/// The text on one line, for people.
fn shown(text: Option<&str>) -> String {
    let on_one_line = |text: &str| format!("'{}'", text.trim_end().replace('\n', " "));
    text.map_or_else(|| "not there".to_owned(), on_one_line)
}

/// The failure of a request.
pub fn failed(error: impl Into<Failure>) -> EditError {
    EditError::Cluster(error.into())
}

fn missing(config_map: &str, cluster: &Cluster) -> EditError {
    EditError::NoConfigMap {
        name: config_map.to_owned(),
        namespace: cluster.namespace().to_owned(),
    }
}

/// The name of the ConfigMap; an operator of hooks without modules has none.
pub fn config_map(settings: &Settings) -> String {
    match &settings.work {
        Work::Modules(modules) => modules.config_map.clone(),
        Work::Hooks(_) => String::new(),
    }
}
