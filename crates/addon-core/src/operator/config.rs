//! What the ConfigMap says, what of it is in force, and what an edit sets off.
//!
//! A broken key leaves its owner on the last good one. A ConfigMap that is gone changes nothing: only a ConfigMap that
//! says otherwise does. What we wrote ourselves sets off nothing, and what a program made says nothing by what it leaves
//! out.

mod channel;
mod history;
pub(super) mod lost;
pub(super) mod news;
pub(super) mod omissions;
pub(super) mod reading;
mod sift;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Operator;
use super::effect::Notice;
use super::provenance::{Made, means_the_same};
use super::task::{Lane, Reason};
use crate::failure::{Class, Failure};
use crate::name::{ModuleName, Owner};
use crate::values::section::{ConfigDocument, Entry, Maintenance, Section};
use lost::Losses;
use news::{News, filled, flag, is_filled, maintenance, values};
use reading::Readings;

/// What the API server lets a ConfigMap hold.
const CONFIG_MAP_LIMIT: usize = 1 << 20;

/// The ConfigMap as far as we know it.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// What was read and does not count yet.
    pub(super) readings: Readings,
    /// Its version when it was last read or written; what is older is stale news.
    version: u64,
    /// What is older tells of a ConfigMap that was gone before we made this one.
    floor: u64,
    /// Keys that we wrote after that version: a write says nothing about other keys, so it is no reading.
    written: BTreeMap<String, (u64, String)>,
    /// It exists.
    present: bool,
    /// It came into being by our own write that has not been read yet.
    created: bool,
    /// The knowledge of it if a program made it, a hook of ours or the chart.
    made: Option<Made>,
    /// The confirmation that stood in it when it was last read.
    confirms: Option<String>,
    /// The ConfigMap was read in this life, or found missing.
    seen: bool,
    /// Modules whose removal by omission a person has confirmed, until it has happened.
    confirmed: BTreeSet<ModuleName>,
    /// The releases that tell of a ConfigMap which is lost.
    pub(super) losses: Losses,
    /// What the cluster holds.
    raw: BTreeMap<String, String>,
    /// What is in force, key by key.
    good: BTreeMap<String, String>,
    /// Texts that keep to the schemas of this life.
    vetted: BTreeMap<String, String>,
    /// `good`, read.
    document: ConfigDocument,
    /// Keys that cannot be used.
    pub(super) problems: BTreeMap<String, String>,
    /// The memory in the state Secret, if there is any, and the one that is on its way there.
    kept: Option<Kept>,
    keeping: Option<Kept>,
    /// Keys that found no room there.
    pub(super) unkept: Vec<String>,
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
        !self.present
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
        self.present && !self.created && self.made.as_ref().is_none_or(|made| made.edited)
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
        if !self.present && !self.losses.releases().is_empty() {
            let report = "config values cannot be saved: the ConfigMap is lost, and a new one with this section alone \
                          would stand in its place";
            return Some(
                Failure::new(Class::Refused, report).hint("create the ConfigMap again, or `config lost --confirm`"),
            );
        }
        if !self.present && !self.good.is_empty() {
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
        self.created |= created && !self.present;
        self.present |= created;
        if self.present {
            self.raw.insert(key.to_owned(), text.clone());
        }
        // It was held against the schemas before it was written.
        self.vetted.insert(key.to_owned(), text.clone());
        self.good.insert(key.to_owned(), text);
        self.document = ConfigDocument::parse(&self.good);
    }
}

impl Operator {
    fn put_in_force(&mut self, good: BTreeMap<String, String>) {
        let new = ConfigDocument::parse(&good);
        let old = std::mem::replace(&mut self.config.document, new.clone());
        self.config.good = good;

        let mut news = News::default();
        if !self.commits.hold(&Owner::Global) {
            news.global = filled(&old.global) != filled(&new.global);
            self.set_section(&Owner::Global, &new.global);
        }
        let names: Vec<ModuleName> = self.modules.keys().cloned().collect();
        for name in names {
            let (before, after) = (old.sections.get(&name), new.sections.get(&name));
            if flag(before) != flag(after) {
                news.flags.insert(name.clone());
            }
            if maintenance(before) != maintenance(after) {
                news.maintenance.insert(name.clone());
            }
            if self.commits.hold(&Owner::Module(name.clone())) {
                continue;
            }
            let differs = self.section_read(&name, after);
            if values(before) == values(after) {
                news.late |= differs && self.is_asked_late(&name);
            } else {
                news.sections.insert(name);
            }
        }
        self.tell_channel(&old.channel, &new.channel);
        self.tell_unknown(&old, &new);
        self.follow(news);
    }

    /// The save of a section has ended. What was read of it meanwhile was held back, and counts from now on.
    pub(super) fn end_hold(&mut self, owner: &Owner) -> News {
        let mut news = News::default();
        match owner {
            Owner::Global => {
                let entry = self.config.document.global.clone();
                news.global = self.set_section(owner, &entry);
            }
            Owner::Module(name) => {
                let section = self.config.document.sections.get(name).cloned();
                if self.section_read(name, section.as_ref()) {
                    news.sections.insert(name.clone());
                }
            }
        }
        news
    }

