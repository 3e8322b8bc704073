//! The ConfigMap: its texts, the texts that are applied, and the sections that wait for the end of a run.
//!
//! If a key is broken, its owner keeps the last good text. If the ConfigMap is gone, the applied texts stay: only a
//! ConfigMap with other contents changes them. The operator's own writes set off no run. If a program made the
//! ConfigMap, the keys that it leaves out stay as they were.

pub(super) mod channel;
mod history;
pub(super) mod lost;
pub(super) mod news;
pub(super) mod omissions;
pub(super) mod reading;
mod sift;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use names::{ModuleName, Owner};
use serde_json::Value;

use super::cx::Cx;
use super::effect::Notice;
use super::modules::Modules;
use super::provenance::{Made, means_the_same};
use crate::digest::Digest;
use crate::failure::{Class, Failure};
use crate::values::Store;
use crate::values::section::{ConfigDocument, Entry, Maintenance, Section};
use lost::Losses;
use news::{filled, is_filled, maintenance};
use reading::Readings;

/// The size in bytes up to which the API server accepts a ConfigMap.
const CONFIG_MAP_LIMIT: usize = 1 << 20;

/// The ConfigMap as far as we know it.
#[derive(Debug, Clone, Default)]
pub(super) struct Config {
    /// The readings that have not been applied yet.
    readings: Readings,
    /// The version of the last reading or write. A reading with a lower version is outdated.
    version: u64,
    /// The version at which we created the ConfigMap. A reading with a lower version shows an older ConfigMap, which
    /// was deleted before.
    floor: u64,
    /// The keys that we wrote after `version`. A write says nothing about other keys, so it does not count as a reading.
    written: BTreeMap<String, (u64, String)>,
    /// The result of the last look at the ConfigMap.
    sight: Sight,
    /// How the ConfigMap was made, if a program (a hook or the chart) made it.
    made: Option<Made>,
    /// The annotation that confirms removals, as it was in the last reading.
    confirms: Option<String>,
    /// Modules whose removal by omission a person has confirmed. A module leaves the set when it is removed.
    confirmed: BTreeSet<ModuleName>,
    /// The releases whose ConfigMap is lost.
    losses: Losses,
    /// The texts in the cluster, by key.
    raw: BTreeMap<String, String>,
    /// The texts that are applied, by key.
    good: BTreeMap<String, String>,
    /// Texts that were checked against the schemas of this life and are good, by key.
    vetted: BTreeMap<String, String>,
    /// `good`, parsed.
    document: ConfigDocument,
    /// Keys of the ConfigMap that cannot be used, each with the reason.
    problems: BTreeMap<String, String>,
    /// Sections that will be applied when the run or the removal of their module has ended.
    later: BTreeMap<ModuleName, Entry<Value>>,
    /// `kept`: the facts about the ConfigMap in the state Secret. `keeping`: the facts that a job is writing there.
    kept: Option<Kept>,
    keeping: Option<Kept>,
    /// Keys for which the state Secret had no room.
    unkept: Vec<String>,
}

/// The result of the last look at the ConfigMap in this life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Sight {
    /// The ConfigMap has not been read in this life.
    #[default]
    Unread,
    /// The last look found that the ConfigMap does not exist.
    Missing,
    /// Our own write created the ConfigMap, and it has not been read since.
    Created,
    /// The ConfigMap was read.
    Read,
}

impl Sight {
    /// Whether the ConfigMap exists.
    fn is_present(self) -> bool {
        match self {
            Self::Created | Self::Read => true,
            Self::Unread | Self::Missing => false,
        }
    }

    /// Whether the ConfigMap was read or found missing in this life.
    fn is_known(self) -> bool {
        match self {
            Self::Missing | Self::Created | Self::Read => true,
            Self::Unread => false,
        }
    }
}

/// The facts about the ConfigMap that one life passes to the next through the state Secret.
#[derive(Debug, Clone, Default, PartialEq)]
struct Kept {
    good: BTreeMap<String, String>,
    made: Option<Made>,
}

impl Config {
    /// Starts from the texts that were applied in the life before.
    pub(super) fn restore(&mut self, last_good: Option<BTreeMap<String, String>>, made: Option<Made>) {
        self.made.clone_from(&made);
        self.kept = last_good.map(|good| Kept { good, made });
        self.good = self.kept.as_ref().map(|kept| kept.good.clone()).unwrap_or_default();
    }

    fn to_keep(&self) -> Kept {
        Kept {
            good: self.good.clone(),
            made: self.made.clone(),
        }
    }

