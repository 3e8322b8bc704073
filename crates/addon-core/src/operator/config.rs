//! What the ConfigMap says, what of it is in force, and what an edit sets off.
//!
//! A broken key leaves its owner on the last good one. A ConfigMap that is gone changes nothing: only a ConfigMap that
//! says otherwise does. What we wrote ourselves sets off nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Operator;
use super::effect::Notice;
use super::event::{ConfigRead, SavedState};
use super::task::{Lane, Reason, Task};
use crate::failure::{Class, Failure};
use crate::name::{ModuleName, Owner};
use crate::values::section::{ConfigDocument, Entry, Section};

/// The ConfigMap as far as we know it.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// Its version when it was last read or written; what is older is stale news.
    version: u64,
    /// Keys that we wrote after that version: a write says nothing about other keys, so it is no reading.
    written: BTreeMap<String, (u64, String)>,
    /// It exists.
    present: bool,
    /// It came into being by our own write, and no user has said anything in it since.
    made_by_us: bool,
    /// What the cluster holds.
    raw: BTreeMap<String, String>,
    /// What is in force, key by key.
    good: BTreeMap<String, String>,
    /// `good`, read.
    document: ConfigDocument,
    /// Keys that cannot be used.
    pub(super) problems: BTreeMap<String, String>,
    /// What the state Secret holds, and what is on its way there.
    kept: BTreeMap<String, String>,
    keeping: BTreeMap<String, String>,
}

impl Config {
    /// Starts from what was in force in the life before.
    pub(super) fn restore(&mut self, state: SavedState) {
        self.good.clone_from(&state.last_good);
        self.kept = state.last_good;
    }

    /// What is in force differs from what the state Secret holds.
    pub(super) fn unsaved(&self) -> bool {
        self.good != self.kept
    }

    pub(super) fn begin_save(&mut self) -> BTreeMap<String, String> {
        self.keeping.clone_from(&self.good);
        self.keeping.clone()
    }

    pub(super) fn saved(&mut self) {
        self.kept = std::mem::take(&mut self.keeping);
    }

    /// Its version when it was last read or written.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The text that the cluster holds under a key.
    pub(super) fn raw(&self, key: &str) -> Option<&String> {
        self.raw.get(key)
    }

    pub(super) fn is_missing(&self) -> bool {
        !self.present
    }

    /// A module's flag.
    pub(super) fn flag(&self, module: &ModuleName) -> Option<bool> {
        self.document.sections.get(module)?.enabled.good().copied()
    }

    /// It exists, and what it says about the module's flag is sound: nothing.
    pub(super) fn is_silent_about(&self, module: &ModuleName) -> bool {
        self.present && !self.made_by_us && !self.problems.contains_key(&module.enabled_key())
    }

    /// Why a section must not be overwritten now.
    pub(super) fn save_obstacle(&self, key: &str) -> Option<Failure> {
        if let Some(problem) = self.problems.get(key) {
            let report =
                format!("config values cannot be saved over the broken section '{key}' of the ConfigMap: {problem}");
            return Some(Failure::new(Class::Invalid, report).hint(format!("mend the key '{key}' of the ConfigMap")));
        }
        if !self.present && !self.good.is_empty() {
            let report = "config values cannot be saved: the ConfigMap was deleted, and a new one with this section \
                          alone would drop all other settings";
            return Some(Failure::new(Class::Refused, report).hint("create the ConfigMap again"));
        }
        None
    }

    /// We wrote a key. It is in force once the hook's patches are committed.
    pub(super) fn wrote(&mut self, key: &str, text: String, version: u64) {
        self.made_by_us |= !self.present;
        self.present = true;
        if version <= self.version && version != 0 {
            return;
        }
        self.written.insert(key.to_owned(), (version, text.clone()));
        self.raw.insert(key.to_owned(), text.clone());
        self.good.insert(key.to_owned(), text);
        self.document = ConfigDocument::parse(&self.good);
    }
}

/// The values of an entry, where an absent one is as good as an empty one.
fn filled(entry: &Entry<Value>) -> Option<&Value> {
    let values = entry.good()?;
    let empty = values.as_object().is_some_and(serde_json::Map::is_empty);
    (!empty).then_some(values)
}

fn values(section: Option<&Section>) -> Option<&Value> {
    filled(&section?.values)
}

fn flag(section: Option<&Section>) -> Option<bool> {
    section?.enabled.good().copied()
}

impl Operator {
    /// The ConfigMap was read. Applies what is sound in it and sets off what the change concerns.
    pub(super) fn config_changed(&mut self, read: ConfigRead) {
        match read {
            ConfigRead::Missing => {
                let first = self.config.version == 0;
                if first || self.config.present {
                    self.tell(Notice::ConfigMissing);
                }
                self.config.present = false;
                self.config.written.clear();
                self.config.raw.clear();
                if first {
                    let good = self.config.good.clone();
                    self.put_in_force(good);
                }
            }
            ConfigRead::Present { version, mut data } => {
                if version <= self.config.version && version != 0 {
                    return;
                }
                self.config.version = version;
                self.config.written.retain(|_, (written, _)| *written > version);
                let later = self
                    .config
                    .written
                    .iter()
                    .map(|(key, (_, text))| (key.clone(), text.clone()));
                data.extend(later);
                if self.config.raw != data {
                    let saving = |(key, text): (&String, &String)| {
                        self.config.raw.get(key) == Some(text) || self.commits.is_saving(key, text)
                    };
                    let is_new = !self.config.present;
                    self.config.made_by_us =
                        (is_new || self.config.made_by_us) && !data.is_empty() && data.iter().all(saving);
                }
                self.config.present = true;
                let good = self.sift(&data);
                self.config.raw = data;
                self.put_in_force(good);
            }
        }
    }

