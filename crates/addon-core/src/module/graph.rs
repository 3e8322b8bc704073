//! The order in which modules run: by number, and by what they need.
//!
//! A number's modules start after all lower ones have passed. A module that needs another of a higher number is
//! lifted to that number. Cycles and missing names are found here, before anything is applied.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::name::ModuleName;

/// Why a module cannot be given a place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Blocked {
    /// It needs a name that no directory holds.
    #[error("module '{0}', named in dependsOn of its module.yaml, does not exist in any modules directory")]
    Missing(ModuleName),
    /// It needs itself, by way of these.
    #[error("dependsOn goes round in a circle: {}", path(.0))]
    Cycle(Vec<ModuleName>),
    /// What it needs is itself blocked.
    #[error("module '{0}', which it needs, cannot run itself")]
    Needs(ModuleName),
}

fn path(names: &[ModuleName]) -> String {
    names.iter().map(ModuleName::as_str).collect::<Vec<_>>().join(" → ")
}

/// One module's wishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its order number.
    pub order: u32,
    /// What it needs.
    pub needs: Vec<ModuleName>,
}

/// Groups of modules that may run side by side, lowest first, and those without a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every placed module once; within a group sorted by name.
    pub groups: Vec<Vec<ModuleName>>,
    /// The rest, with the reason.
    pub blocked: BTreeMap<ModuleName, Blocked>,
}

/// Places all modules.
pub fn plan(nodes: &BTreeMap<ModuleName, Node>) -> Plan {
    let blocked = blocked(nodes);
    let mut level: BTreeMap<&ModuleName, u32> = BTreeMap::new();
    for name in nodes.keys().filter(|name| !blocked.contains_key(*name)) {
        lift(name, nodes, &mut level);
    }
    let mut groups: BTreeMap<u32, Vec<ModuleName>> = BTreeMap::new();
    for (name, level) in level {
        groups.entry(level).or_default().push(name.clone());
    }
    Plan {
        groups: groups.into_values().collect(),
        blocked,
    }
}

/// The number at which a module runs: its own, or a higher one of what it needs.
fn lift<'a>(
    name: &'a ModuleName,
    nodes: &'a BTreeMap<ModuleName, Node>,
    level: &mut BTreeMap<&'a ModuleName, u32>,
) -> u32 {
    if let Some(known) = level.get(name) {
        return *known;
    }
    let node = &nodes[name];
    let mut lifted = node.order;
    for need in &node.needs {
        lifted = lifted.max(lift(need, nodes, level));
    }
    level.insert(name, lifted);
    lifted
}

/// The modules that cannot run, whoever is at fault.
fn blocked(nodes: &BTreeMap<ModuleName, Node>) -> BTreeMap<ModuleName, Blocked> {
    let mut blocked: BTreeMap<ModuleName, Blocked> = BTreeMap::new();
    for (name, node) in nodes {
        if let Some(missing) = node.needs.iter().find(|need| !nodes.contains_key(*need)) {
            blocked.insert(name.clone(), Blocked::Missing(missing.clone()));
        } else if let Some(cycle) = cycle_through(name, nodes) {
            blocked.insert(name.clone(), Blocked::Cycle(cycle));
        }
    }
    loop {
        let more: Vec<_> = nodes
            .iter()
            .filter(|(name, _)| !blocked.contains_key(*name))
            .filter_map(|(name, node)| Some((name, node.needs.iter().find(|need| blocked.contains_key(*need))?)))
            .map(|(name, need)| (name.clone(), Blocked::Needs(need.clone())))
            .collect();
        if more.is_empty() {
            return blocked;
        }
        blocked.extend(more);
    }
}

/// A shortest way from a module back to itself.
fn cycle_through(start: &ModuleName, nodes: &BTreeMap<ModuleName, Node>) -> Option<Vec<ModuleName>> {
    let mut seen = BTreeSet::new();
    let mut ways = vec![vec![start.clone()]];
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last().unwrap_or(start);
            for need in nodes.get(last).map(|node| node.needs.as_slice()).unwrap_or_default() {
                let mut next = way.clone();
                next.push(need.clone());
                if need == start {
                    return Some(next);
                }
                if seen.insert(need.clone()) {
                    longer.push(next);
                }
            }
        }
        ways = longer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(rows: &[(&str, u32, &[&str])]) -> BTreeMap<ModuleName, Node> {
        rows.iter()
            .map(|(name, order, needs)| {
                let needs = needs.iter().map(|need| ModuleName::parse(need).unwrap()).collect();
                (ModuleName::parse(name).unwrap(), Node { order: *order, needs })
            })
            .collect()
    }

    fn shown(plan: &Plan) -> Vec<Vec<&str>> {
        plan.groups
            .iter()
            .map(|group| group.iter().map(ModuleName::as_str).collect())
            .collect()
    }

    #[test]
    fn numbers_make_groups() {
        let plan = plan(&nodes(&[("b", 20, &[]), ("a", 10, &[]), ("c", 20, &[])]));
        assert_eq!(shown(&plan), [vec!["a"], vec!["b", "c"]]);
        assert!(plan.blocked.is_empty());
    }

    #[test]
    fn a_need_of_a_higher_number_lifts_the_module() {
        let plan = plan(&nodes(&[("low", 10, &["high"]), ("high", 30, &[]), ("mid", 20, &[])]));
        assert_eq!(shown(&plan), [vec!["mid"], vec!["high", "low"]]);
    }

    #[test]
    fn a_cycle_is_told_with_its_path_and_blocks_who_needs_it() {
        let plan = plan(&nodes(&[
            ("a", 1, &["b"]),
            ("b", 1, &["a"]),
            ("c", 1, &["b"]),
            ("d", 1, &[]),
        ]));
        assert_eq!(shown(&plan), [vec!["d"]]);
        let text = |name: &str| plan.blocked[&ModuleName::parse(name).unwrap()].to_string();
        assert_eq!(text("a"), "dependsOn goes round in a circle: a → b → a");
        assert_eq!(text("b"), "dependsOn goes round in a circle: b → a → b");
        assert_eq!(text("c"), "module 'b', which it needs, cannot run itself");
    }

    #[test]
    fn a_missing_name_is_told() {
        let plan = plan(&nodes(&[("a", 1, &["nowhere"]), ("b", 1, &["a"])]));
        assert!(plan.groups.is_empty());
        assert!(matches!(
            plan.blocked[&ModuleName::parse("a").unwrap()],
            Blocked::Missing(_)
        ));
        assert!(matches!(
            plan.blocked[&ModuleName::parse("b").unwrap()],
            Blocked::Needs(_)
        ));
    }
}
