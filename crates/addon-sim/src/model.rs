//! The reference model: the final state of a world, computed from the documents alone: directories, `ConfigMap`, programs
//! of hooks.
//!
//! Must never use the core. It knows no order of events, only the state at rest.

use std::collections::{BTreeMap, BTreeSet};

use crate::flat::{self, Flat};
use crate::schema::layered;
use crate::setup::{Deed, HookSpec, ModuleSpec, Script, Setup, Source, key_of};

/// The final state of a world.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Modules that run.
    pub enabled: BTreeSet<String>,
    /// The enabled modules that cannot run: cycles, missing names, bad files, and modules that depend on a module that cannot.
    pub stuck: BTreeSet<String>,
    /// The effective values of `global` and of each enabled module that can run.
    pub values: BTreeMap<String, Flat>,
    /// The values that hooks must have written into sections, by key of the section.
    pub written: BTreeMap<String, Flat>,
}

/// The final state of a world with these directories and these applied texts of the `ConfigMap`.
pub fn end(setup: &Setup, config: &BTreeMap<String, String>) -> End {
    let mut end = End::default();
    let section = |key: &str| {
        config
            .get(key)
            .and_then(|text| flat::read(text, key == "global"))
            .unwrap_or_default()
    };
    let written = writes(&setup.global_hooks);
    let mut below = setup.global.clone();
    below.extend(section("global"));
    below.extend(written.clone());
    let global = patched(&below, &below, &setup.global_hooks);
    let flags = flags(setup, &global);
    end.written.insert("global".to_owned(), written);
    for module in in_order(setup) {
        let key = module.key();
        let mut below = layered(module, section(&key));
        let flag = config
            .get(&format!("{key}Enabled"))
            .and_then(|text| flat::read_flag(text));
        let opinion = flag
            .or_else(|| flags.get(&module.name).copied().flatten())
            .or(module.enabled);
        let answer = module.script.as_ref().is_none_or(|script| match script {
            Script::Always(answer) => *answer,
            Script::OwnKey(key) => is_even(&below, key),
            Script::GlobalKey(key) => is_even(&global, key),
            Script::With(other) => end.enabled.contains(other),
        });
        if opinion != Some(true) || !answer {
            continue;
        }
        end.enabled.insert(module.name.clone());
        let written = writes(&module.hooks);
        below.extend(written.clone());
        end.written.insert(key, written);
        end.values
            .insert(module.name.clone(), patched(&below, &global, &module.hooks));
    }
    end.values.insert("global".to_owned(), global);
    end.stuck = stuck(setup, &end.enabled);
    for name in &end.stuck {
        end.values.remove(name);
        end.written.remove(&key_of(name));
    }
    end
}

/// The flags of modules that the global hooks set in the end.
fn flags(setup: &Setup, global: &Flat) -> BTreeMap<String, Option<bool>> {
    let mut flags = BTreeMap::new();
    for deed in setup
        .global_hooks
        .iter()
        .filter(|hook| hook.runs())
        .flat_map(|hook| &hook.does)
    {
        match deed {
            Deed::Flag { module, on } => drop(flags.insert(module.clone(), *on)),
            Deed::FlagFrom { module, key } => drop(flags.insert(module.clone(), Some(is_even(global, key)))),
            Deed::Set { .. } | Deed::SetConfig { .. } | Deed::Tick { .. } => {}
        }
    }
    flags
}

/// Modules by order number and name.
pub fn in_order(setup: &Setup) -> Vec<&ModuleSpec> {
    let mut modules: Vec<&ModuleSpec> = setup.modules.iter().collect();
    modules.sort_by_key(|module| (module.order, &module.name));
    modules
}

fn is_even(values: &Flat, key: &str) -> bool {
    values.get(key).copied().unwrap_or_default() % 2 == 0
}

/// The values that the hooks write into the section of the `ConfigMap`.
fn writes(hooks: &[HookSpec]) -> Flat {
    let deeds = hooks.iter().filter(|hook| hook.runs()).flat_map(|hook| &hook.does);
    let written = deeds.filter_map(|deed| match deed {
        Deed::SetConfig { key, to } => Some((key.clone(), *to)),
        Deed::Set { .. } | Deed::Tick { .. } | Deed::Flag { .. } | Deed::FlagFrom { .. } => None,
    });
    written.collect()
}

