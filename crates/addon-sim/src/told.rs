//! What the operator has been told so far, and what may be concluded from that. Kept beside the operator, not by it.

mod values_file;

use std::collections::{BTreeMap, BTreeSet};

use addon_core::name::HookId;
use addon_core::operator::effect::{HookLabels, JobId};
use addon_core::operator::event::{ConfigRead, SavedState};
use addon_core::operator::provenance::Provenance;

use crate::flat::{self, Flat};
use crate::life::Seen;
use crate::schema;
use crate::setup::{Deed, ModuleSpec, Setup, key_of};

/// So many reads are kept by an operator that may not act yet.
const READS_KEPT: usize = 16;

/// What a run of a global hook says of modules.
pub type Flags = Vec<(String, Option<bool>)>;

/// What a life of the operator was told.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The modules of the first reading of the directories, and whether it was complete. Later ones do not count.
    pub modules: Option<(BTreeMap<String, ModuleSpec>, bool)>,
    /// Last good text of each key.
    pub config: BTreeMap<String, String>,
    /// What the `ConfigMap` holds, broken keys included; nothing if it does not exist.
    pub raw: Option<BTreeMap<String, String>>,
    /// A `ConfigMap` exists that a user made, so that what it leaves out was left out on purpose.
    pub silence_speaks: bool,
    /// The `ConfigMap` if a program made it: which one, whether people have edited it, and the keys that were in force before
    /// and that it has never spoken of.
    made: Option<(String, bool, BTreeSet<String>)>,
    /// The common values file.
    common: values_file::CommonValues,
    /// The last good texts of the life before are not known.
    state_lost: bool,
    /// People have said something in this life that counts.
    people_spoke: bool,
    version: u64,
    /// What is older tells of a `ConfigMap` that was gone before we made one.
    floor: u64,
    /// Keys that we wrote, at which version and what.
    written: BTreeMap<String, (u64, String)>,
    /// Keys that cannot be used.
    pub broken: BTreeSet<String>,
    /// Saves under way, and whether the `ConfigMap` was seen meanwhile.
    saves: BTreeMap<JobId, bool>,
    /// What reads said last of flags, whether they count or not: all that who stands by can go by.
    overheard: BTreeMap<String, bool>,
    /// Reads that came before the state Secret was read.
    early: Vec<ConfigRead>,
    state_known: bool,
    /// Reads that do not count yet.
    unheard: Vec<ConfigRead>,
    /// Work has begun: from then on a read takes the place of one that does not count yet.
    begun: bool,
    /// What global hooks said of flags.
    pub flags: BTreeMap<String, Option<bool>>,
    /// What such a hook said in a run that has ended, and that may yet fail: a config patch has to be saved first.
    said: Vec<(HookId, HookLabels, Flags)>,
    /// What enabled scripts answered, each when it was asked last.
    scripts: BTreeMap<String, (JobId, bool)>,
}

impl Told {
    /// The state Secret was read.
    pub fn state(&mut self, state: &SavedState) {
        self.state_known = true;
        self.compare_common_file(state);
        self.state_lost = state.last_good.is_none();
        self.config = state.last_good.clone().unwrap_or_default();
        let made = state.made.clone();
        self.made = made.map(|made| (made.uid, made.edited, made.unsaid));
        self.version = 0;
        self.unheard = std::mem::take(&mut self.early);
    }

    /// The save of a section begins.
    pub fn save_begins(&mut self, id: JobId) {
        self.saves.insert(id, false);
    }

    /// The save found something else than it was made of. If it found nothing, and there was something meanwhile, nobody
    /// can tell what came first.
    pub fn save_missed(&mut self, id: JobId, read: &ConfigRead) {
        let seen = self.saves.remove(&id).unwrap_or_default();
        if !seen || *read != ConfigRead::Missing {
            self.read(read);
        }
    }

