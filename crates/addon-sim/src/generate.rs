//! Worlds and histories out of a seed. All weights that decide what the simulator tests are in this module.

mod answers;
mod clock;
mod confirms;
mod discovery;
mod files;
mod halves;
mod hands;
mod history;
mod leaders;
mod loops;
mod renewals;
mod returns;
mod reviews;
mod shapes;
mod silence;
mod slow;
mod sources;
mod traps;
mod trials;
mod whims;

use std::collections::BTreeMap;

use crate::dice::Dice;
use crate::flat::{self, Flat};
use crate::run::Case;
use crate::setup::{Deed, HookSpec, ModuleSpec, ReleaseSpec, Schedule, Script, Setup, Source, Watch};

/// Names of modules. Each can be converted to camelCase and back.
const NAMES: [&str; 6] = ["alpha", "beta-two", "gamma", "delta", "epsilon-long-name", "zeta"];
/// Releases without a module.
const STRAYS: [&str; 4] = ["old-one", "old-two", "old-three", "the-operator"];
/// Keys that people set. Hooks only read them.
const KEYS: [&str; 3] = ["k0", "k1", "k2"];
/// Kinds of objects that hooks watch.
const KINDS: [&str; 3] = ["Pod", "Node", "Job"];

/// The case for a seed.
pub fn case(seed: u64, actions: usize) -> Case {
    let mut dice = Dice::new(seed);
    let mut setup = setup(&mut dice);
    let mut actions = history::actions(&mut dice, &setup, actions);
    if dice.chance(12) {
        alone(&mut setup);
    }
    reviews::add(&mut Dice::named(seed, "reviews", 0), &mut setup, &mut actions);
    reviews::touch(&mut Dice::named(seed, "touch", 0), &setup, &mut actions);
    traps::set(&mut Dice::named(seed, "traps", 0), &mut setup, &mut actions);
    shapes::add(&mut Dice::named(seed, "shapes", 0), &mut setup, &mut actions);
    hands::add(&mut Dice::named(seed, "hands", 0), &mut setup, &mut actions);
    reviews::want(&mut Dice::named(seed, "edits", 0), &mut setup, &mut actions);
    halves::add(&mut Dice::named(seed, "halves", 0), &setup, &mut actions);
    leaders::elect(&mut Dice::named(seed, "leaders", 0), &mut setup, &mut actions);
    slow::add(&mut Dice::named(seed, "slow", 0), &mut setup, &mut actions);
    slow::hang(&mut Dice::named(seed, "hang", 0), &mut setup);
    whims::add(&mut Dice::named(seed, "whims", 0), &mut setup, &mut actions);
    silence::fall(&mut Dice::named(seed, "silence", 0), &mut setup, &mut actions);
    files::lose(&mut Dice::named(seed, "files", 0), &mut setup, &mut actions);
    confirms::add(&mut Dice::named(seed, "confirms", 0), &setup, &mut actions);
    discovery::fail(&mut Dice::named(seed, "discovery", 0), &setup, &mut actions);
    clock::set(&mut Dice::named(seed, "clock", 0), &mut actions);
    trials::begin(&mut Dice::named(seed, "trials", 0), &mut setup, &mut actions);
    answers::lose(&mut Dice::named(seed, "answers", 0), &mut setup, &mut actions);
    renewals::begin(&mut Dice::named(seed, "renewals", 0), &setup, &mut actions);
    loops::add(&mut Dice::named(seed, "loops", 0), &mut setup, &mut actions);
    returns::add(&mut Dice::named(seed, "returns", 0), &mut setup);
    sources::name(seed, &mut Dice::named(seed, "sources", 0), &mut setup, &mut actions);
    Case { seed, setup, actions }
}

fn setup(dice: &mut Dice) -> Setup {
    let count = dice.count(1, 6);
    let names: Vec<&str> = NAMES[..count].to_vec();
    let mut modules: Vec<ModuleSpec> = names.iter().map(|name| module(dice, name, &names)).collect();
    if dice.chance(70) {
        // Most worlds have no cycles: a module depends only on modules before it.
        for index in 0..modules.len() {
            let before: Vec<String> = modules[..index].iter().map(|module| module.name.clone()).collect();
            modules[index].needs.retain(|need| before.contains(need));
        }
    }
    if dice.chance(15) {
        let index = dice.count(0, modules.len() as u64 - 1);
        twins(dice, &mut modules[index].hooks);
    }
    let mut global_hooks: Vec<HookSpec> = (0..pick_count(dice, &[40, 30, 20, 10]))
        .map(|n| global_hook(dice, n))
        .collect();
    flags(dice, &mut global_hooks, &names);
    Setup {
        alone: false,
        strict: dice.chance(12),
        elected: false,
        hook_slots: dice.count(1, 4),
        review_slots: 2,
        edits: false,
        helm_slots: dice.count(1, 3),
        patience: None,
        restores: false,
        ignore: dice.chance(30).then(|| "the-operator".to_owned()),
        global: values(dice),
        global_hooks,
        config: dice.chance(80).then(|| config(dice, &names)),
        common: Vec::new(),
        releases: releases(dice, &names),
        trial: None,
        sources: Vec::new(),
        faults: faults(dice, &names),
        modules,
    }
}

