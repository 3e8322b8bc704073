//! The actions of a history: what happens to a world while the operator runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::flat::Flat;
use crate::sources::FilesSpec;

/// One action, with the time since the one before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Milliseconds since the action before.
    pub after: u64,
    /// The action.
    pub action: Action,
}

/// An action of people, programs or the cluster in a simulated case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// A person sets a key of the `ConfigMap`, or removes it.
    Edit {
        /// The key of the `ConfigMap`.
        key: String,
        /// The new text; `None` removes the key.
        text: Option<String>,
    },
    /// A person deletes the `ConfigMap`.
    DeleteConfigMap,
    /// A person applies a whole `ConfigMap`.
    ApplyConfigMap {
        /// The contents.
        data: BTreeMap<String, String>,
    },
    /// A person deletes the `ConfigMap` and applies another one at once.
    ReplaceConfigMap {
        /// The contents.
        data: BTreeMap<String, String>,
    },
    /// The chart that installs the operator makes a `ConfigMap`, if there is none.
    MakeConfigMap {
        /// The contents.
        data: BTreeMap<String, String>,
    },
    /// The process is killed, and a person deletes the state Secret before the next start.
    DeleteState,
    /// Work of the name `what` fails from now on, `times` times.
    Fault {
        /// `hook/OWNER/NAME`, `watch/OWNER/NAME`, `helm/RELEASE`, `delete/RELEASE`, `script/MODULE`, `configure/OWNER`,
        /// `crds/MODULE`, `conversions/MODULE`, `half/MODULE` (files of its chart are missing, without an error), `list`,
        /// `load-state`, `save-state`, `save-values-files`, `save-config`, `judge` or `webhooks`; or `lost/` and the name
        /// of a write: then the write succeeds and its answer is lost.
        what: String,
        /// The number of failures.
        times: u32,
    },
    /// From now on the watch of the `ConfigMap` is late by this many milliseconds.
    WatchDelay(u64),
    /// The watch skips all waiting states of the `ConfigMap` except the last.
    Coalesce,
    /// The watch of the `ConfigMap` reports its last state once more.
    Redeliver,
    /// A module's directory vanishes. It is read only at the next start.
    Remove(String),
    /// A module's directory comes back as it was.
    Restore(String),
    /// A module's files change.
    Alter {
        /// The module.
        module: String,
        /// The new values.
        values: Flat,
        /// The new flag.
        enabled: Option<bool>,
        /// Whether the files are unusable.
        broken: bool,
    },
    /// This part of the common values file exists from now on. The operator reads the file only at the next start.
    CommonFile(CommonFile),
    /// The next reading of the directories goes wrong.
    Misread(Misreading),
    /// A person asks that the directory of a module is read again.
    ReadAgain(String),
    /// The directories are read again, perhaps wrongly.
    Reread(Option<Misreading>),
    /// Another program installs a release that is not ours.
    Foreign(String),
    /// Another program removes a release that is not ours.
    RemoveForeign(String),
    /// A person confirms the removal of these releases, if they are held.
    Confirm(Vec<String>),
    /// A person confirms the held upgrade of this release.
    ConfirmUpgrade(String),
    /// A person confirms that the configuration is lost for good, if it is lost.
    ConfirmLoss,
    /// A person or another program damages a release of ours.
    Damage {
        /// The release.
        release: String,
        /// The kind of damage.
        harm: Harm,
    },
    /// An object of the cluster is created, changed or deleted.
    Object {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// Whether the object is deleted.
        gone: bool,
    },
    /// The API server asks a hook at a published route, or at one that was published before.
    Ask {
        /// The index of the route, modulo the number of routes.
        which: u64,
        /// The number of requests at once.
        times: u64,
        /// The seconds that the API server waits for an answer.
        within: u64,
    },
    /// The API server asks the operator about an edit of the `ConfigMap`, which is not made afterwards.
    Want {
        /// The key of the `ConfigMap`.
        key: String,
        /// The new text.
        text: String,
        /// The seconds that the API server waits for an answer.
        within: u64,
    },
    /// A program changes the published webhooks in the cluster, or writes them without a change.
    TouchWebhooks {
        /// Whether the webhooks are removed, until the operator publishes them again.
        takes: bool,
    },
    /// The action happens during the next run of a hook before all modules.
    Ambush(Box<Self>),
    /// Happens during the next save of a section.
    Meddle(Box<Self>),
    /// The wall clock is set by this many seconds.
    SetClock(i64),
    /// The registry gets a newer version of a module.
    Publish {
        /// The module.
        module: String,
        /// The files of the version.
        files: FilesSpec,
    },
    /// The registry answers from now on, or does not.
    RegistryAnswers(bool),
    /// All kept copies of a module's files are lost.
    LoseCopies(String),
    /// The process is killed and started again.
    Kill,
    /// The process is asked to stop, and started again when it has stopped.
    Shutdown,
    /// Another replica leads from now on.
    Depose,
    /// The running trial ends, if there is one.
    Judge,
}

/// A damage of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Harm {
    /// An object of the release is removed.
    Object,
    /// The release is uninstalled.
    Release,
    /// A helm of another program works on the release and fails.
    Helm,
}

/// The part of the common values file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommonFile {
    /// The whole file.
    Whole,
    /// The file is missing or empty.
    Gone,
    /// Only the lines about the given number of modules are left.
    Cut(usize),
}

/// An error in a reading of the directories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Misreading {
    /// The directories look empty, without an error.
    Empty,
    /// The given modules are not found, and an error is reported.
    Incomplete(Vec<String>),
}
