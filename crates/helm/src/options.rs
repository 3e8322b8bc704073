//! The settings of all helm calls. Must never read the environment: the caller has done so.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The settings of all helm calls.
#[derive(Debug, Clone)]
pub struct Options {
    /// The path of helm's binary.
    pub binary: PathBuf,
    /// A private directory for helm's caches and the operator's files for helm.
    pub dir: PathBuf,
    pub kubeconfig: PathBuf,
    /// The namespace of all releases.
    pub namespace: String,
    /// `PATH` for credential plugins.
    pub search_path: OsString,
    /// The home directory of a credential plugin; `None` if there is no plugin.
    pub home: Option<PathBuf>,
    /// The program that adds labels: the operator's own binary.
    pub post_renderer: PathBuf,
    /// Labels for every object of every release; empty for none.
    pub labels: BTreeMap<String, String>,
    /// `--history-max`.
    pub history_max: u32,
    /// `--timeout`.
    pub timeout: Duration,
}

impl Options {
    /// The settings of a helm that only renders, and so needs no cluster. Without a binary `helm` is looked up in the search path.
    pub fn for_rendering(binary: Option<&OsStr>, search_path: Option<&OsStr>, dir: &Path, namespace: &str) -> Self {
        Self {
            binary: binary.unwrap_or("helm".as_ref()).into(),
            dir: dir.to_owned(),
            kubeconfig: PathBuf::from("/dev/null"),
            namespace: namespace.to_owned(),
            search_path: search_path.unwrap_or_default().to_owned(),
            home: None,
            post_renderer: PathBuf::new(),
            labels: BTreeMap::new(),
            history_max: 1,
            timeout: Duration::from_mins(1),
        }
    }
}