/// Makes a world without modules: all hooks become global, without the stages that only modules have.
fn alone(setup: &mut Setup) {
    let modules = std::mem::take(&mut setup.modules);
    let hooks = modules.into_iter().flat_map(|module| module.hooks).take(3);
    setup.global_hooks.extend(hooks);
    for (index, hook) in setup.global_hooks.iter_mut().enumerate() {
        hook.name = format!("hooks/h{index}.sh");
        hook.stages.retain(|stage, _| stage == "onStartup");
        if hook.stages.is_empty() && hook.schedules.is_empty() && hook.watches.is_empty() {
            hook.stages.insert("onStartup".to_owned(), 1);
        }
        hook.does.clear();
        hook.trespasses = 0;
    }
    setup.releases.clear();
    setup.alone = true;
    setup.strict = false;
}

/// Failures at the start, so that other modules wait when the failed one recovers.
fn faults(dice: &mut Dice, names: &[&str]) -> BTreeMap<String, u32> {
    let mut what: Vec<String> = names
        .iter()
        .filter(|_| dice.chance(12))
        .map(|name| format!("helm/{name}"))
        .collect();
    if dice.chance(15) {
        what.push("save-config".to_owned());
    }
    what.into_iter()
        .map(|what| (what, u32::try_from(dice.between(1, 4)).unwrap_or(1)))
        .collect()
}

/// Adds two hooks of one owner that save config values at the same time, each in a queue of its own.
fn twins(dice: &mut Dice, hooks: &mut Vec<HookSpec>) {
    for queue in ["q-one", "q-two"] {
        let key = format!("c{}", hooks.len());
        hooks.push(HookSpec {
            name: format!("hooks/h{}.sh", hooks.len()),
            schedules: vec![Schedule {
                crontab: "*/3 * * * *".to_owned(),
                queue: Some(queue.to_owned()),
                allow_failure: false,
            }],
            does: vec![Deed::SetConfig { key, to: number(dice) }],
            ..HookSpec::default()
        });
    }
}

/// A random index, by weights.
fn pick_count(dice: &mut Dice, weights: &[u64]) -> usize {
    let mut left = dice.between(0, weights.iter().sum());
    for (index, weight) in weights.iter().enumerate() {
        if left < *weight {
            return index;
        }
        left -= weight;
    }
    0
}

fn values(dice: &mut Dice) -> Flat {
    let keys: Vec<&str> = KEYS.into_iter().filter(|_| dice.chance(40)).collect();
    keys.into_iter().map(|key| (key.to_owned(), number(dice))).collect()
}

fn number(dice: &mut Dice) -> i64 {
    i64::try_from(dice.between(0, 10)).unwrap_or_default()
}

fn module(dice: &mut Dice, name: &str, names: &[&str]) -> ModuleSpec {
    let others: Vec<&str> = names.iter().copied().filter(|other| *other != name).collect();
    let mut needs = Vec::new();
    if !others.is_empty() && dice.chance(30) {
        needs.push((*dice.pick(&others)).to_owned());
    }
    if dice.chance(3) {
        needs.push("nowhere".to_owned());
    }
    let script = dice.chance(25).then(|| match dice.between(0, 5) {
        0 => Script::Always(dice.chance(50)),
        1 | 2 => Script::OwnKey((*dice.pick(&KEYS)).to_owned()),
        3 => Script::GlobalKey((*dice.pick(&KEYS)).to_owned()),
        _ => others
            .first()
            .map_or(Script::Always(true), |other| Script::With((*other).to_owned())),
    });
    let order = u32::try_from(dice.between(1, 5) * 10).unwrap_or_default();
    ModuleSpec {
        name: name.to_owned(),
        order,
        values: values(dice),
        enabled: [Some(true), Some(true), Some(true), Some(false), None][dice.count(0, 4)],
        chart: dice.chance(85),
        ignores_global: dice.chance(40),
        returns: false,
        needs,
        script,
        slow_script: false,
        hooks: (0..pick_count(dice, &[35, 35, 20, 10]))
            .map(|n| module_hook(dice, n))
            .collect(),
        broken: dice.chance(3),
        crds: dice.chance(30),
        conversions: false,
        hangs: false,
        schema: None,
        shares: None,
    }
}

fn module_hook(dice: &mut Dice, index: usize) -> HookSpec {
    let stages = [
        ("onStartup", 25),
        ("beforeHelm", 45),
        ("afterHelm", 30),
        ("beforeDeleteHelm", 20),
        ("afterDeleteHelm", 20),
    ];
    hook(dice, index, &stages, 35)
}

fn global_hook(dice: &mut Dice, index: usize) -> HookSpec {
    hook(
        dice,
        index,
        &[("onStartup", 40), ("beforeAll", 45), ("afterAll", 40)],
        30,
    )
}