/// The values after all hooks of their owner have run. No hook writes a key that a hook reads.
fn patched(own: &Flat, global: &Flat, hooks: &[HookSpec]) -> Flat {
    let mut values = own.clone();
    for deed in hooks.iter().filter(|hook| hook.runs()).flat_map(|hook| &hook.does) {
        let (key, to) = match deed {
            Deed::Set { key, to } => (key, to),
            Deed::Tick { key } => (key, &Source::Number(0)),
            Deed::SetConfig { .. } | Deed::Flag { .. } | Deed::FlagFrom { .. } => continue,
        };
        let to = match to {
            Source::Number(number) => *number,
            Source::Own(key) => own.get(key).copied().unwrap_or_default() + 1,
            Source::Global(key) => global.get(key).copied().unwrap_or_default() + 1,
        };
        values.insert(key.clone(), to);
    }
    values
}

/// Enabled modules that cannot run.
pub fn stuck(setup: &Setup, enabled: &BTreeSet<String>) -> BTreeSet<String> {
    let find = |name: &str| setup.modules.iter().find(|module| module.name == name);
    // A module is able to run if all modules that it needs are able to run. Modules in a cycle never become able, so
    // cycles need no rule of their own.
    let mut able: BTreeSet<String> = BTreeSet::new();
    loop {
        let more: Vec<String> = enabled
            .iter()
            .filter(|name| !able.contains(*name))
            .filter(|name| {
                find(name).is_some_and(|module| !module.broken && module.needs.iter().all(|need| able.contains(need)))
            })
            .cloned()
            .collect();
        if more.is_empty() {
            return enabled.difference(&able).cloned().collect();
        }
        able.extend(more);
    }
}

/// The order number at which a module has its turn: its own, or the higher one of a module that it depends on.
pub fn level(setup: &Setup, name: &str) -> u32 {
    fn lift(setup: &Setup, name: &str, depth: usize) -> u32 {
        let Some(module) = setup.modules.iter().find(|module| module.name == name) else {
            return 0;
        };
        let needs = module.needs.iter().filter(|_| depth < setup.modules.len());
        needs
            .map(|need| lift(setup, need, depth + 1))
            .max()
            .unwrap_or_default()
            .max(module.order)
    }
    lift(setup, name, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, needs: &[&str]) -> ModuleSpec {
        ModuleSpec {
            name: name.to_owned(),
            enabled: Some(true),
            needs: needs.iter().map(ToString::to_string).collect(),
            ..ModuleSpec::default()
        }
    }

    #[test]
    fn circles_and_missing_names_and_who_needs_them_are_stuck() {
        let modules = vec![
            module("a", &["b"]),
            module("b", &["a"]),
            module("c", &["b"]),
            module("d", &[]),
            module("e", &["x"]),
        ];
        let end = end(
            &Setup {
                modules,
                ..Setup::default()
            },
            &BTreeMap::new(),
        );
        assert_eq!(end.stuck.iter().collect::<Vec<_>>(), ["a", "b", "c", "e"]);
        assert_eq!(end.enabled.len(), 5);
    }

    #[test]
    fn layers_lie_upon_each_other_in_their_order() {
        let mut alpha = module("alpha", &[]);
        alpha.values = Flat::from([("k0".to_owned(), 1), ("k1".to_owned(), 1)]);
        alpha.hooks.push(HookSpec {
            stages: BTreeMap::from([("beforeHelm".to_owned(), 1)]),
            does: vec![Deed::Set {
                key: "h".to_owned(),
                to: Source::Own("k1".to_owned()),
            }],
            ..HookSpec::default()
        });
        let config = BTreeMap::from([("alpha".to_owned(), "k1: 6\n".to_owned())]);
        let end = end(
            &Setup {
                modules: vec![alpha],
                ..Setup::default()
            },
            &config,
        );
        let expected = [("h", 7), ("k0", 1), ("k1", 6)].map(|(key, value)| (key.to_owned(), value));
        assert_eq!(end.values["alpha"], Flat::from(expected));
    }
}
