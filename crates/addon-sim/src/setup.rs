//! The world at the beginning of a run: the directories, the cluster, and the programs of hooks. All of it is data, so
//! that a case can be written to a file, made smaller and run again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::flat::Flat;
use crate::schema::SchemaSpec;
use crate::trial::TrialSpec;

/// The world at the beginning of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Whether there are no modules.
    pub alone: bool,
    /// Whether the strict order of the original is used, in which a failing module holds back the modules behind it.
    pub strict: bool,
    /// Whether there are several replicas, one of which leads.
    pub elected: bool,
    /// The number of slots for hooks.
    pub hook_slots: usize,
    /// The number of slots for hooks that answer the API server.
    pub review_slots: usize,
    /// Whether the API server asks about edits of the `ConfigMap`.
    pub edits: bool,
    /// The number of slots for helm jobs.
    pub helm_slots: usize,
    /// The seconds that other modules wait for a run that hangs; `None` for the core's default.
    pub patience: Option<u64>,
    /// Whether damaged releases are repaired.
    pub restores: bool,
    /// The release in `HELM_IGNORE_RELEASE`.
    pub ignore: Option<String>,
    /// The global values in files.
    pub global: Flat,
    /// Global hooks.
    pub global_hooks: Vec<HookSpec>,
    /// Modules on disk.
    pub modules: Vec<ModuleSpec>,
    /// Modules whose flags and values are in the common values file, in its order. If there are none, there is no such file.
    pub common: Vec<String>,
    /// The `ConfigMap`; `None` if there is none.
    pub config: Option<BTreeMap<String, String>>,
    /// Releases in the cluster.
    pub releases: Vec<ReleaseSpec>,
    /// Modules in registries.
    pub sources: Vec<crate::sources::SourceSpec>,
    /// The trial of the version that runs.
    pub trial: Option<TrialSpec>,
    /// Work that fails this often from the beginning, by the names in `Action::Fault`.
    pub faults: BTreeMap<String, u32>,
}

/// One module on disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleSpec {
    /// The module's name.
    pub name: String,
    /// The order number.
    pub order: u32,
    /// The values in files.
    pub values: Flat,
    /// The flag in files.
    pub enabled: Option<bool>,
    /// Whether the module has a chart.
    pub chart: bool,
    /// Whether the module has CRDs.
    pub crds: bool,
    /// Whether the module's chart has conversion webhooks.
    pub conversions: bool,
    /// Whether helm hangs when it works for the module, as long as work fails.
    pub hangs: bool,
    /// Whether the module's chart ignores global values, so that a change of them renders the same objects.
    pub ignores_global: bool,
    /// Whether the module returns from upgrades that make it unhealthy.
    pub returns: bool,
    /// The modules that the module depends on.
    pub needs: Vec<String>,
    /// The module's enabled script.
    pub script: Option<Script>,
    /// Whether the enabled script is slow.
    pub slow_script: bool,
    /// The module's hooks.
    pub hooks: Vec<HookSpec>,
    /// Whether the operator cannot use the module's files.
    pub broken: bool,
    /// The schemas of the module's values.
    pub schema: Option<SchemaSpec>,
    /// An object that the module's chart renders, as the chart of another module may, too.
    pub shares: Option<String>,
}

/// The answer of an enabled script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Script {
    /// Always this answer.
    Always(bool),
    /// No if this key of the module's own values is an odd number, else yes.
    OwnKey(String),
    /// No if this key of the global values is an odd number, else yes.
    GlobalKey(String),
    /// Yes if the given module is among the enabled modules before the script's own module, else no.
    With(String),
}

/// One hook: a small program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookSpec {
    /// The hook's name, unique among its owner's hooks.
    pub name: String,
    /// The stages, each with its order number.
    pub stages: BTreeMap<String, i64>,
    /// The schedules.
    pub schedules: Vec<Schedule>,
    /// The bindings to objects.
    pub watches: Vec<Watch>,
    /// The bindings to questions of the API server.
    pub webhooks: Vec<Webhook>,
    /// The seconds in which a run is earned, and the number of runs that can be saved up.
    pub limit: Option<(u64, u64)>,
    /// The deeds of every run.
    pub does: Vec<Deed>,
    /// The number of the hook's first runs that fail.
    pub fails: u32,
    /// The number of runs, after the failed ones, that write into the section of another owner.
    pub trespasses: u32,
    /// The number of runs, after those in `trespasses`, that break the schema of its owner.
    pub breaks: u32,
    /// Whether the hook is slow.
    pub slow: bool,
    /// Whether the hook hangs, as long as work fails.
    pub hangs: bool,
}

