//! Modules from registries: names in the `ConfigMap`, their versions, and people who edit the names. Added to a world and its
//! history.

use super::reviews::insert;
use super::{Setup, module, values};
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::setup::{ModuleSpec, ReleaseSpec};
use crate::sources::{self, BROKEN, FilesSpec, Named, Quality, SOURCES, SourceSpec};

/// Modules without a directory.
const APART: [&str; 4] = ["from-afar", "remote", "fetched-one", "ahead"];

/// The seeds from which on all worlds with modules have sources.
const FIRST_SEED: u64 = 1 << 40;
/// The share of worlds with sources among the seeds before `FIRST_SEED`, in percent.
const SHARE: u64 = 12;

/// Names sources of modules in worlds with modules, if the seed is for such worlds.
pub(super) fn name(seed: u64, dice: &mut Dice, setup: &mut Setup, actions: &mut Vec<Timed>) {
    let is_chosen = seed >= FIRST_SEED || Dice::named(seed, "share", 0).chance(SHARE);
    if setup.alone || !is_chosen {
        return;
    }
    stock(dice, setup);
    if setup.sources.is_empty() {
        return;
    }
    let all = setup.sources.clone();
    if dice.chance(75) {
        let text = text(dice, &all);
        setup.config.get_or_insert_default().insert(SOURCES.to_owned(), text);
    }
    for Timed { action, .. } in actions.iter_mut() {
        if let Action::ApplyConfigMap { data } | Action::ReplaceConfigMap { data } | Action::MakeConfigMap { data } =
            action
            && dice.chance(70)
        {
            data.insert(SOURCES.to_owned(), text(dice, &all));
        }
    }
    for _ in 0..dice.count(1, 8) {
        event(dice, &all, actions);
    }
}

/// Fills the registry: some modules that have a directory, too, and some that have none.
fn stock(dice: &mut Dice, setup: &mut Setup) {
    let names: Vec<String> = setup.modules.iter().map(|module| module.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // Files that break their own schema could never be installed.
    let free = setup.modules.iter().filter(|module| module.schema.is_none());
    let mut modules: Vec<ModuleSpec> = free.filter(|_| dice.chance(35)).cloned().collect();
    for name in &APART[..dice.count(0, APART.len() as u64)] {
        modules.push(module(dice, name, &names));
        if dice.chance(40) {
            setup.releases.push(ReleaseSpec {
                name: (*name).to_owned(),
                ours: dice.chance(94),
                pending: dice.chance(20),
            });
        }
    }
    for module in modules {
        let module = ModuleSpec {
            enabled: [None, None, None, Some(true), Some(false)][dice.count(0, 4)],
            broken: false,
            ..module
        };
        let versions = (0..dice.count(0, 2)).map(|_| files(dice, &module)).collect();
        setup.sources.push(SourceSpec { module, versions });
    }
}

/// The files of a version. Bad ones are bad in a way that is noticed.
fn files(dice: &mut Dice, module: &ModuleSpec) -> FilesSpec {
    let stages = ["onStartup", "beforeHelm", "afterHelm"];
    let of_run = |stage: &&str| module.hooks.iter().any(|hook| hook.stages.contains_key(*stage));
    let quality = match dice.between(0, 10) {
        0..=1 if module.chart => Quality::FailsHelm,
        2 if stages.iter().any(of_run) => Quality::FailsHooks,
        3 => Quality::Mistake,
        _ => Quality::Good,
    };
    FilesSpec {
        values: values(dice),
        quality,
    }
}

fn text(dice: &mut Dice, all: &[SourceSpec]) -> String {
    let most = *dice.pick(&[60, 85, 100]);
    let mut named = Named::new();
    for SourceSpec { module, .. } in all {
        if dice.chance(most) {
            named.insert(module.name.clone(), dice.chance(70).then_some(module.order));
        }
    }
    sources::write(&named)
}

fn event(dice: &mut Dice, all: &[SourceSpec], actions: &mut Vec<Timed>) {
    let module = &dice.pick(all).module;
    let action = match dice.between(0, 20) {
        0..=4 => edit(Some(text(dice, all))),
        5 => edit(Some((*dice.pick(&BROKEN)).to_owned())),
        6..=7 => edit(dice.chance(30).then(String::new)),
        8..=9 => return change_of_mind(dice, all, actions),
        10..=14 => Action::Publish {
            module: module.name.clone(),
            files: files(dice, module),
        },
        15..=16 => Action::RegistryAnswers(dice.chance(60)),
        17 => Action::LoseCopies(module.name.clone()),
        _ => Action::Kill,
    };
    let is_edit = matches!(action, Action::Edit { .. });
    let is_loss = matches!(action, Action::LoseCopies(_));
    let place = insert(dice, actions, action);
    // An edit or a loss just before a start happens while no operator runs.
    if is_loss && dice.chance(80) || is_edit && dice.chance(35) {
        let (after, action) = (0, Action::Kill);
        actions.insert(place + 1, Timed { after, action });
    }
}

fn edit(text: Option<String>) -> Action {
    let key = SOURCES.to_owned();
    Action::Edit { key, text }
}

/// Takes sources out, and puts them back soon.
fn change_of_mind(dice: &mut Dice, all: &[SourceSpec], actions: &mut Vec<Timed>) {
    let texts = [None, Some(text(dice, all)), None, Some(text(dice, all))];
    let first = edit(Some(text(dice, all)));
    let place = insert(dice, actions, first);
    for (index, text) in texts.into_iter().take(dice.count(1, 4)).enumerate() {
        let after = dice.between(0, *dice.clone().pick(&[300, 3_000, 20_000]));
        let action = edit(text);
        actions.insert(place + 1 + index, Timed { after, action });
    }
}
