//! The ConfigMap: the texts that it holds, those that are in force, and the sections that wait for the end of a run.
//!
//! A broken key leaves its owner on the last good text. A ConfigMap that is gone changes nothing: only a ConfigMap that says otherwise does. The
//! operator's own writes set off nothing, and a key that a program leaves out of a ConfigMap that it made takes nothing back.

pub(super) mod channel;
mod history;
pub(super) mod lost;
pub(super) mod news;
pub(super) mod omissions;
pub(super) mod reading;
mod sift;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::cx::Cx;
use super::effect::Notice;
use super::modules::Modules;
use super::provenance::{Made, means_the_same};
use crate::failure::{Class, Failure};
use crate::name::{ModuleName, Owner};
use crate::values::Store;
use crate::values::section::{ConfigDocument, Entry, Maintenance, Section};
use lost::Losses;
use news::{filled, is_filled, maintenance};
use reading::Readings;

/// What the API server lets a ConfigMap hold.
const CONFIG_MAP_LIMIT: usize = 1 << 20;

/// The ConfigMap as far as we know it.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// What was read and does not count yet.
    readings: Readings,
    /// Its version when it was last read or written; what is older is stale news.
    version: u64,
    /// What is older tells of a ConfigMap that was gone before we made this one.
    floor: u64,
    /// Keys that we wrote after that version: a write says nothing about other keys, so it is no reading.
    written: BTreeMap<String, (u64, String)>,
    /// The last that was seen of it.
    sight: Sight,
    /// The knowledge of it if a program made it, a hook of ours or the chart.
    made: Option<Made>,
    /// The confirmation that stood in it when it was last read.
    confirms: Option<String>,
    /// Modules whose removal by omission a person has confirmed, until it has happened.
    confirmed: BTreeSet<ModuleName>,
    /// The releases that tell of a ConfigMap which is lost.
    losses: Losses,
    /// What the cluster holds.
    raw: BTreeMap<String, String>,
    /// What is in force, key by key.
    good: BTreeMap<String, String>,
    /// Texts that keep to the schemas of this life.
    vetted: BTreeMap<String, String>,
    /// `good`, read.
    document: ConfigDocument,
    /// Keys that cannot be used.
    problems: BTreeMap<String, String>,
    /// Sections that count once the run of their module, or its removal, has ended.
    later: BTreeMap<ModuleName, Entry<Value>>,
    /// The memory in the state Secret, if there is any, and the one that is on its way there.
    kept: Option<Kept>,
    keeping: Option<Kept>,
    /// Keys that found no room there.
    unkept: Vec<String>,
}

/// The last that was seen of the ConfigMap in this life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Sight {
    /// Nobody has looked.
    #[default]
    Unread,
    /// It was looked for, and there is none.
    Missing,
    /// It came into being by our own write, and has not been read since.
    Created,
    /// It was read.
    Read,
}

impl Sight {
    /// The ConfigMap exists.
    fn is_present(self) -> bool {
        match self {
            Self::Created | Self::Read => true,
            Self::Unread | Self::Missing => false,
        }
    }

    /// It was looked for in this life.
    fn is_known(self) -> bool {
        match self {
            Self::Missing | Self::Created | Self::Read => true,
            Self::Unread => false,
        }
    }
}

/// The memory of the ConfigMap from life to life.
#[derive(Debug, Clone, Default, PartialEq)]
struct Kept {
    good: BTreeMap<String, String>,
    made: Option<Made>,
}

impl Config {
    /// Starts from what was in force in the life before.
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

