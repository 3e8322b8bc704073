//! An edit of one key of the ConfigMap that a person makes by a command: shown first, then written.
//!
//! Must never overwrite a text that another writer has put under that key since it was shown.

use std::collections::BTreeMap;

use addon_core::failure::Failure;
use addon_core::operator::event::{ConfigRead, Saved};
use tokio::runtime::Runtime;

use super::switch::SwitchError;
use crate::cluster::Cluster;

/// Another writer may change another key at the same moment.
const ATTEMPTS: usize = 5;

/// All keys of the ConfigMap, as they are now.
pub(super) fn read(
    runtime: &Runtime,
    cluster: &Cluster,
    config_map: &str,
) -> Result<BTreeMap<String, String>, SwitchError> {
    match runtime.block_on(cluster.read_config(config_map)).map_err(failed)? {
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
    /// The key.
    pub key: String,
    /// The text that is there now, if the key is.
    pub current: Option<String>,
    /// The text that is to be there; nothing takes the key away.
    pub wanted: Option<String>,
}

impl Edit {
    /// The key has that value already.
    pub fn is_done(&self) -> bool {
        self.current == self.wanted
    }

    /// The text that is there, for people.
    pub fn current(&self) -> String {
        shown(self.current.as_deref())
    }

    /// The text that is to be there, for people.
    pub fn wanted(&self) -> String {
        shown(self.wanted.as_deref())
    }

    /// Writes it, unless another writer has changed the key since it was read.
    pub(super) fn carry_out(&self, runtime: &Runtime, cluster: &Cluster, config_map: &str) -> Result<(), SwitchError> {
        let (key, base) = (&self.key, self.current.as_deref());
        for _ in 0..ATTEMPTS {
            let save = cluster.change_config(config_map, key, self.wanted.clone(), base, false);
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

/// The place of the ConfigMap, for people.
pub(super) fn place(cluster: &Cluster, config_map: &str) -> String {
    let (namespace, server) = (cluster.namespace(), cluster.server());
    format!("ConfigMap '{config_map}' in namespace '{namespace}' of {server}")
}

/// The text on one line, for an error: the value may have several lines.
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
