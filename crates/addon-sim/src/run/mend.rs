//! The repairs that people make when they see what is wrong, so that everything can come to rest. Some faults stay.

use std::collections::{BTreeMap, BTreeSet};

use super::{Due, Run};
use crate::action::{Action, CommonFile, Harm};
use crate::checks::Violation;
use crate::dice::Dice;
use crate::flat::{self, Flat};
use crate::schema::{self, layered};
use crate::setup::{HookSpec, ModuleSpec, key_of};
use crate::sources::SOURCES;

impl Run<'_> {
    pub(super) fn mend(&mut self) -> Result<(), Violation> {
        self.world.heal();
        self.act(&Action::Judge)?;
        self.ambushes.clear();
        self.meddlers.clear();
        self.future.retain(|_, due| !matches!(due, Due::Acts(_)));
        self.watch_delay = 20;
        let mut dice = self.world.dice("mend");
        if self.world.common != CommonFile::Whole {
            self.act(&Action::CommonFile(CommonFile::Whole))?;
        }
        self.mend_modules(&mut dice)?;
        self.mend_config(&mut dice)?;
        self.mend_registry()?;
        self.end_quarrels()?;
        self.note("nothing fails any more".to_owned());
        if self.world.disturbed || self.disk_differs() {
            self.note("killed, because the directories are not as they were read".to_owned());
            self.restart();
        }
        Ok(())
    }

    fn mend_modules(&mut self, dice: &mut Dice) -> Result<(), Violation> {
        // A foreign release with the name of a release without a module would block that release's purge for ever.
        let ours = self.life.listed.iter().filter(|(_, ours)| **ours);
        let names: Vec<_> = ours.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.act(&Action::RemoveForeign(name))?;
        }
        for name in self.world.shelves.keys().cloned().collect::<Vec<_>>() {
            self.act(&Action::RemoveForeign(name))?;
        }
        let modules = self.world.setup.modules.clone();
        for module in &modules {
            self.act(&Action::RemoveForeign(module.name.clone()))?;
            if module.broken && dice.chance(70) {
                let (values, enabled) = (module.values.clone(), module.enabled);
                self.act(&Action::Alter {
                    module: module.name.clone(),
                    values,
                    enabled,
                    broken: false,
                })?;
            }
        }
        Ok(())
    }

    fn mend_config(&mut self, dice: &mut Dice) -> Result<(), Violation> {
        // Without these sections a hook or helm would fail for ever.
        let mut wanted = self.savers();
        wanted.extend(self.lacking_for_helm().into_keys());
        if self.world.config.data.is_none() && (!wanted.is_empty() || dice.chance(60)) {
            let section = |key: &String| (key.clone(), flat::write(&Flat::from([("k0".to_owned(), 2)])));
            let data = wanted.iter().map(section).collect();
            self.act(&Action::ApplyConfigMap { data })?;
        }
        for (key, text) in self.world.config.data.clone().unwrap_or_default() {
            let sound = schema::is_sound(&self.world.setup.modules, &key, &text);
            if !sound && (wanted.contains(&key) || dice.chance(60)) {
                let text = match key.as_str() {
                    key if key.ends_with("Enabled") => "true",
                    key if key.ends_with("Maintenance") || key == SOURCES => "",
                    _ => "k1: 4\n",
                };
                let text = Some(text.to_owned());
                self.act(&Action::Edit { key, text })?;
            }
        }
        for (key, missing) in self.lacking_for_helm() {
            let mut section = self.sound_section(&key);
            section.insert(missing, 4);
            let text = Some(flat::write(&section));
            self.act(&Action::Edit { key, text })?;
        }
        for module in self.world.all_files().cloned().collect::<Vec<_>>() {
            let key = format!("{}Maintenance", module.key());
            if self.world.config.text(&key).is_some() && dice.chance(50) {
                self.act(&Action::Edit { key, text: None })?;
            }
        }
        Ok(())
    }

    /// The keys of sections that hooks write.
    fn savers(&self) -> BTreeSet<String> {
        let saves = |hooks: &[HookSpec]| hooks.iter().any(HookSpec::saves);
        let setup = &self.world.setup;
        let saving = self.world.all_files().filter(|module| saves(&module.hooks));
        let mut savers: BTreeSet<String> = saving.map(ModuleSpec::key).collect();
        if saves(&setup.global_hooks) {
            savers.insert("global".to_owned());
        }
        savers
    }

    /// The values that helm needs and that neither files nor sections have, by key of the section.
    fn lacking_for_helm(&self) -> BTreeMap<String, String> {
        let lacks = |module: &ModuleSpec| {
            let missing = module.schema.as_ref()?.for_helm.clone()?;
            let key = module.key();
            let there = layered(module, self.sound_section(&key)).contains_key(&missing);
            (!there).then_some((key, missing))
        };
        self.world.setup.modules.iter().filter_map(lacks).collect()
    }

    /// The section under this key, if it can be used.
    fn sound_section(&self, key: &str) -> Flat {
        let sound = |text: &&String| schema::is_sound(&self.world.setup.modules, key, text);
        let text = self.world.config.text(key).filter(sound);
        text.and_then(|text| flat::read(text, false)).unwrap_or_default()
    }

    /// Leaves one of the modules that render the same object. The release of another of these modules is removed if
    /// that module is broken or has no directory.
    fn end_quarrels(&mut self) -> Result<(), Violation> {
        let mut sharing: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for module in self.world.all_files() {
            if let Some(object) = &module.shares {
                sharing.entry(object.clone()).or_default().push(module.name.clone());
            }
        }
        for (object, modules) in sharing {
            let kept = self.world.dice("quarrel").pick(&modules).clone();
            if modules.len() > 1 && self.world.config.data.is_none() {
                self.act(&Action::ApplyConfigMap { data: BTreeMap::new() })?;
            }
            for name in modules.iter().filter(|name| **name != kept) {
                let key = format!("{}Enabled", key_of(name));
                let text = Some("false".to_owned());
                self.act(&Action::Edit { key, text })?;
            }
            let stays = |name: &String| {
                let module = self.world.module(name);
                *name != kept && module.is_none_or(|module| module.broken)
            };
            let releases = self.world.releases.iter();
            let left = releases.filter(|(name, release)| stays(name) && release.objects.contains(&object));
            let left: Vec<String> = left.map(|(name, _)| name.clone()).collect();
            for release in left {
                let harm = Harm::Release;
                self.act(&Action::Damage { release, harm })?;
            }
        }
        Ok(())
    }
}
