//! What a container's process is to be: everything that its init must know, and nothing about the cluster.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Written by the agent for the init that it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The unpacked image, which is never written to.
    pub(crate) image: PathBuf,
    /// A folder of the container's own: what it writes to its root, and where that is mounted.
    pub(crate) folder: PathBuf,
    pub(crate) read_only: bool,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) hostname: String,
    pub(crate) identity: Identity,
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: PathBuf,
}

/// Who the process is to the kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) groups: Vec<u32>,
    /// The capabilities it may ever have, as bits.
    pub(crate) capabilities: u64,
    pub(crate) no_new_privileges: bool,
}

/// A file or a folder of the machine that is seen in the container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) source: PathBuf,
    /// Where, as the container sees it.
    pub(crate) target: PathBuf,
    pub(crate) read_only: bool,
}

/// The files beside the root of a container: what it was to be, and its first process.
pub(crate) const SPEC: &str = "spec.json";
pub(crate) const PROCESS: &str = "process";

impl Spec {
    /// Where the id of its first process is written once there is one.
    pub(crate) fn process_file(&self) -> PathBuf {
        self.folder.join(PROCESS)
    }
}
