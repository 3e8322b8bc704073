//! The specification of a container's process: everything that its init must know, and nothing about the cluster.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The specification. The agent writes it to a file, and the init reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The unpacked image, which is read-only.
    pub(crate) image: PathBuf,
    /// The container's own folder, with its writable layer and its root.
    pub(crate) folder: PathBuf,
    pub(crate) read_only: bool,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) hostname: String,
    pub(crate) identity: Identity,
    pub(crate) command: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: PathBuf,
}

/// The identity of the process for the kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) groups: Vec<u32>,
    /// The bounding set of the process's capabilities, as bits.
    pub(crate) capabilities: u64,
    pub(crate) no_new_privileges: bool,
}

/// A file or folder of the machine that is mounted into the container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) source: PathBuf,
    /// The path in the container.
    pub(crate) target: PathBuf,
    pub(crate) read_only: bool,
}

/// The names of files in a container's folder: its specification, and the id of its first process.
pub(crate) const SPEC: &str = "spec.json";
pub(crate) const PROCESS: &str = "process";

impl Spec {
    /// The file with the id of the container's first process.
    pub(crate) fn process_file(&self) -> PathBuf {
        self.folder.join(PROCESS)
    }
}