    /// The `ConfigMap` was read.
    pub fn read(&mut self, read: &ConfigRead) {
        if let ConfigRead::Present { data, .. } = read {
            self.saves.values_mut().for_each(|seen| *seen = true);
            let known = std::mem::take(&mut self.overheard);
            let flags = data.iter().filter(|(key, _)| key.ends_with("Enabled"));
            let flag = |key: &String, text: &String| flat::read_flag(text).or_else(|| known.get(key).copied());
            self.overheard
                .extend(flags.filter_map(|(key, text)| Some((key.clone(), flag(key, text)?))));
        }
        if !self.state_known {
            self.early.push(read.clone());
            // Who stands by for long forgets the oldest.
            let most = self.early.len().saturating_sub(READS_KEPT);
            self.early.drain(..most);
        }
        if self.begun {
            let newer = |known: &ConfigRead| match (known, read) {
                (ConfigRead::Present { version: known, .. }, ConfigRead::Present { version, .. }) => version <= known,
                _ => false,
            };
            if self.unheard.iter().any(newer) {
                return;
            }
            self.unheard.clear();
        }
        self.unheard.push(read.clone());
    }

    /// A step is over. What was read counts, unless it says that sections are still being looked at.
    pub fn settle(&mut self, after: &Seen) {
        // A converge with nothing to do may be over already.
        self.begun |= !after.status.not_started || after.queues.iter().any(|queue| !queue.tasks.is_empty());
        let is_vetting = |line: &String| line.ends_with("of the ConfigMap against the schema");
        if after.status.waiting.iter().any(is_vetting) {
            return;
        }
        for read in std::mem::take(&mut self.unheard) {
            self.hear(&read);
        }
    }

    fn hear(&mut self, read: &ConfigRead) {
        let ConfigRead::Present {
            version,
            data,
            provenance,
        } = read
        else {
            self.silence_speaks = false;
            self.raw = None;
            if self.version == 0 {
                self.doubt_what_was_kept();
            }
            return;
        };
        if self.is_stale(read) {
            return;
        }
        self.version = *version;
        let unsaid = self.hear_origin(data, provenance);
        let is_made = self.made.as_ref().is_some_and(|(_, edited, _)| !edited);
        self.silence_speaks = !is_made;
        self.people_spoke |= !is_made;
        let data = self.with_own(*version, data);
        self.raw = Some(data.clone());
        self.broken.clear();
        self.config
            .retain(|key, _| data.contains_key(key) || unsaid.contains(key));
        let kept = self.config.iter().filter(|(key, _)| unsaid.contains(*key));
        let kept: Vec<_> = kept.map(|(key, text)| (key.clone(), text.clone())).collect();
        let data = data.into_iter().chain(kept).collect::<BTreeMap<_, _>>();
        for (key, text) in &data {
            if self.is_sound(key, text) {
                self.config.insert(key.clone(), text.clone());
                continue;
            }
            self.broken.insert(key.clone());
            // What was good in an earlier life may break a schema by now.
            if self.config.get(key).is_some_and(|kept| !self.is_sound(key, kept)) {
                self.config.remove(key);
            }
        }
    }

    /// A ConfigMap that a program made takes nothing back: neither by omission, nor by sections that hold nothing. Returns the
    /// keys of which it has never spoken.
    fn hear_origin(&mut self, data: &BTreeMap<String, String>, provenance: &Provenance) -> BTreeSet<String> {
        let (uid, is_as_made) = (&provenance.uid, provenance.is_as_made(data));
        if provenance.made_with.is_none() {
            self.made = None;
            return BTreeSet::new();
        }
        let is_flag = |key: &str| key.ends_with("Enabled") || key.ends_with("Maintenance");
        let says = |key: &str, text: &str| is_flag(key) || flat::read(text, key == "global") != Some(Flat::new());
        let (edited, mut unsaid) = match self.made.take().filter(|(known, ..)| known == uid) {
            Some((_, edited, unsaid)) => (edited, unsaid),
            None => (false, self.config.keys().cloned().collect()),
        };
        unsaid.retain(|key| data.get(key).is_none_or(|text| !says(key, text)));
        self.made = Some((uid.clone(), edited || !is_as_made, unsaid.clone()));
        unsaid
    }

    /// What was good in an earlier life, before the ConfigMap was gone, may break a schema by now.
    fn doubt_what_was_kept(&mut self) {
        let (sound, unsound) = std::mem::take(&mut self.config)
            .into_iter()
            .partition(|(key, text)| self.is_sound(key, text));
        self.config = sound;
        let unsound: BTreeMap<String, String> = unsound;
        self.broken = unsound.into_keys().collect();
    }

