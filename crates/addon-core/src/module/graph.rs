//! The order in which modules run, by their numbers and their dependencies.
//!
//! The modules of a number start after all modules of lower numbers have passed. A module that depends on a module of a
//! higher number gets that higher number. Cycles and missing names are found here, before anything is applied.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use names::ModuleName;
use thiserror::Error;

/// The reason for which a module cannot be placed in the order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Blocked {
    /// The module depends on a name that no directory has.
    #[error("module '{0}', named in dependsOn of its module.yaml, does not exist in any modules directory")]
    Missing(ModuleName),
    /// The module depends on itself, by way of these modules.
    #[error("dependsOn goes round in a circle: {}", path(.0))]
    Cycle(Vec<ModuleName>),
    /// A module that this module depends on is itself blocked.
    #[error("module '{0}', which it needs, cannot run itself")]
    Needs(ModuleName),
}

impl Blocked {
    /// The module that blocks this module.
    pub fn need(&self) -> &ModuleName {
        match self {
            Self::Missing(name) | Self::Needs(name) => name,
            Self::Cycle(way) => way.get(1).expect("a circle comes back to where it began"),
        }
    }
}

fn path(names: &[ModuleName]) -> String {
    names.iter().map(ModuleName::as_str).collect::<Vec<_>>().join(" → ")
}

/// The number and the dependencies of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The order number.
    pub order: u32,
    /// The modules that the module depends on.
    pub needs: Vec<ModuleName>,
}

/// The order of the modules, and the modules that cannot be placed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The groups of modules that may run side by side, lowest number first. Each placed module is in one group; a group
    /// is sorted by name.
    pub groups: Vec<Vec<ModuleName>>,
    /// The modules that cannot be placed, with the reason.
    pub blocked: BTreeMap<ModuleName, Blocked>,
    /// All modules, each behind the existing modules that it depends on. The reverse is the order of removals.
    pub order: Vec<ModuleName>,
}

/// Makes the plan of all modules.
pub fn plan(nodes: &BTreeMap<ModuleName, Node>) -> Plan {
    let circles = circles(nodes);
    let order = sorted(nodes, &circles);
    let blocked = blocked(nodes, circles, &order);
    let mut levels: BTreeMap<&ModuleName, u32> = BTreeMap::new();
    let mut groups: BTreeMap<u32, Vec<ModuleName>> = BTreeMap::new();
    for name in order.iter().copied().filter(|name| !blocked.contains_key(*name)) {
        // The module's own number, or a higher one of a module that the module depends on.
        let needs = nodes[name].needs.iter().filter_map(|need| levels.get(need).copied());
        let level = needs.fold(nodes[name].order, u32::max);
        levels.insert(name, level);
        groups.entry(level).or_default().push(name.clone());
    }
    for group in groups.values_mut() {
        group.sort();
    }
    Plan {
        groups: groups.into_values().collect(),
        blocked,
        order: order.into_iter().cloned().collect(),
    }
}

/// The modules by number and name, each behind the modules that it depends on. Dependencies within known cycles do not
/// count. A module in an unknown cycle is left out, and so are the modules that depend on it.
fn sorted<'a>(
    nodes: &'a BTreeMap<ModuleName, Node>,
    circles: &BTreeMap<ModuleName, Vec<ModuleName>>,
) -> Vec<&'a ModuleName> {
    let mut dependents: BTreeMap<&ModuleName, Vec<&'a ModuleName>> = BTreeMap::new();
    let mut waits: BTreeMap<&ModuleName, BTreeSet<&ModuleName>> = BTreeMap::new();
    for (name, node) in nodes {
        let counts = |need: &&ModuleName| {
            nodes.contains_key(*need) && !(circles.contains_key(name) && circles.contains_key(*need))
        };
        let needs: BTreeSet<_> = node.needs.iter().filter(counts).collect();
        for need in &needs {
            dependents.entry(need).or_default().push(name);
        }
        waits.insert(name, needs);
    }
    let free = waits.iter().filter(|(_, needs)| needs.is_empty());
    let mut ready: BTreeSet<(u32, &ModuleName)> = free.map(|(name, _)| (nodes[*name].order, *name)).collect();
    let mut order = Vec::new();
    while let Some((_, name)) = ready.pop_first() {
        order.push(name);
        for dependent in dependents.remove(name).unwrap_or_default() {
            let left = waits.entry(dependent).or_default();
            left.remove(name);
            if left.is_empty() {
                ready.insert((nodes[dependent].order, dependent));
            }
        }
    }
    order
}

/// The modules that depend on themselves, each with a shortest way back to itself.
fn circles(nodes: &BTreeMap<ModuleName, Node>) -> BTreeMap<ModuleName, Vec<ModuleName>> {
    let sound: BTreeSet<_> = sorted(nodes, &BTreeMap::new()).into_iter().collect();
    let suspects = nodes.keys().filter(|name| !sound.contains(*name));
    suspects
        .filter_map(|name| Some((name.clone(), circle_through(name, nodes)?)))
        .collect()
}

