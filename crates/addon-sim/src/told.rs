//! The events that the operator has been told, and the conclusions from them. Kept beside the operator, not by it.

mod read_again;
mod sources;
mod values_file;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::effect::{HookLabels, JobId};
use addon_core::operator::event::{ConfigRead, SavedState};
use addon_core::operator::provenance::Provenance;
use names::HookId;

use crate::flat::{self, Flat};
use crate::life::Seen;
use crate::schema;
use crate::setup::{Deed, ModuleSpec, Setup, key_of};
use crate::sources::{Named, SOURCES};
pub use read_again::Reread;
use sources::Supply;

/// The number of readings that an operator keeps before it may act.
const READS_KEPT: usize = 16;

/// The flags of modules that a run of a global hook set.
pub type Flags = Vec<(String, Option<bool>)>;

/// The events that a life of the operator was told.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The modules of the first reading of the directories, and whether it was complete. Later readings do not count.
    pub modules: Option<(BTreeMap<String, ModuleSpec>, bool)>,
    /// The later readings of single modules, by the number of the reading.
    read_again: BTreeMap<u64, Reread>,
    /// The modules that come from registries.
    supply: Supply,
    /// The last good text of each key.
    pub config: BTreeMap<String, String>,
    /// The texts in the `ConfigMap`, broken ones included; `None` if there is no `ConfigMap`.
    pub raw: Option<BTreeMap<String, String>>,
    /// Whether there is a `ConfigMap` that people made or edited, so that the keys it lacks were left out on purpose.
    pub silence_speaks: bool,
    /// The `ConfigMap` if a program made it: its uid, whether people have edited it, and some of the applied keys:
    /// those that were applied before the program made the `ConfigMap`, and that the `ConfigMap` has never contained.
    made: Option<(String, bool, BTreeSet<String>)>,
    common: values_file::CommonValues,
    /// Whether the last good texts of the previous life are unknown.
    state_lost: bool,
    /// Whether people have made or edited a `ConfigMap` in this life.
    people_spoke: bool,
    version: u64,
    /// The version at which we created the `ConfigMap`. Readings with a lower version are about an earlier `ConfigMap`,
    /// which was gone before.
    floor: u64,
    /// The keys that the operator wrote, each with the version of the `ConfigMap` and the text.
    written: BTreeMap<String, (u64, String)>,
    /// Keys that cannot be used.
    pub broken: BTreeSet<String>,
    /// The running saves, and whether the `ConfigMap` was read meanwhile.
    saves: BTreeMap<JobId, bool>,
    /// The flags in the last reading, applied or not. A standby knows no other flags.
    overheard: BTreeMap<String, bool>,
    /// The readings that came before the state Secret was read.
    early: Vec<ConfigRead>,
    state_known: bool,
    /// The readings that are not applied yet.
    unheard: Vec<ConfigRead>,
    /// Whether work has begun. From then on a new reading replaces a reading that is not applied yet.
    begun: bool,
    /// The flags that global hooks have set.
    pub flags: BTreeMap<String, Option<bool>>,
    /// The flags in runs that have ended and may still fail, because a config patch has to be saved first.
    said: Vec<(HookId, HookLabels, Flags)>,
    /// The last answers of enabled scripts, each with the job that asked.
    scripts: BTreeMap<String, (JobId, bool)>,
}

impl Told {
    /// Notes the contents of the state Secret.
    pub fn state(&mut self, state: &SavedState) {
        self.state_known = true;
        self.compare_common_file(state);
        self.state_lost = state.last_good.is_none();
        self.supply.state(state);
        self.config = state.last_good.clone().unwrap_or_default();
        let made = state.made.clone();
        self.made = made.map(|made| (made.uid, made.edited, made.unsaid));
        self.version = 0;
        self.unheard = std::mem::take(&mut self.early);
    }

    /// Notes the beginning of a section's save.
    pub fn save_begins(&mut self, id: JobId) {
        self.saves.insert(id, false);
    }

    /// Notes that a save found another `ConfigMap` than expected. If the save found no `ConfigMap`, but a reading found
    /// one meanwhile, the finding of the save does not count: it is unknown which came first.
    pub fn save_missed(&mut self, id: JobId, read: &ConfigRead) {
        let seen = self.saves.remove(&id).unwrap_or_default();
        if !seen || *read != ConfigRead::Missing {
            self.read(read);
        }
    }

    /// Notes a reading of the `ConfigMap`.
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
            // A standby keeps only the latest readings.
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

    /// Ends a step. Readings are applied, unless the status says that sections are still being checked.
    pub fn settle(&mut self, after: &Seen) {
        self.supply.may_confirm(!self.begun);
        let had_begun = self.begun;
        // A converge without work may be over already.
        self.begun |= !after.status.not_started || after.queues.iter().any(|queue| !queue.tasks.is_empty());
        let is_vetting = |line: &String| line.ends_with("of the ConfigMap against the schema");
        // Work begins only once the readings are applied. What is checked then are sections of files that were renewed.
        let begins = self.begun && !had_begun;
        if !begins && after.status.waiting.iter().any(is_vetting) {
            return;
        }
        for read in std::mem::take(&mut self.unheard) {
            self.hear(&read);
            self.take_sources();
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
            // A text that was good in an earlier life may break a schema of this one.
            if self.config.get(key).is_some_and(|kept| !self.is_sound(key, kept)) {
                self.config.remove(key);
            }
        }
    }