    fn is_sound(&self, key: &str, text: &str) -> bool {
        let modules = self.modules.iter().flat_map(|(modules, _)| modules.values());
        schema::is_sound(modules, key, text)
    }

    /// The words of the `ConfigMap` are known neither from itself nor from the life before.
    pub fn is_lost(&self) -> bool {
        self.state_known && self.state_lost && !self.people_spoke
    }

    /// A person has said that it is gone for good.
    pub fn loss_confirmed(&mut self) {
        self.people_spoke = true;
    }

    /// The text in force beside a `ConfigMap` that a program made, which has never held this key.
    pub fn kept_beside(&self, key: &str) -> Option<&String> {
        let (_, _, unsaid) = self.made.as_ref()?;
        self.config.get(key).filter(|_| unsaid.contains(key))
    }

    /// Values are in force for the module, its own or global ones.
    pub fn has_values_for(&self, module: &str) -> bool {
        let filled = |key: &str| {
            let text = self.config.get(key);
            text.is_some_and(|text| flat::read(text, key == "global") != Some(Flat::new()))
        };
        filled("global") || filled(&key_of(module))
    }

    /// Whether the ConfigMap has an entry for the module: values, its flag, or maintenance.
    pub fn says_anything_of(&self, module: &str) -> bool {
        let key = key_of(module);
        let there = |suffix: &str| self.config.contains_key(&format!("{key}{suffix}"));
        self.has_values_for(module) || there("Enabled") || there("Maintenance")
    }

    /// People have the module's objects in their own hands.
    pub fn in_maintenance(&self, module: &str) -> bool {
        let text = self.config.get(&format!("{}Maintenance", key_of(module)));
        text.and_then(|text| flat::read_maintenance(text)).unwrap_or_default()
    }

    /// What a read says, with what we wrote after the moment that it tells of.
    pub fn with_own(&self, version: u64, data: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut data = data.clone();
        let later = self.written.iter().filter(|(_, (written, _))| *written > version);
        data.extend(later.map(|(key, (_, text))| (key.clone(), text.clone())));
        data
    }

    /// An enabled script answered. One that was asked before another may answer after it.
    pub fn script_answered(&mut self, module: &str, id: JobId, answer: bool) {
        if self.scripts.get(module).is_none_or(|(last, _)| *last < id) {
            self.scripts.insert(module.to_owned(), (id, answer));
        }
    }

    /// An enabled script failed: it says nothing any more.
    pub fn script_failed(&mut self, module: &str) {
        self.scripts.remove(module);
    }

    /// A write of ours went through, and made the `ConfigMap` if there was none. It says nothing about other keys.
    pub fn wrote(&mut self, key: &str, text: &str, version: u64, created: bool) {
        if version > self.version {
            self.written.insert(key.to_owned(), (version, text.to_owned()));
            self.broken.remove(key);
            self.config.insert(key.to_owned(), text.to_owned());
            if created {
                self.floor = version;
                self.raw.get_or_insert_default();
            }
            if let Some(raw) = &mut self.raw {
                raw.insert(key.to_owned(), text.to_owned());
            }
        }
    }

    /// This read is older than what is known. After the `ConfigMap` was missing, the last one is news again.
    pub fn is_stale(&self, read: &ConfigRead) -> bool {
        let ConfigRead::Present { version, .. } = read else {
            return false;
        };
        *version < self.version.max(self.floor) || *version == self.version && self.raw.is_some()
    }

    /// A run of a global hook ended, and said this.
    pub fn hook_said(&mut self, hook: &HookId, labels: &HookLabels, flags: Flags) {
        self.said.retain(|(said, of, _)| said != hook || of != labels);
        self.said.push((hook.clone(), labels.clone(), flags));
    }

    /// Such a run counts as a success, and so does what it said.
    pub fn hook_counts(&mut self, hook: &HookId, labels: &HookLabels) {
        let said = self.said.iter().position(|(said, of, _)| said == hook && of == labels);
        if let Some(index) = said {
            let (_, _, flags) = self.said.remove(index);
            self.flags.extend(flags);
        }
    }