    /// The keys that can be used, and for those that cannot their last good texts.
    fn sift(&mut self, data: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let document = ConfigDocument::parse(data);
        let problems: BTreeMap<_, _> = document
            .problems
            .into_iter()
            .map(|problem| (problem.key, problem.message))
            .collect();
        for (key, message) in &problems {
            if self.config.problems.get(key) != Some(message) {
                self.tell(Notice::ConfigRejected {
                    key: key.clone(),
                    message: message.clone(),
                });
            }
        }
        let last = &self.config.good;
        let sound = data.iter().filter_map(|(key, text)| {
            let text = if problems.contains_key(key) {
                last.get(key)?
            } else {
                text
            };
            let kept = last
                .get(key)
                .filter(|kept| means_the_same(key, kept, text))
                .unwrap_or(text);
            Some((key.clone(), kept.clone()))
        });
        let good = sound.collect();
        self.config.problems = problems;
        good
    }

    fn put_in_force(&mut self, good: BTreeMap<String, String>) {
        let new = ConfigDocument::parse(&good);
        let old = std::mem::replace(&mut self.config.document, new.clone());
        self.config.good = good;

        let own = |operator: &Self, owner: &Owner| {
            let saving = operator.commits.saving_text(owner);
            saving.is_some() && saving == operator.config.good.get(&owner.values_key()).map(String::as_str)
        };
        let mut keys = Vec::new();
        let global = filled(&old.global) != filled(&new.global) && !own(self, &Owner::Global);
        if global {
            keys.push("global".to_owned());
        }
        if !own(self, &Owner::Global) {
            self.set_section(&Owner::Global, &new.global);
        }
        let (mut touched, mut flags) = (BTreeSet::new(), false);
        let names: Vec<ModuleName> = self.modules.keys().cloned().collect();
        for name in names {
            let owner = Owner::Module(name.clone());
            let (before, after) = (old.sections.get(&name), new.sections.get(&name));
            if flag(before) != flag(after) {
                flags = true;
                keys.push(name.enabled_key());
            }
            if own(self, &owner) {
                // What we save replaces the section, and so whatever an earlier reading had left for later.
                if let Some(unit) = self.modules.get_mut(&name) {
                    unit.deferred = None;
                }
                continue;
            }
            let entry = after.map(Section::layer).unwrap_or_default();
            if self.must_wait(&name, &entry) {
                if let Some(unit) = self.modules.get_mut(&name) {
                    unit.deferred = Some(entry);
                }
            } else {
                // What an earlier reading had left for later is out of date now.
                if let Some(unit) = self.modules.get_mut(&name) {
                    unit.deferred = None;
                }
                self.set_section(&owner, &entry);
            }
            if values(before) != values(after) {
                keys.push(name.values_key());
                touched.insert(name);
            }
        }
        self.tell_unknown(&old, &new);
        if !keys.is_empty() {
            self.tell(Notice::ConfigApplied { keys });
        }
        if global || flags || !touched.is_empty() {
            self.reassess(Reason::ConfigChanged, touched);
        }
        if global && self.converge.has_begun() {
            self.request_converge(Reason::ConfigChanged, true);
        }
    }

    /// A run sees its section in one state from start to end, and a module that is switched off because all that
    /// spoke for it vanished is removed with the section that it ran with.
    fn must_wait(&self, name: &ModuleName, entry: &Entry<Value>) -> bool {
        let lane = Lane::Module(name.clone());
        let runs = self.queues.head(&lane).is_some_and(|head| {
            matches!(head.task, Task::ModuleRun { .. } | Task::ModuleDelete { .. }) && head.is_active()
        });
        let enabled = self.modules.get(name).is_some_and(|unit| unit.enabled);
        runs || enabled && !entry.is_present() && !self.opinions(name).verdict().enabled
    }

    /// What the ConfigMap has to say about a module's section counts from now on.
    pub(super) fn apply_deferred(&mut self, name: &ModuleName) {
        if let Some(entry) = self.modules.get_mut(name).and_then(|unit| unit.deferred.take()) {
            self.set_section(&Owner::Module(name.clone()), &entry);
            if self.modules.get(name).is_some_and(|unit| unit.found.has_enabled_script) {
                // The script was asked with the section as it was before.
                self.reassess(Reason::ConfigChanged, BTreeSet::new());
            }
        }
    }

    fn set_section(&mut self, owner: &Owner, entry: &Entry<Value>) {
        let section = match entry {
            Entry::Absent => None,
            Entry::Good(values) => Some(values.clone()),
            Entry::Bad => return,
        };
        if let Err(rejected) = self.values.set_config(owner, section) {
            let message = Failure::of(Class::Invalid, &rejected).report;
            let key = owner.values_key();
            self.config.problems.insert(key.clone(), message.clone());
            self.tell(Notice::ConfigRejected { key, message });
        }
    }

    fn tell_unknown(&mut self, old: &ConfigDocument, new: &ConfigDocument) {
        let unknown = |document: &ConfigDocument| -> Vec<String> {
            let names = document
                .sections
                .keys()
                .filter(|name| !self.modules.contains_key(*name));
            names.map(ModuleName::values_key).collect()
        };
        let keys = unknown(new);
        if !keys.is_empty() && keys != unknown(old) {
            self.tell(Notice::ConfigUnknown { keys });
        }
    }
}

/// Two texts of one key differ at most in remarks and spelling.
fn means_the_same(key: &str, one: &str, other: &str) -> bool {
    let parse = |text: &str| ConfigDocument::parse(&BTreeMap::from([(key.to_owned(), text.to_owned())]));
    one == other || parse(one) == parse(other)
}
