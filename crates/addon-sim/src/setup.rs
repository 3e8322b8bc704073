//! What the world holds when a run begins: what lies on disk, in the cluster, and how its hooks are programmed.
//!
//! All of it is data, so that a case can be written to a file, made smaller and run again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::flat::Flat;
use crate::schema::SchemaSpec;
use crate::trial::TrialSpec;

/// The beginning of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Hooks without modules.
    pub alone: bool,
    /// The original's order, in which a failing module holds back those behind it.
    pub strict: bool,
    /// There are several of us, and one of them leads.
    pub elected: bool,
    /// Hooks at a time.
    pub hook_slots: usize,
    /// Hooks at a time for the API server alone.
    pub review_slots: usize,
    /// The API server asks us about edits of the `ConfigMap`.
    pub edits: bool,
    /// helm jobs at a time.
    pub helm_slots: usize,
    /// Seconds that others wait for a run that hangs; those of the core if nothing is said.
    pub patience: Option<u64>,
    /// Releases that somebody damages are restored.
    pub restores: bool,
    /// `HELM_IGNORE_RELEASE`.
    pub ignore: Option<String>,
    /// Global values of files.
    pub global: Flat,
    /// Global hooks.
    pub global_hooks: Vec<HookSpec>,
    /// Modules on disk.
    pub modules: Vec<ModuleSpec>,
    /// Modules whose flags and values stand in the common values file, in its order. Without any there is no such file.
    pub common: Vec<String>,
    /// The `ConfigMap`; nothing if there is none.
    pub config: Option<BTreeMap<String, String>>,
    /// Releases in the cluster.
    pub releases: Vec<ReleaseSpec>,
    /// The version whose lives these are is on trial.
    pub trial: Option<TrialSpec>,
    /// Work that fails this often from the beginning, by the names of `Action::Fault`.
    pub faults: BTreeMap<String, u32>,
}

/// One module on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleSpec {
    /// Its name.
    pub name: String,
    /// Its order number.
    pub order: u32,
    /// Its values of files.
    pub values: Flat,
    /// Its flag of files.
    pub enabled: Option<bool>,
    /// There is a chart.
    pub chart: bool,
    /// There are CRDs.
    pub crds: bool,
    /// Its chart says how objects are converted.
    pub conversions: bool,
    /// Its helm hangs, until nothing fails any more.
    pub hangs: bool,
    /// Its chart reads no global values, so that changes of those render the same.
    pub ignores_global: bool,
    /// The modules that it needs.
    pub needs: Vec<String>,
    /// Its enabled script.
    pub script: Option<Script>,
    /// Which takes its time.
    pub slow_script: bool,
    /// Its hooks.
    pub hooks: Vec<HookSpec>,
    /// It cannot be used as it lies on disk.
    pub broken: bool,
    /// The schemas of its values.
    pub schema: Option<SchemaSpec>,
    /// An object that its chart renders and that of another module may render, too.
    pub shares: Option<String>,
}

/// What an enabled script answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Script {
    /// Always this.
    Always(bool),
    /// No if this key of the module's own values is an odd number.
    OwnKey(String),
    /// No if this key of the global values is an odd number.
    GlobalKey(String),
    /// Yes if that module is among the enabled ones before it.
    With(String),
}

/// One hook: a small program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookSpec {
    /// Its name among its owner's hooks.
    pub name: String,
    /// Stages that it takes part in, with its place in their order.
    pub stages: BTreeMap<String, i64>,
    /// Its schedules.
    pub schedules: Vec<Schedule>,
    /// Objects that it watches.
    pub watches: Vec<Watch>,
    /// What it answers the API server.
    pub webhooks: Vec<Webhook>,
    /// Seconds in which it earns a run, and how many it can save up.
    pub limit: Option<(u64, u64)>,
    /// What it does in every run.
    pub does: Vec<Deed>,
    /// It fails this often before it succeeds.
    pub fails: u32,
    /// After that it writes this often into a section that is not its owner's.
    pub trespasses: u32,
    /// After that it writes this often what breaks its owner's schema.
    pub breaks: u32,
    /// It takes long.
    pub slow: bool,
    /// It hangs, until nothing fails any more.
    pub hangs: bool,
}

/// One schedule of a hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schedule {
    /// Its crontab.
    pub crontab: String,
    /// Its queue, if not `main`.
    pub queue: Option<String>,
    /// A failed run is let pass.
    pub allow_failure: bool,
}

/// One kind of objects that a hook watches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    /// Their kind.
    pub kind: String,
    /// Its queue, if not `main`.
    pub queue: Option<String>,
    /// The group under which changes are told.
    pub group: Option<String>,
    /// The hook is not run for what is there at first.
    pub skips: bool,
    /// Nobody waits for that run.
    pub unawaited: bool,
    /// A failed run is let pass.
    pub allow_failure: bool,
}

impl Watch {
    /// The release waits until the hook has run for what is there at first.
    pub fn is_awaited(&self) -> bool {
        self.queue.is_none() || !self.unawaited
    }
}

/// One kind of questions of the API server that a hook answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    /// What is asked.
    pub asks: Asks,
    /// A word that makes its name, which it may share with others.
    pub subject: String,
    /// Its runs are ended after so many seconds.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// It writes values too, which it may not.
    #[serde(default)]
    pub meddles: bool,
}

/// What the API server asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Asks {
    /// Whether a request is allowed.
    Validating,
    /// What to change in it, too.
    Mutating,
    /// Objects of this version in that one.
    Converting(u8, u8),
}