    /// The module was seen on disk.
    pub fn knows(&self, module: &str) -> Option<&ModuleSpec> {
        self.modules.as_ref()?.0.get(module)
    }

    /// It would run, if nobody but files and the `ConfigMap` has anything to say.
    pub fn would_run(&self, module: &str) -> bool {
        let flag = self.overheard.get(&format!("{}Enabled", key_of(module))).copied();
        let sound = self.knows(module).filter(|spec| !spec.broken);
        sound.is_some_and(|spec| flag.or(spec.enabled) == Some(true))
    }

    /// It is to run, and nobody but files and the `ConfigMap` could say otherwise, or keep it from running.
    pub fn runs_for_certain(&self, module: &str, setup: &Setup) -> bool {
        let is_free = |spec: &ModuleSpec| spec.script.is_none() && spec.needs.is_empty();
        let hooks = setup.global_hooks.iter().flat_map(|hook| &hook.does);
        let switched = hooks.filter(|deed| match deed {
            Deed::Flag { module: other, .. } | Deed::FlagFrom { module: other, .. } => other == module,
            Deed::Set { .. } | Deed::SetConfig { .. } | Deed::Tick { .. } => false,
        });
        let is_on = !self.state_known || self.opinion(module) == Some(true);
        self.would_run(module) && self.knows(module).is_some_and(is_free) && switched.count() == 0 && is_on
    }

    /// What a module's sources say before its script is asked.
    pub fn opinion(&self, module: &str) -> Option<bool> {
        let flag = self.config.get(&format!("{}Enabled", key_of(module)));
        flag.and_then(|text| flat::read_flag(text))
            .or_else(|| self.flags.get(module).copied().flatten())
            .or_else(|| self.knows(module).and_then(|spec| spec.enabled))
    }

    /// Somebody said that this module is not to run, or all who could have spoken were heard and said nothing.
    pub fn says_no(&self, module: &str, setup: &Setup) -> bool {
        match self.opinion(module) {
            Some(false) => self.is_heard(module) || self.hooks_spoke(module, setup),
            Some(true) => {
                let asked = self.knows(module).is_some_and(|spec| spec.script.is_some());
                asked && self.scripts.get(module).is_some_and(|(_, answer)| !answer) && self.heard_before(module)
            }
            None => {
                let complete = self.modules.as_ref().is_some_and(|(_, complete)| *complete);
                let flag_broken = self.broken.contains(&format!("{}Enabled", key_of(module)));
                let heard = complete && self.common_file_spoke();
                heard && self.silence_speaks && !flag_broken && self.hooks_spoke(module, setup)
            }
        }
    }

    /// Every script of a module before this one has answered: by its own word alone a script may be mistaken.
    fn heard_before(&self, module: &str) -> bool {
        let modules = self.modules.iter().flat_map(|(modules, _)| modules.values());
        let place = |spec: &ModuleSpec| (spec.order, spec.name.clone());
        let own = self.knows(module).map(place);
        let mut before =
            modules.filter(|spec| spec.script.is_some() && own.as_ref().is_some_and(|own| place(spec) < *own));
        before.all(|spec| self.scripts.contains_key(&spec.name) || self.opinion(&spec.name) != Some(true))
    }

    /// What counts more than files has spoken about the module.
    fn is_heard(&self, module: &str) -> bool {
        let flag = self.config.get(&format!("{}Enabled", key_of(module)));
        flag.is_some_and(|text| flat::read_flag(text).is_some()) || self.flags.get(module).is_some_and(Option::is_some)
    }

    /// No global hook that switches this module has yet to run.
    fn hooks_spoke(&self, module: &str, setup: &Setup) -> bool {
        let switches = |deed: &Deed| match deed {
            Deed::Flag { module: switched, .. } | Deed::FlagFrom { module: switched, .. } => switched == module,
            Deed::Set { .. } | Deed::SetConfig { .. } | Deed::Tick { .. } => false,
        };
        let some = setup
            .global_hooks
            .iter()
            .any(|hook| hook.runs() && hook.does.iter().any(switches));
        !some || self.flags.contains_key(module)
    }
}
