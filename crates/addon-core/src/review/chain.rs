//! The conversions between versions of a resource, as chains of rules.
//!
//! A version may be written with its group or without. Two different groups never match. The shortest chain is taken.
//! If several chains are equally short, a chain whose ends are spelled as in the request comes first, then the chain
//! that was declared first.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::hook::config::ConversionRule;

/// The rules for one resource, in the order of their declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain<T> {
    rules: Vec<(ConversionRule, T)>,
}

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Self { rules: Vec::new() }
    }
}

impl<T> Chain<T> {
    /// Adds a rule. If there is a rule for the same pair of versions, the earlier one stays.
    pub fn add(&mut self, rule: ConversionRule, by: T) {
        if self.rules.iter().all(|(known, _)| *known != rule) {
            self.rules.push((rule, by));
        }
    }

    /// The rules with the hooks that declared them.
    pub fn rules(&self) -> impl Iterator<Item = &(ConversionRule, T)> {
        self.rules.iter()
    }

    /// The shortest chain of rules from one version to another; `None` if there is none.
    pub fn path(&self, from: &str, to: &str) -> Option<Vec<&(ConversionRule, T)>> {
        let mut seen = BTreeSet::new();
        let mut level: Vec<Vec<usize>> = self.after(from).map(|place| vec![place]).collect();
        while !level.is_empty() {
            seen.extend(level.iter().filter_map(|path| path.last().copied()));
            let arrived = level.iter().filter(|path| self.ends_at(path, to));
            // Paths are sorted by declaration, so that the first of equal ones is taken.
            if let Some(best) = arrived.min_by_key(|path| Reverse(self.exactness(path, from, to))) {
                return Some(best.iter().filter_map(|place| self.rules.get(*place)).collect());
            }
            level = self.longer(&level, from, &mut seen);
        }
        None
    }

    /// Every path with one more rule that was not reached yet and does not lead back to the start.
    fn longer(&self, paths: &[Vec<usize>], from: &str, seen: &mut BTreeSet<usize>) -> Vec<Vec<usize>> {
        let mut longer = Vec::new();
        for path in paths {
            let Some(end) = path.last().and_then(|place| self.rules.get(*place)) else {
                continue;
            };
            for next in self.after(&end.0.to_version) {
                let back = self
                    .rules
                    .get(next)
                    .is_none_or(|(rule, _)| matches(&rule.to_version, from));
                if !back && seen.insert(next) {
                    longer.push(path.iter().copied().chain([next]).collect());
                }
            }
        }
        longer
    }

    /// The rules that start at the version. Rules that spell the version in the same way come first.
    fn after(&self, version: &str) -> impl Iterator<Item = usize> {
        let mut found: Vec<usize> = (0..self.rules.len())
            .filter(|place| {
                let rule = self.rules.get(*place);
                rule.is_some_and(|(rule, _)| matches(&rule.from_version, version))
            })
            .collect();
        found.sort_by_key(|place| {
            let rule = self.rules.get(*place);
            rule.is_none_or(|(rule, _)| rule.from_version != version)
        });
        found.into_iter()
    }

    fn ends_at(&self, path: &[usize], to: &str) -> bool {
        let end = path.last().and_then(|place| self.rules.get(*place));
        end.is_some_and(|(rule, _)| matches(&rule.to_version, to))
    }

    /// How exactly a path's ends are spelled as in the request: both, else the last, else the first.
    fn exactness(&self, path: &[usize], from: &str, to: &str) -> (bool, bool, bool) {
        let rule = |place: Option<&usize>| place.and_then(|place| self.rules.get(*place));
        let starts = rule(path.first()).is_some_and(|(rule, _)| rule.from_version == from);
        let ends = rule(path.last()).is_some_and(|(rule, _)| rule.to_version == to);
        (starts && ends, ends && to.contains('/'), starts && from.contains('/'))
    }
}

/// Whether two spellings of a version can mean the same version.
pub fn matches(one: &str, other: &str) -> bool {
    match (one.split_once('/'), other.split_once('/')) {
        (Some((_, version)), None) => version == other,
        (None, Some((_, version))) => version == one,
        _ => one == other,
    }
}