    /// The state Secret may hold other texts than those in force. That there are none is worth a Secret only to a life that would
    /// take its absence for a loss. Of a save without an answer nobody knows whether it was carried out.
    pub(super) fn unsaved(&self) -> bool {
        // The next life must find what we found.
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

    /// The API server said no to the save.
    pub(super) fn not_saved(&mut self) {
        self.keeping = None;
    }

    /// Its version when it was last read or written.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The text that the cluster holds under a key.
    pub(super) fn raw(&self, key: &str) -> Option<&String> {
        self.raw.get(key)
    }

    /// Texts that keep to the schemas of this life, by key.
    pub(super) fn vetted(&self) -> &BTreeMap<String, String> {
        &self.vetted
    }

    pub(super) fn is_missing(&self) -> bool {
        !self.sight.is_present()
    }

    /// A module's flag.
    pub(super) fn flag(&self, module: &ModuleName) -> Option<bool> {
        self.document.sections.get(module)?.enabled.good().copied()
    }

    /// Whether the module's objects are ours to keep.
    pub(super) fn maintenance(&self, module: &ModuleName) -> Maintenance {
        maintenance(self.document.sections.get(module))
    }

    /// People have said in it what they want, be it nothing.
    pub(super) fn is_peoples_word(&self) -> bool {
        self.sight == Sight::Read && self.made.as_ref().is_none_or(|made| made.edited)
    }

    /// It is the word of people, and what it says about the module's flag is sound: nothing.
    pub(super) fn is_silent_about(&self, module: &ModuleName) -> bool {
        self.is_peoples_word() && !self.problems.contains_key(&module.enabled_key())
    }

    /// Why this text must not be written into a section now.
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

    /// This text is what is known of a key, but for remarks and spelling.
    pub(super) fn says(&self, key: &str, text: &str) -> bool {
        self.good.get(key).is_some_and(|good| means_the_same(key, good, text))
    }

    /// We wrote a key, which is in force once the hook's patches are committed. A reading as new as that knows better.
    pub(super) fn wrote(&mut self, key: &str, text: String, version: u64, created: bool) {
        if version <= self.version && version != 0 {
            return;
        }
        self.written.insert(key.to_owned(), (version, text.clone()));
        if created {
            self.floor = version;
        }
        // A ConfigMap that we did not create and that is missing was deleted: nobody knows yet what a new one holds.
        if created && !self.sight.is_present() {
            self.sight = Sight::Created;
        }
        if self.sight.is_present() {
            self.raw.insert(key.to_owned(), text.clone());
        }
        // It was held against the schemas before it was written.
        self.vetted.insert(key.to_owned(), text.clone());
        self.good.insert(key.to_owned(), text);
        self.document = ConfigDocument::parse(&self.good);
    }
}

/// What is wrong, and what waits.
impl Config {
    /// Keys that cannot be used, with the reason.
    pub(super) fn problems(&self) -> &BTreeMap<String, String> {
        &self.problems
    }

    /// Keys that found no room in the state.
    pub(super) fn unkept(&self) -> &[String] {
        &self.unkept
    }

    /// These sections found no room in the state.
    pub(super) fn sections_left_out(&mut self, cx: &mut Cx, keys: Vec<String>) {
        if !keys.is_empty() && keys != self.unkept {
            cx.tell(Notice::SectionsNotKept { keys: keys.clone() });
        }
        self.unkept = keys;
    }

    /// The section that is left for the end of the module's run.
    pub(super) fn later(&self, module: &ModuleName) -> Option<&Entry<Value>> {
        self.later.get(module)
    }

    /// Leaves a module's section for the end of its run, or nothing. Returns the one that was left before.
    pub(super) fn leave_for_later(&mut self, module: &ModuleName, entry: Option<Entry<Value>>) -> Option<Entry<Value>> {
        match entry {
            Some(entry) => self.later.insert(module.clone(), entry),
            None => self.later.remove(module),
        }
    }
}

/// Sections come into force.
impl Config {
    /// These texts count from now on. Returns the document before and the one of now.
    pub(super) fn replace(&mut self, good: BTreeMap<String, String>) -> (ConfigDocument, ConfigDocument) {
        let new = ConfigDocument::parse(&good);
        let old = std::mem::replace(&mut self.document, new.clone());
        self.good = good;
        (old, new)
    }

    /// Puts a section in force. True if it holds something else now; that a module is only mentioned is nothing.
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

    /// The document says nothing for the module: neither a flag nor values. That people keep it in their own hands is no word for it.
    pub(super) fn says_nothing_for(&self, module: &ModuleName, entry: &Entry<Value>) -> bool {
        filled(entry).is_none() && self.flag(module).is_none()
    }

    /// The section of an owner as it is in force, key by key.
    pub(super) fn section(&self, module: &ModuleName) -> Option<&Section> {
        self.document.sections.get(module)
    }

    /// The global section in force.
    pub(super) fn global_section(&self) -> &Entry<Value> {
        &self.document.global
    }
}

/// Tells of sections that belong to no module, once.
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