impl Asks {
    /// The key of such bindings.
    pub fn key(self) -> &'static str {
        match self {
            Self::Validating => "kubernetesValidating",
            Self::Mutating => "kubernetesMutating",
            Self::Converting(..) => "kubernetesCustomResourceConversion",
        }
    }
}

/// The version of simulated objects that has this number.
pub fn version_text(version: u8) -> String {
    format!("example.com/v{version}")
}

/// One thing that a hook does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Deed {
    /// Sets a value of its owner.
    Set {
        /// Under this key, which no other hook sets.
        key: String,
        /// To this.
        to: Source,
    },
    /// Sets a config value of its owner.
    SetConfig {
        /// Under this key.
        key: String,
        /// To this.
        to: i64,
    },
    /// Sets a value of its owner to something else in every run, and to nothing once nothing fails any more.
    Tick {
        /// Under this key, which no other hook sets.
        key: String,
    },
    /// Switches a module.
    Flag {
        /// Which.
        module: String,
        /// On or off, or no opinion.
        on: Option<bool>,
    },
    /// Switches a module on if a key of the global values is an even number, else off.
    FlagFrom {
        /// Which.
        module: String,
        /// The key.
        key: String,
    },
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// Always this.
    Number(i64),
    /// What the owner's values hold under this key, plus one.
    Own(String),
    /// What the global values hold under this key, plus one.
    Global(String),
}

/// A release in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseSpec {
    /// Its name.
    pub name: String,
    /// It carries our labels.
    pub ours: bool,
    /// A helm was killed while it worked on it.
    pub pending: bool,
}

impl HookSpec {
    /// Runs again whenever what it reads may have changed, so that what it sets follows what it reads.
    pub fn follows(&self) -> bool {
        let stages = ["beforeAll", "afterAll", "beforeHelm", "afterHelm"];
        !self.schedules.is_empty() || stages.iter().any(|stage| self.stages.contains_key(*stage))
    }

    /// Runs at least once in the life of an owner that is settled.
    pub fn runs(&self) -> bool {
        self.follows() || self.stages.contains_key("onStartup") || self.watches.iter().any(|watch| !watch.skips)
    }

    /// It writes into the `ConfigMap`.
    pub fn saves(&self) -> bool {
        self.does.iter().any(|deed| matches!(deed, Deed::SetConfig { .. }))
    }

    /// What it prints for `--config`.
    pub fn config_text(&self) -> String {
        let mut config = json!({"configVersion": "v1"});
        for (stage, order) in &self.stages {
            config[stage] = json!(order);
        }
        if !self.schedules.is_empty() {
            let binding = |(index, schedule): (usize, &Schedule)| {
                let mut binding = json!({
                    "name": format!("s{index}"),
                    "crontab": schedule.crontab,
                    "allowFailure": schedule.allow_failure,
                });
                if let Some(queue) = &schedule.queue {
                    binding["queue"] = json!(queue);
                }
                binding
            };
            config["schedule"] = self.schedules.iter().enumerate().map(binding).collect::<Value>();
        }
        if !self.watches.is_empty() {
            let watches = self.watches.iter().enumerate();
            config["kubernetes"] = watches.map(|(index, watch)| binding_of(index, watch)).collect();
        }
        for webhook in &self.webhooks {
            let list = config[webhook.asks.key()].take();
            let mut list = list.as_array().cloned().unwrap_or_default();
            list.push(webhook.binding());
            config[webhook.asks.key()] = Value::from(list);
        }
        if let Some((seconds, burst)) = self.limit {
            config["settings"] = json!({"executionMinInterval": format!("{seconds}s"), "executionBurst": burst});
        }
        config.to_string()
    }
}

fn binding_of(index: usize, watch: &Watch) -> Value {
    let mut binding = json!({
        "name": format!("w{index}"),
        "kind": watch.kind,
        "executeHookOnSynchronization": !watch.skips,
        "waitForSynchronization": !watch.unawaited,
        "allowFailure": watch.allow_failure,
    });
    for (key, text) in [("queue", &watch.queue), ("group", &watch.group)] {
        if let Some(text) = text {
            binding[key] = json!(text);
        }
    }
    binding
}

impl Webhook {
    /// The name by which a cluster knows it, or that of the resource definition.
    pub fn name(&self) -> String {
        match self.asks {
            Asks::Validating | Asks::Mutating => format!("{}.check.example.com", self.subject),
            Asks::Converting(..) => format!("{}s.example.com", self.subject),
        }
    }

    fn binding(&self) -> Value {
        let mut binding = match self.asks {
            Asks::Validating | Asks::Mutating => json!({
                "name": self.name(),
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            }),
            Asks::Converting(from, to) => json!({
                "name": self.subject,
                "crdName": self.name(),
                "conversions": [{"fromVersion": version_text(from), "toVersion": version_text(to)}],
            }),
        };
        if let Some(seconds) = self.timeout {
            binding["timeout"] = json!(format!("{seconds}s"));
        }
        binding
    }
}

impl ModuleSpec {
    /// Key of its section: the camelCase of its name.
    pub fn key(&self) -> String {
        key_of(&self.name)
    }

    /// What its chart renders.
    pub fn objects(&self) -> BTreeSet<String> {
        let own = ["settings", "server"].map(|kind| format!("{kind}/{}", self.name));
        own.into_iter().chain(self.shares.clone()).collect()
    }
}

/// Key of a module's section.
pub fn key_of(module: &str) -> String {
    let mut parts = module.split('-');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |key, part| {
        let (head, tail) = part.split_at(part.len().min(1));
        key + &head.to_uppercase() + tail
    })
}
