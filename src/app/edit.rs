//! An edit of one key of the ConfigMap by a command: it is shown first, then written.
//!
//! Must never overwrite a text that another writer has put under the key since it was shown.

use std::collections::BTreeMap;

use addon_core::failure::Failure;
use addon_core::operator::event::{ConfigRead, Saved};
use config_map::{change_config, read_config};
use kube_access::Cluster;
use tokio::runtime::Runtime;

use super::switch::SwitchError;

/// The number of attempts: another writer may change another key at the same moment.
const ATTEMPTS: usize = 5;

/// Reads all keys of the ConfigMap.
pub(super) fn read(
    runtime: &Runtime,
    cluster: &Cluster,
    config_map: &str,
) -> Result<BTreeMap<String, String>, SwitchError> {
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
    pub(super) fn carry_out(&self, runtime: &Runtime, cluster: &Cluster, config_map: &str) -> Result<(), SwitchError> {
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
                        return Err(SwitchError::Changed {
                            key: key.clone(),
                            found,
                        });
                    }
                }
            }
        }
        Err(SwitchError::Busy { attempts: ATTEMPTS })
    }
}

/// The ConfigMap's name and namespace, for people.
pub(super) fn place(cluster: &Cluster, config_map: &str) -> String {
    let (namespace, server) = (cluster.namespace(), cluster.server());
    format!("ConfigMap '{config_map}' in namespace '{namespace}' of {server}")
}

/// The text on one line, for an error message.
fn shown(text: Option<&str>) -> String {
    let on_one_line = |text: &str| format!("'{}'", text.trim_end().replace('\n', " "));
    text.map_or_else(|| "not there".to_owned(), on_one_line)
}

pub(super) fn failed(error: impl Into<Failure>) -> SwitchError {
    SwitchError::Cluster(error.into())
}

pub(super) fn missing(config_map: &str, cluster: &Cluster) -> SwitchError {
    SwitchError::NoConfigMap {
        name: config_map.to_owned(),
        namespace: cluster.namespace().to_owned(),
    }
}
