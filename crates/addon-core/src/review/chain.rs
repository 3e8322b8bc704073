//! The conversions between versions of a resource, as chains of steps.
//!
//! A version may be written with its group or without; two different groups never match. Of several chains the shortest
//! is taken, then the one whose ends are written most exactly, then the one declared first.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::hook::config::ConversionRule;

/// Rules for one resource, in the order of their declaration.
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
    /// Adds a rule; a pair that exists already stays with the hook that declared it first.
    pub fn add(&mut self, rule: ConversionRule, by: T) {
        if self.rules.iter().all(|(known, _)| *known != rule) {
            self.rules.push((rule, by));
        }
    }

    /// The rules with the hooks that declared them.
    pub fn rules(&self) -> impl Iterator<Item = &(ConversionRule, T)> {
        self.rules.iter()
    }

    /// The rules that lead from one version to another, one after the other; none if there is no way.
    pub fn path(&self, from: &str, to: &str) -> Option<Vec<&(ConversionRule, T)>> {
        let mut seen = BTreeSet::new();
        let mut level: Vec<Vec<usize>> = self.after(from).map(|place| vec![place]).collect();
        while !level.is_empty() {
            seen.extend(level.iter().filter_map(|path| path.last().copied()));
            let arrived = level.iter().filter(|path| self.ends_at(path, to));
            // Of equal ones the first stays: paths stand in the order of their declaration.
            if let Some(best) = arrived.min_by_key(|path| Reverse(self.exactness(path, from, to))) {
                return Some(best.iter().filter_map(|place| self.rules.get(*place)).collect());
            }
            level = self.longer(&level, from, &mut seen);
        }
        None
    }

    /// Every path with one more rule that was not reached yet and does not lead back.
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

    /// Rules that start at the version, those first that write it in the same way.
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

    /// Both ends as they were asked for, else the last one, else the first one.
    fn exactness(&self, path: &[usize], from: &str, to: &str) -> (bool, bool, bool) {
        let rule = |place: Option<&usize>| place.and_then(|place| self.rules.get(*place));
        let starts = rule(path.first()).is_some_and(|(rule, _)| rule.from_version == from);
        let ends = rule(path.last()).is_some_and(|(rule, _)| rule.to_version == to);
        (starts && ends, ends && to.contains('/'), starts && from.contains('/'))
    }
}

/// Whether two ways of writing a version can mean the same one.
pub fn matches(one: &str, other: &str) -> bool {
    match (one.split_once('/'), other.split_once('/')) {
        (Some((_, version)), None) => version == other,
        (None, Some((_, version))) => version == one,
        _ => one == other,
    }
}