/// One schedule of a hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schedule {
    /// The crontab.
    pub crontab: String,
    /// The queue; `None` for `main`.
    pub queue: Option<String>,
    /// Whether the schedule has `allowFailure`.
    pub allow_failure: bool,
}

/// One binding of a hook to objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    /// The kind.
    pub kind: String,
    /// The queue; `None` for `main`.
    pub queue: Option<String>,
    /// The group of the binding.
    pub group: Option<String>,
    /// Whether the binding has no first run.
    pub skips: bool,
    /// Whether the module does not wait for the first run.
    pub unawaited: bool,
    /// Whether the binding has `allowFailure`.
    pub allow_failure: bool,
}

impl Watch {
    /// Whether the release waits for the first run.
    pub fn is_awaited(&self) -> bool {
        self.queue.is_none() || !self.unawaited
    }
}

/// One binding of a hook to questions of the API server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    /// The kind of question.
    pub asks: Asks,
    /// The word in the binding's name. Other bindings may have the same word.
    pub subject: String,
    /// The time limit of the webhook's runs, in seconds.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// Whether the hook writes values, too, when it answers. This is forbidden.
    #[serde(default)]
    pub meddles: bool,
}

/// A kind of question of the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Asks {
    /// Is a request allowed?
    Validating,
    /// Is a request allowed, and how is its object changed?
    Mutating,
    /// Convert objects of the first version to the second.
    Converting(u8, u8),
}

impl Asks {
    /// The key of the kind in a hook's configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Validating => "kubernetesValidating",
            Self::Mutating => "kubernetesMutating",
            Self::Converting(..) => "kubernetesCustomResourceConversion",
        }
    }
}

/// The text of a version of simulated objects.
pub fn version_text(version: u8) -> String {
    format!("example.com/v{version}")
}

/// One deed of a hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Deed {
    /// Sets a value of the owner.
    Set {
        /// The key of the values, which no other hook sets.
        key: String,
        /// The new value.
        to: Source,
    },
    /// Sets a config value of the owner.
    SetConfig {
        /// The key of the config values.
        key: String,
        /// The new value.
        to: i64,
    },
    /// Sets a value of the owner to another number in every run, and to zero when nothing fails any more.
    Tick {
        /// The key of the values, which no other hook sets.
        key: String,
    },
    /// Sets the flag of a module.
    Flag {
        /// The module.
        module: String,
        /// The flag; `None` clears it.
        on: Option<bool>,
    },
    /// Switches a module on if a key of the global values is an even number, else off.
    FlagFrom {
        /// The module.
        module: String,
        /// The key of the global values.
        key: String,
    },
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// This fixed number.
    Number(i64),
    /// The owner's value under this key, plus one.
    Own(String),
    /// The global value under this key, plus one.
    Global(String),
}

/// A release in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseSpec {
    /// The release's name.
    pub name: String,
    /// Whether the release carries our labels.
    pub ours: bool,
    /// Whether a helm was killed while it worked on the release.
    pub pending: bool,
}

impl HookSpec {
    /// Whether the hook runs again whenever the values that it reads may have changed, so that the values that it sets
    /// are up to date.
    pub fn follows(&self) -> bool {
        let stages = ["beforeAll", "afterAll", "beforeHelm", "afterHelm"];
        !self.schedules.is_empty() || stages.iter().any(|stage| self.stages.contains_key(*stage))
    }

    /// Whether the hook runs at least once in the life of a ready owner.
    pub fn runs(&self) -> bool {
        self.follows() || self.stages.contains_key("onStartup") || self.watches.iter().any(|watch| !watch.skips)
    }

    /// Whether the hook writes into the `ConfigMap`.
    pub fn saves(&self) -> bool {
        self.does.iter().any(|deed| matches!(deed, Deed::SetConfig { .. }))
    }

    /// The output for `--config`.
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
    /// The name of the webhook, or of the CustomResourceDefinition.
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
    /// The key of the module's section: the module's name in camelCase.
    pub fn key(&self) -> String {
        key_of(&self.name)
    }

    /// The objects that the module's chart renders.
    pub fn objects(&self) -> BTreeSet<String> {
        let own = ["settings", "server"].map(|kind| format!("{kind}/{}", self.name));
        own.into_iter().chain(self.shares.clone()).collect()
    }
}

/// The key of a module's section.
pub fn key_of(module: &str) -> String {
    let mut parts = module.split('-');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |key, part| {
        let (head, tail) = part.split_at(part.len().min(1));
        key + &head.to_uppercase() + tail
    })
}