    /// Whether the state Secret may differ from the applied texts. An empty set of texts is written only if the next life
    /// would otherwise take its absence for a loss. After a save without an answer it is unknown whether the Secret was
    /// written.
    pub(super) fn unsaved(&self) -> bool {
        // Until the loss is over, the next life must find the same state as this life.
        if !self.losses.are_over() {
            return false;
        }
        let is_different = match &self.kept {
            Some(kept) => kept.good != self.good || kept.made != self.made,
            None => !self.good.is_empty() || self.made.is_some() || self.losses.are_settled(),
        };
        is_different || self.keeping.is_some()
    }

    pub(super) fn begin_save(&mut self) -> (BTreeMap<String, String>, Option<Made>) {
        let Kept { good, made } = self.keeping.insert(self.to_keep()).clone();
        (good, made)
    }

    pub(super) fn saved(&mut self) {
        self.kept = self.keeping.take();
    }

    /// Notes that the API server refused the save.
    pub(super) fn not_saved(&mut self) {
        self.keeping = None;
    }

    /// The version of the last reading or write.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The text in the cluster under a key.
    pub(super) fn raw(&self, key: &str) -> Option<&String> {
        self.raw.get(key)
    }

    /// A digest of the applied text of a key.
    pub(super) fn digest(&self, key: &str) -> Option<Digest> {
        self.good.get(key).map(|text| Digest::of_bytes(text.as_bytes()))
    }

    /// Texts that were checked against the schemas of this life and are good, by key.
    pub(super) fn vetted(&self) -> &BTreeMap<String, String> {
        &self.vetted
    }

    pub(super) fn is_missing(&self) -> bool {
        !self.sight.is_present()
    }

    /// The module's flag in the ConfigMap.
    pub(super) fn flag(&self, module: &ModuleName) -> Option<bool> {
        self.document.sections.get(module)?.enabled.good().copied()
    }

    /// Whether the operator maintains the module's objects, or people do.
    pub(super) fn maintenance(&self, module: &ModuleName) -> Maintenance {
        maintenance(self.document.sections.get(module))
    }

    /// Whether people have written this ConfigMap, even if it is empty.
    pub(super) fn is_peoples_word(&self) -> bool {
        self.sight == Sight::Read && self.made.as_ref().is_none_or(|made| made.edited)
    }

    /// Whether people have written the ConfigMap and it says nothing about the module's flag.
    pub(super) fn is_silent_about(&self, module: &ModuleName) -> bool {
        self.is_peoples_word() && !self.problems.contains_key(&module.enabled_key())
    }

    /// The reason for which this text must not be saved under this key now.
    pub(super) fn save_obstacle(&self, key: &str, text: &str) -> Option<Failure> {
        if let Some(problem) = self.problems.get(key) {
            let report =
                format!("config values cannot be saved over the broken section '{key}' of the ConfigMap: {problem}");
            return Some(Failure::new(Class::Invalid, report).hint(format!("mend the key '{key}' of the ConfigMap")));
        }
        if !self.sight.is_present() && !self.losses.releases().is_empty() {
            let report = "config values cannot be saved: the ConfigMap is lost, and a new one with this section alone \
                          would stand in its place";
            return Some(
                Failure::new(Class::Refused, report).hint("create the ConfigMap again, or `config lost --confirm`"),
            );
        }
        if !self.sight.is_present() && !self.good.is_empty() {
            let report = "config values cannot be saved: the ConfigMap was deleted, and a new one with this section \
                          alone would drop all other settings";
            return Some(Failure::new(Class::Refused, report).hint("create the ConfigMap again"));
        }
        let others = self.raw.iter().filter(|(other, _)| *other != key);
        let size = others.map(|(_, text)| text.len()).sum::<usize>() + text.len();
        if size > CONFIG_MAP_LIMIT {
            let report = format!(
                "the section '{key}' would take {} bytes and the ConfigMap as a whole {size}, and it can hold \
                 {CONFIG_MAP_LIMIT}",
                text.len()
            );
            let hint = "keep large data in a ConfigMap or Secret of its own and only its name in the values";
            return Some(Failure::new(Class::Invalid, report).hint(hint));
        }
        None
    }

    /// Whether the text means the same as the applied text of the key. Comments and spelling do not count.
    pub(super) fn says(&self, key: &str, text: &str) -> bool {
        self.good.get(key).is_some_and(|good| means_the_same(key, good, text))
    }

