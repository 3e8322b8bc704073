//! Schemas of modules, and objects that two modules render, added to a world and its history.

use super::{KEYS, Setup, number};
use crate::action::{Action, Timed};
use crate::dice::Dice;
use crate::flat::Flat;
use crate::schema::SchemaSpec;
use crate::setup::ModuleSpec;

/// An object that another module may render, too.
const SHARED: &str = "settings/of-all";

pub(super) fn add(dice: &mut Dice, setup: &mut Setup, actions: &mut [Timed]) {
    if setup.alone {
        return;
    }
    if dice.chance(35) {
        for module in &mut setup.modules {
            if dice.chance(60) {
                constrain(dice, module, actions);
            }
        }
    }
    if setup.modules.len() > 1 && dice.chance(15) {
        let first = dice.count(0, setup.modules.len() as u64 - 2);
        let second = dice.count(first as u64 + 1, setup.modules.len() as u64 - 1);
        for index in [first, second] {
            let module = &mut setup.modules[index];
            module.chart = true;
            module.shares = Some(SHARED.to_owned());
        }
    }
}

/// Gives a module schemas. The module's files fit the schemas. People may write values that do not fit, and so do some
/// of the module's hooks in their first runs.
fn constrain(dice: &mut Dice, module: &mut ModuleSpec, actions: &mut [Timed]) {
    let most = i64::try_from(dice.between(5, 9)).unwrap_or_default();
    let chosen = |dice: &mut Dice, percent| -> Vec<String> {
        let keys = KEYS.into_iter().filter(|_| dice.chance(percent));
        keys.map(str::to_owned).collect()
    };
    let default = |dice: &mut Dice, key: String| (key, number(dice).min(most));
    let bounded = chosen(dice, 70);
    let defaults: Flat = chosen(dice, 30).into_iter().map(|key| default(dice, key)).collect();
    let late_count = dice.count(0, 1);
    let late_defaults: Flat = (0..late_count)
        .map(|index| (format!("s{index}"), number(dice)))
        .collect();
    let for_helm = dice.chance(35).then(|| (*dice.pick(&KEYS)).to_owned());
    lower(&mut module.values, most);
    for Timed { action, .. } in actions {
        if let Action::Alter {
            module: name, values, ..
        } = action
            && *name == module.name
        {
            lower(values, most);
        }
    }
    // Only hooks that run in every life of their module: other hooks might never make their last patch that breaks the
    // schema.
    for hook in module.hooks.iter_mut().filter(|hook| hook.runs()) {
        if dice.chance(30) {
            hook.breaks = u32::try_from(dice.between(1, 3)).unwrap_or(1);
        }
    }
    module.schema = Some(SchemaSpec {
        bounded,
        most,
        defaults,
        late_defaults,
        for_helm,
        ruled: most % 2 == 0,
    });
}

fn lower(values: &mut Flat, most: i64) {
    for value in values.values_mut() {
        *value = (*value).min(most);
    }
}
