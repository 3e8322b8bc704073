//! What can happen to a world while the operator runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::flat::Flat;

/// One thing that happens, a while after the one before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Milliseconds after the action before.
    pub after: u64,
    /// What happens.
    pub action: Action,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// A user sets a key of the `ConfigMap`, or removes it.
    Edit {
        /// The key.
        key: String,
        /// Its new text.
        text: Option<String>,
    },
    /// A user deletes the `ConfigMap`.
    DeleteConfigMap,
    /// A user applies a whole `ConfigMap`.
    ApplyConfigMap {
        /// Its contents.
        data: BTreeMap<String, String>,
    },
    /// A user deletes the `ConfigMap` and applies another one at once.
    ReplaceConfigMap {
        /// Its contents.
        data: BTreeMap<String, String>,
    },
    /// The chart that installs us makes a `ConfigMap`, if there is none.
    MakeConfigMap {
        /// Its contents.
        data: BTreeMap<String, String>,
    },
    /// The process is killed, and before the next one starts a person deletes our state Secret.
    DeleteState,
    /// Work of this name fails from now on this often.
    Fault {
        /// `hook/OWNER/NAME`, `watch/OWNER/NAME`, `helm/RELEASE`, `delete/RELEASE`, `script/MODULE`, `configure/OWNER`,
        /// `crds/MODULE`, `conversions/MODULE`, `half/MODULE` (files of its chart are missing, and nobody sees it), `list`,
        /// `load-state`, `save-state`, `save-values-files`, `save-config`, `judge` or `webhooks`; or `lost/` and the name of
        /// a write, which then happens, and its answer is lost.
        what: String,
        /// How often.
        times: u32,
    },
    /// From now on the watch of the `ConfigMap` is late by this many milliseconds.
    WatchDelay(u64),
    /// The watch leaves out all news that wait but the last.
    Coalesce,
    /// The watch tells its last news once more.
    Redeliver,
    /// A module's directory vanishes; nobody reads before the next start.
    Remove(String),
    /// A module's directory is back as it was.
    Restore(String),
    /// A module's files change.
    Alter {
        /// Which.
        module: String,
        /// Its values.
        values: Flat,
        /// Its flag.
        enabled: Option<bool>,
        /// It is unusable.
        broken: bool,
    },
    /// So much of the common values file is there from now on; nobody reads it before the next start.
    CommonFile(CommonFile),
    /// The next reading of the directories goes wrong.
    Misread(Misreading),
    /// The directories are read again, in this way.
    Reread(Option<Misreading>),
    /// Somebody installs a release that is not ours.
    Foreign(String),
    /// Somebody removes a release that is not ours.
    RemoveForeign(String),
    /// A person wants these releases removed, as far as their removal is held.
    Confirm(Vec<String>),
    /// A person wants the upgrade of this release that is held.
    ConfirmUpgrade(String),
    /// A person says that the configuration is lost for good, if it is.
    ConfirmLoss,
    /// Somebody does harm to a release of ours.
    Damage {
        /// Which.
        release: String,
        /// What is done to it.
        harm: Harm,
    },
    /// An object of the cluster is made or changed, or it goes.
    Object {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// It goes.
        gone: bool,
    },
    /// The API server asks whom it was told to ask, or was told before that.
    Ask {
        /// Which of them, counted around.
        which: u64,
        /// So many requests at once.
        times: u64,
        /// Seconds that it waits for an answer.
        within: u64,
    },
    /// The API server asks us about an edit of the `ConfigMap` that somebody wants to make, and that is not made.
    Want {
        /// The key.
        key: String,
        /// Its new text.
        text: String,
        /// Seconds that it waits for an answer.
        within: u64,
    },
    /// Somebody changes what stands in the cluster so that the API server asks, or only looks as if.
    TouchWebhooks {
        /// It is gone until somebody puts it back.
        takes: bool,
    },
    /// Waits for the next hook that runs before all modules, and happens while it does.
    Ambush(Box<Self>),
    /// Waits for the next save of a section, and happens while it is under way.
    Meddle(Box<Self>),
    /// The wall clock is set by so many seconds.
    SetClock(i64),
    /// The process is killed and started again.
    Kill,
    /// The process is asked to stop, and started again when it has.
    Shutdown,
    /// Another one of us leads from now on.
    Depose,
    /// The trial of the version comes to its end, if there is one.
    Judge,
}

/// What somebody does to a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Harm {
    /// An object of it is removed.
    Object,
    /// All of it is uninstalled.
    Release,
    /// A helm of somebody else works on it and fails.
    Helm,
}

/// How much of the common values file is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommonFile {
    /// All of it.
    Whole,
    /// It is missing, or holds nothing.
    Gone,
    /// Only its lines about so many modules.
    Cut(usize),
}

/// How a reading of the directories goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Misreading {
    /// Nothing is there, and no error is seen.
    Empty,
    /// These modules are not seen, and an error is.
    Incomplete(Vec<String>),
}