    /// Notes a key that we wrote. It is applied once the hook's patches are committed. A reading of the same version or a
    /// later one takes precedence.
    pub(super) fn wrote(&mut self, key: &str, text: String, version: u64, created: bool) {
        if version <= self.version && version != 0 {
            return;
        }
        self.written.insert(key.to_owned(), (version, text.clone()));
        if created {
            self.floor = version;
        }
        // If the ConfigMap was missing and this write did not create it, a person deleted it in between. The contents
        // of a ConfigMap that another program creates then are unknown, so only our own creation counts as a sight.
        if created && !self.sight.is_present() {
            self.sight = Sight::Created;
        }
        if self.sight.is_present() {
            self.raw.insert(key.to_owned(), text.clone());
        }
        // The text was checked against the schemas before it was written.
        self.vetted.insert(key.to_owned(), text.clone());
        self.good.insert(key.to_owned(), text);
        self.document = ConfigDocument::parse(&self.good);
    }
}

/// The problems of ConfigMap keys, and the sections that wait to be applied.
impl Config {
    /// Keys of the ConfigMap that cannot be used, each with the reason.
    pub(super) fn problems(&self) -> &BTreeMap<String, String> {
        &self.problems
    }

    /// Keys for which the state Secret had no room.
    pub(super) fn unkept(&self) -> &[String] {
        &self.unkept
    }

    /// Notes the sections for which the state Secret had no room.
    pub(super) fn sections_left_out(&mut self, cx: &mut Cx, keys: Vec<String>) {
        if !keys.is_empty() && keys != self.unkept {
            cx.tell(Notice::SectionsNotKept { keys: keys.clone() });
        }
        self.unkept = keys;
    }

    /// The module's section that will be applied at the end of its run.
    pub(super) fn later(&self, module: &ModuleName) -> Option<&Entry<Value>> {
        self.later.get(module)
    }

    /// Keeps a module's section for the end of its run; `None` forgets a kept one. Returns the section that was kept before.
    pub(super) fn leave_for_later(&mut self, module: &ModuleName, entry: Option<Entry<Value>>) -> Option<Entry<Value>> {
        match entry {
            Some(entry) => self.later.insert(module.clone(), entry),
            None => self.later.remove(module),
        }
    }
}

/// Sections are applied.
impl Config {
    /// Applies these texts. Returns the old document and the new document.
    pub(super) fn replace(&mut self, good: BTreeMap<String, String>) -> (ConfigDocument, ConfigDocument) {
        let new = ConfigDocument::parse(&good);
        let old = std::mem::replace(&mut self.document, new.clone());
        self.good = good;
        (old, new)
    }

    /// Applies a section. True if its values changed. An empty section equals an absent one.
    pub(super) fn set_section(&mut self, cx: &mut Cx, values: &mut Store, owner: &Owner, entry: &Entry<Value>) -> bool {
        let section = match entry {
            Entry::Absent => None,
            Entry::Good(values) => Some(values.clone()),
            Entry::Bad => return false,
        };
        let holds = |values: &Store| values.config_section(owner).filter(|held| is_filled(held));
        let before = holds(values);
        if let Err(rejected) = values.set_config(owner, section) {
            let message = Failure::of(Class::Invalid, &rejected).report;
            let key = owner.values_key();
            self.problems.insert(key.clone(), message.clone());
            cx.tell(Notice::ConfigRejected { key, message });
        }
        holds(values) != before
    }

    /// Whether the document has neither a flag nor values for the module. Maintenance by people does not count here.
    pub(super) fn says_nothing_for(&self, module: &ModuleName, entry: &Entry<Value>) -> bool {
        filled(entry).is_none() && self.flag(module).is_none()
    }

    /// The applied section of an owner, key by key.
    pub(super) fn section(&self, module: &ModuleName) -> Option<&Section> {
        self.document.sections.get(module)
    }

    /// The applied global section.
    pub(super) fn global_section(&self) -> &Entry<Value> {
        &self.document.global
    }
}

/// Reports the sections that belong to no module, unless the old document had the same ones.
pub(super) fn tell_unknown(cx: &mut Cx, modules: &Modules, old: &ConfigDocument, new: &ConfigDocument) {
    let unknown = |document: &ConfigDocument| -> Vec<String> {
        let names = document.sections.keys().filter(|name| !modules.contains(name));
        names.map(ModuleName::values_key).collect()
    };
    let keys = unknown(new);
    if !keys.is_empty() && keys != unknown(old) {
        cx.tell(Notice::ConfigUnknown { keys });
    }
}