    /// Notes how the `ConfigMap` was made. If a program made it, returns the keys that it has never contained: for
    /// these keys neither the missing key nor an empty section removes the kept text.
    fn hear_origin(&mut self, data: &BTreeMap<String, String>, provenance: &Provenance) -> BTreeSet<String> {
        let (uid, is_as_made) = (&provenance.uid, provenance.is_as_made(data));
        if provenance.made_with.is_none() {
            self.made = None;
            return BTreeSet::new();
        }
        let is_flag = |key: &str| key.ends_with("Enabled") || key.ends_with("Maintenance");
        let says = |key: &str, text: &str| match key {
            SOURCES => crate::sources::read(text) != Some(Named::new()),
            key => is_flag(key) || flat::read(text, key == "global") != Some(Flat::new()),
        };
        let (edited, mut unsaid) = match self.made.take().filter(|(known, ..)| known == uid) {
            Some((_, edited, unsaid)) => (edited, unsaid),
            None => (false, self.config.keys().cloned().collect()),
        };
        unsaid.retain(|key| data.get(key).is_none_or(|text| !says(key, text)));
        self.made = Some((uid.clone(), edited || !is_as_made, unsaid.clone()));
        unsaid
    }

    /// Forgets texts of an earlier life that break a schema of this one.
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

    /// Whether the texts are known neither from a `ConfigMap` nor from the life before.
    pub fn is_lost(&self) -> bool {
        self.state_known && self.state_lost && !self.people_spoke
    }

    /// Notes that a person confirmed the loss.
    pub fn loss_confirmed(&mut self) {
        self.people_spoke = true;
    }

    /// The text that is applied beside a `ConfigMap` of a program which has never contained this key.
    pub fn kept_beside(&self, key: &str) -> Option<&String> {
        let (_, _, unsaid) = self.made.as_ref()?;
        self.config.get(key).filter(|_| unsaid.contains(key))
    }

    /// Whether values are applied for the module, its own or global ones.
    pub fn has_values_for(&self, module: &str) -> bool {
        let filled = |key: &str| {
            let text = self.config.get(key);
            text.is_some_and(|text| flat::read(text, key == "global") != Some(Flat::new()))
        };
        filled("global") || filled(&key_of(module))
    }

    /// Whether the ConfigMap has a key of the module: values, flag, or maintenance.
    pub fn says_anything_of(&self, module: &str) -> bool {
        let key = key_of(module);
        let there = |suffix: &str| self.config.contains_key(&format!("{key}{suffix}"));
        self.has_values_for(module) || there("Enabled") || there("Maintenance")
    }

    /// Whether people maintain the module's objects.
    pub fn in_maintenance(&self, module: &str) -> bool {
        let text = self.config.get(&format!("{}Maintenance", key_of(module)));
        text.and_then(|text| flat::read_maintenance(text)).unwrap_or_default()
    }

    /// The texts of a reading, with the keys that we wrote after its version.
    pub fn with_own(&self, version: u64, data: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut data = data.clone();
        let later = self.written.iter().filter(|(_, (written, _))| *written > version);
        data.extend(later.map(|(key, (_, text))| (key.clone(), text.clone())));
        data
    }

    /// Notes the answer of an enabled script. A script that was started earlier may answer later.
    pub fn script_answered(&mut self, module: &str, id: JobId, answer: bool) {
        if self.scripts.get(module).is_none_or(|(last, _)| *last < id) {
            self.scripts.insert(module.to_owned(), (id, answer));
        }
    }

    /// Notes that an enabled script failed, which makes its last answer void.
    pub fn script_failed(&mut self, module: &str) {
        self.scripts.remove(module);
    }

    /// Notes our successful write, which created the `ConfigMap` if there was none. It says nothing about other keys.
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

    /// Whether this reading is older than the known state. While the `ConfigMap` is missing, a reading of the last
    /// known version is new.
    pub fn is_stale(&self, read: &ConfigRead) -> bool {
        let ConfigRead::Present { version, .. } = read else {
            return false;
        };
        *version < self.version.max(self.floor) || *version == self.version && self.raw.is_some()
    }

    /// Notes the flags in the output of a global hook's run.
    pub fn hook_said(&mut self, hook: &HookId, labels: &HookLabels, flags: Flags) {
        self.said.retain(|(said, of, _)| said != hook || of != labels);
        self.said.push((hook.clone(), labels.clone(), flags));
    }

    /// Notes that this run counts as a success, and so do its flags.
    pub fn hook_counts(&mut self, hook: &HookId, labels: &HookLabels) {
        let said = self.said.iter().position(|(said, of, _)| said == hook && of == labels);
        if let Some(index) = said {
            let (_, _, flags) = self.said.remove(index);
            self.flags.extend(flags);
        }
    }

    /// The module as it was read from disk.
    pub fn knows(&self, module: &str) -> Option<&ModuleSpec> {
        self.modules.as_ref()?.0.get(module)
    }

    /// Whether the module would run by files and `ConfigMap` alone.
    pub fn would_run(&self, module: &str) -> bool {
        let flag = self.overheard.get(&format!("{}Enabled", key_of(module))).copied();
        let sound = self.knows(module).filter(|spec| !spec.broken);
        sound.is_some_and(|spec| flag.or(spec.enabled) == Some(true))
    }

    /// Whether the module runs by files and `ConfigMap`, and no other source can switch it off or hold it.
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
}