    /// Puts a module's section in force, now or once its run has ended. True if that makes a difference.
    fn section_read(&mut self, name: &ModuleName, section: Option<&Section>) -> bool {
        let owner = Owner::Module(name.clone());
        let entry = section.map(Section::layer).unwrap_or_default();
        let later = self.must_wait(name, &entry).then(|| entry.clone());
        // What an earlier reading had left for later is out of date now.
        let unit = self.modules.get_mut(name);
        let earlier = unit.and_then(|unit| std::mem::replace(&mut unit.deferred, later.clone()));
        if later.is_some() {
            let now = self.values.config_section(&owner);
            return earlier != later && filled(&entry) != now.as_deref().filter(|section| is_filled(section));
        }
        self.set_section(&owner, &entry)
    }

    /// Tells what is new and sets off what it concerns.
    pub(super) fn follow(&mut self, news: News) {
        let keys = news.keys();
        if keys.is_empty() && !news.late {
            return;
        }
        if !keys.is_empty() {
            self.cx.tell(Notice::ConfigApplied { keys });
        }
        let concerns_scripts = news.late || self.concerns_scripts(&news);
        let touched = news.sections.into_iter().chain(news.maintenance).collect();
        if concerns_scripts {
            self.reassess(Reason::ConfigChanged, touched);
        } else {
            self.run_touched(touched);
        }
        if news.global && self.converge.has_begun() {
            self.request_converge(Reason::ConfigChanged, true);
        } else if news.global {
            // A hook at start-up may have failed for what is mended now.
            self.lanes.retry(&Lane::Global);
        }
    }

    /// A verdict may come out otherwise now. The script of a module sees the global values, the module's own, and the modules
    /// that are enabled.
    fn concerns_scripts(&self, news: &News) -> bool {
        let has_script = |name: &ModuleName| self.modules.get(name).is_some_and(|unit| unit.found.has_enabled_script);
        news.global || !news.flags.is_empty() || news.sections.iter().any(has_script)
    }

    /// A run sees its section in one state from start to end, and a module that is switched off because all that
    /// spoke for it vanished is removed with the section that it ran with.
    fn must_wait(&self, name: &ModuleName, entry: &Entry<Value>) -> bool {
        let runs = self.lanes.is_at_work(name);
        let unit = self.modules.get(name);
        let is_there = unit.is_some_and(|unit| unit.enabled || self.is_there(unit));
        // That people keep it in their own hands says nothing for it, nor of its values.
        let says_nothing = filled(entry).is_none() && self.config.flag(name).is_none();
        runs || is_there && says_nothing && !self.opinions(name).verdict().enabled
    }

    /// The run or removal for which a section was left for later may have been dropped.
    pub(super) fn apply_what_nothing_holds(&mut self, name: &ModuleName) {
        let deferred = self.modules.get(name).and_then(|unit| unit.deferred.clone());
        if deferred.is_some_and(|entry| !self.must_wait(name, &entry)) {
            self.apply_deferred(name);
        }
    }

    /// What the ConfigMap has to say about a module's section counts from now on. True if it is to be assessed anew.
    pub(super) fn apply_deferred(&mut self, name: &ModuleName) -> bool {
        let entry = self.modules.get_mut(name).and_then(|unit| unit.deferred.take());
        let late =
            entry.is_some_and(|entry| self.set_section(&name.clone().into(), &entry)) && self.is_asked_late(name);
        if late {
            self.reassess(Reason::ConfigChanged, BTreeSet::new());
        }
        late
    }

    /// The module's script was asked without a section that had been left for later and counts now.
    fn is_asked_late(&self, name: &ModuleName) -> bool {
        let unit = self.modules.get(name);
        unit.is_some_and(|unit| unit.found.has_enabled_script && unit.deferred.is_none())
            && self.opinions(name).verdict().enabled
    }

    /// Puts a section in force. True if it holds something else now; that a module is only mentioned is nothing.
    fn set_section(&mut self, owner: &Owner, entry: &Entry<Value>) -> bool {
        let section = match entry {
            Entry::Absent => None,
            Entry::Good(values) => Some(values.clone()),
            Entry::Bad => return false,
        };
        let holds = |operator: &Self| operator.values.config_section(owner).filter(|held| is_filled(held));
        let before = holds(self);
        if let Err(rejected) = self.values.set_config(owner, section) {
            let message = Failure::of(Class::Invalid, &rejected).report;
            let key = owner.values_key();
            self.config.problems.insert(key.clone(), message.clone());
            self.cx.tell(Notice::ConfigRejected { key, message });
        }
        holds(self) != before
    }

    /// These sections found no room in the state.
    pub(super) fn sections_left_out(&mut self, keys: Vec<String>) {
        if !keys.is_empty() && keys != self.config.unkept {
            self.cx.tell(Notice::SectionsNotKept { keys: keys.clone() });
        }
        self.config.unkept = keys;
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
            self.cx.tell(Notice::ConfigUnknown { keys });
        }
    }
}