fn hook(dice: &mut Dice, index: usize, stages: &[(&str, u64)], scheduled: u64) -> HookSpec {
    let mut spec = HookSpec {
        name: format!("hooks/h{index}.sh"),
        stages: BTreeMap::new(),
        fails: if dice.chance(20) {
            u32::try_from(dice.between(1, 4)).unwrap_or_default()
        } else {
            0
        },
        trespasses: u32::from(dice.chance(6)),
        slow: dice.chance(12),
        ..HookSpec::default()
    };
    for (stage, percent) in stages {
        if dice.chance(*percent) {
            spec.stages.insert((*stage).to_owned(), number(dice));
        }
    }
    if dice.chance(scheduled) {
        for _ in 0..dice.count(1, 2) {
            spec.schedules.push(Schedule {
                crontab: (*dice.pick(&["*/3 * * * *", "*/5 * * * *", "30 */4 * * * *"])).to_owned(),
                queue: dice.chance(60).then(|| (*dice.pick(&["q-one", "q-two"])).to_owned()),
                allow_failure: dice.chance(25),
            });
        }
    }
    if dice.chance(35) {
        watches(dice, &mut spec);
    }
    if dice.chance(8) {
        spec.limit = Some((dice.between(1, 4), dice.between(1, 3)));
    }
    if spec.stages.is_empty() && spec.schedules.is_empty() && spec.watches.is_empty() {
        let (stage, _) = dice.pick(stages);
        spec.stages.insert((*stage).to_owned(), number(dice));
    }
    if !spec.runs() {
        // The hook runs only after a change, which may never come.
        return spec;
    }
    for _ in 0..pick_count(dice, &[20, 60, 20]) {
        let to = match dice.between(0, 4) {
            0 if spec.follows() => Source::Own((*dice.pick(&KEYS)).to_owned()),
            1 if spec.follows() => Source::Global((*dice.pick(&KEYS)).to_owned()),
            _ => Source::Number(number(dice)),
        };
        spec.does.push(Deed::Set {
            key: format!("h{index}_{}", spec.does.len()),
            to,
        });
    }
    if spec.follows() && dice.chance(20) {
        spec.does.push(Deed::SetConfig {
            key: format!("c{index}"),
            to: number(dice),
        });
    }
    spec
}

fn watches(dice: &mut Dice, spec: &mut HookSpec) {
    for _ in 0..dice.count(1, 3) {
        let queue = dice.chance(45).then(|| (*dice.pick(&["q-one", "q-two"])).to_owned());
        let watch = Watch {
            kind: (*dice.pick(&KINDS)).to_owned(),
            queue,
            group: dice.chance(30).then(|| "g".to_owned()),
            skips: dice.chance(20),
            unawaited: dice.chance(30),
            // A hook that runs only once might never do its deeds if its failure were ignored.
            allow_failure: spec.follows() && dice.chance(25),
        };
        spec.watches.push(watch);
    }
}

/// Lets each module be switched by at most one global hook, so that the final state does not depend on an order.
fn flags(dice: &mut Dice, hooks: &mut [HookSpec], names: &[&str]) {
    if hooks.is_empty() {
        return;
    }
    for name in names {
        if !dice.chance(20) {
            continue;
        }
        let index = dice.count(0, hooks.len() as u64 - 1);
        let hook = &mut hooks[index];
        if !hook.runs() {
            continue;
        }
        let module = (*name).to_owned();
        if hook.follows() && dice.chance(50) {
            hook.does.push(Deed::FlagFrom {
                module,
                key: (*dice.pick(&KEYS)).to_owned(),
            });
        } else {
            let on = [Some(true), Some(false), None][dice.count(0, 2)];
            hook.does.push(Deed::Flag { module, on });
        }
    }
}

fn config(dice: &mut Dice, names: &[&str]) -> BTreeMap<String, String> {
    let mut data = BTreeMap::new();
    if dice.chance(50) {
        data.insert("global".to_owned(), flat::write(&values(dice)));
    }
    for name in names {
        let key = crate::setup::key_of(name);
        if dice.chance(40) {
            data.insert(format!("{key}Enabled"), dice.chance(75).to_string());
        }
        if dice.chance(50) {
            data.insert(key, flat::write(&values(dice)));
        }
    }
    if dice.chance(15) {
        data.insert("somebodyElse".to_owned(), "k0: 1\n".to_owned());
    }
    if dice.chance(10) {
        let keys: Vec<String> = data.keys().cloned().collect();
        if !keys.is_empty() {
            let key = dice.pick(&keys).clone();
            data.insert(key, "k0: [1".to_owned());
        }
    }
    data
}

fn releases(dice: &mut Dice, names: &[&str]) -> Vec<ReleaseSpec> {
    let mut releases = Vec::new();
    for name in names {
        if dice.chance(30) {
            releases.push(ReleaseSpec {
                name: (*name).to_owned(),
                ours: dice.chance(94),
                pending: dice.chance(20),
            });
        }
    }
    for stray in STRAYS {
        if dice.chance(25) {
            releases.push(ReleaseSpec {
                name: stray.to_owned(),
                ours: dice.chance(70),
                pending: dice.chance(10),
            });
        }
    }
    releases
}