fn circle_through(start: &ModuleName, nodes: &BTreeMap<ModuleName, Node>) -> Option<Vec<ModuleName>> {
    let mut came_from: BTreeMap<&ModuleName, &ModuleName> = BTreeMap::new();
    let mut ahead = VecDeque::from([start]);
    while let Some(name) = ahead.pop_front() {
        for need in nodes.get(name).map(|node| node.needs.as_slice()).unwrap_or_default() {
            if need == start {
                let back = std::iter::successors(Some(name), |at| came_from.get(*at).copied());
                let mut way: Vec<_> = std::iter::once(start).chain(back).cloned().collect();
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(need) {
                came_from.insert(need, name);
                ahead.push_back(need);
            }
        }
    }
    None
}

/// The modules that cannot run, because of their own mistakes or because of mistakes of modules that they depend on.
fn blocked(
    nodes: &BTreeMap<ModuleName, Node>,
    circles: BTreeMap<ModuleName, Vec<ModuleName>>,
    order: &[&ModuleName],
) -> BTreeMap<ModuleName, Blocked> {
    let circles = circles.into_iter().map(|(name, way)| (name, Blocked::Cycle(way)));
    let mut blocked: BTreeMap<ModuleName, Blocked> = circles.collect();
    for (name, node) in nodes {
        if let Some(missing) = node.needs.iter().find(|need| !nodes.contains_key(*need)) {
            blocked.insert(name.clone(), Blocked::Missing(missing.clone()));
        }
    }
    for name in order {
        if !blocked.contains_key(*name)
            && let Some(need) = nodes[*name].needs.iter().find(|need| blocked.contains_key(*need))
        {
            blocked.insert((*name).clone(), Blocked::Needs(need.clone()));
        }
    }
    blocked
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
    fn a_circle_is_told_by_its_shortest_way_and_between_two_circles_nobody_is_in_one() {
        let plan = plan(&nodes(&[
            ("a", 1, &["b", "c"]),
            ("b", 1, &["c"]),
            ("c", 1, &["a"]),
            ("between", 1, &["a"]),
            ("own", 1, &["own", "between"]),
        ]));
        assert!(plan.groups.is_empty());
        let texts: Vec<_> = plan.blocked.values().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "dependsOn goes round in a circle: a → c → a",
                "dependsOn goes round in a circle: b → c → a → b",
                "module 'a', which it needs, cannot run itself",
                "dependsOn goes round in a circle: c → a → c",
                "dependsOn goes round in a circle: own → own",
            ]
        );
        assert_eq!(plan.order.len(), 5);
    }

    #[test]
    fn the_order_holds_everybody_behind_what_it_needs() {
        let plan = plan(&nodes(&[
            ("low", 10, &["high"]),
            ("high", 30, &[]),
            ("mid", 20, &["nowhere", "first"]),
            ("first", 25, &[]),
            ("last", 40, &["last"]),
        ]));
        let order: Vec<_> = plan.order.iter().map(ModuleName::as_str).collect();
        assert_eq!(order, ["first", "mid", "high", "low", "last"]);
    }

    #[test]
    fn a_long_chain_of_needs_takes_no_time_and_no_stack() {
        let name = |at: u32| ModuleName::parse(&format!("m{at}x")).unwrap();
        let link = |at: u32| {
            let needs = (at < 20_000).then(|| name(at + 1)).into_iter().collect();
            (name(at), Node { order: at, needs })
        };
        let plan = plan(&(0..=20_000).map(link).collect());
        assert_eq!((plan.groups.len(), plan.groups[0].len()), (1, 20_001));
        assert_eq!(plan.order.first(), Some(&name(20_000)));
    }

    mod any_graph {
        use proptest::prelude::*;

        use super::*;

        fn any_nodes() -> impl Strategy<Value = BTreeMap<ModuleName, Node>> {
            let name = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f"]);
            let node = (0..3u32, prop::collection::vec(name(), 0..3));
            prop::collection::btree_map(name(), node, 1..6).prop_map(|rows| {
                let parse = |name: &str| ModuleName::parse(name).unwrap();
                rows.into_iter()
                    .map(|(name, (order, needs))| {
                        let needs = needs.into_iter().map(parse).collect();
                        (parse(name), Node { order, needs })
                    })
                    .collect()
            })
        }

        /// The modules that can be reached over dependencies, in any number of steps.
        fn reached(start: &ModuleName, nodes: &BTreeMap<ModuleName, Node>) -> BTreeSet<ModuleName> {
            let mut seen = BTreeSet::new();
            let mut ahead = vec![start.clone()];
            while let Some(name) = ahead.pop() {
                for need in nodes.get(&name).into_iter().flat_map(|node| &node.needs) {
                    if seen.insert(need.clone()) {
                        ahead.push(need.clone());
                    }
                }
            }
            seen
        }

        proptest! {
            #[test]
            fn exactly_those_are_blocked_who_come_to_a_circle_or_to_nobody(nodes in any_nodes()) {
                let plan = plan(&nodes);
                let placed: BTreeMap<_, _> = plan.groups.iter().enumerate()
                    .flat_map(|(at, group)| group.iter().map(move |name| (name, at)))
                    .collect();
                for (name, node) in &nodes {
                    let reached = reached(name, &nodes);
                    let in_circle = |name: &ModuleName| any_graph::reached(name, &nodes).contains(name);
                    let bad = in_circle(name) || reached.iter().any(|need| !nodes.contains_key(need) || in_circle(need));
                    prop_assert_eq!(plan.blocked.contains_key(name), bad);
                    prop_assert_eq!(placed.contains_key(name), !bad);
                    if let Some(Blocked::Cycle(way)) = plan.blocked.get(name) {
                        prop_assert!(way.first() == Some(name) && way.last() == Some(name) && way.len() > 1);
                        prop_assert!(way.windows(2).all(|step| nodes[&step[0]].needs.contains(&step[1])));
                    } else if in_circle(name) {
                        prop_assert!(matches!(plan.blocked.get(name), Some(Blocked::Missing(_))));
                    }
                    let place = |name: &ModuleName| plan.order.iter().position(|other| other == name);
                    for need in node.needs.iter().filter(|need| nodes.contains_key(*need) && !in_circle(need)) {
                        prop_assert!(place(need) < place(name));
                    }
                    if !bad {
                        prop_assert!(node.needs.iter().all(|need| placed[need] <= placed[name]));
                    }
                }
                prop_assert_eq!(plan.order.len(), nodes.len());
            }
        }
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
